// Times of a piece (speech_gate.h) as times of its recording.  Where two stretches meet, a pause has been left out: a
// model places words a little before or behind that seam, which in the recording is the whole pause.  Here each word
// belongs to one stretch: what begins behind the pause begins there, and what ends before it ends there.
//
// A value; const members are thread-safe.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "engine/recognition/speech_gate.h"
#include "engine/recognition/transcript.h"

namespace syrinx {

class PieceTimes {
 public:
  // A word in seconds of the piece.
  struct Word {
    double start_s = 0, end_s = 0;
    bool begins = false;  // a sentence or a segment
  };

  explicit PieceTimes(const SpeechPiece& piece);

  // Whether a pause was left out of the piece.
  bool has_pauses() const { return stretches_.size() > 1; }

  // The stretch of each word, never falling.  One across a seam belongs where more of it lies; but the last that begins
  // a sentence within the silence around the seam is the first behind it, unless another one lies there already.
  std::vector<size_t> stretches_of(std::span<const Word> words) const;
  // For each word, whether a pause of more than kLongPauseS was left out before it.
  std::vector<bool> follow_pauses(std::span<const size_t> stretches) const;

  // Segments with times of the recording.  One across a long pause is cut there, but not within a word of a script that
  // has blanks.  `stretches`: of the words of all of them, in order.  A segment without words is placed by its own
  // times.
  std::vector<TranscriptSegment> in_recording(std::vector<TranscriptSegment> segments,
                                              std::span<const size_t> stretches) const;

  static constexpr double kLongPauseS = 1.0;

 private:
  struct Stretch {
    double begin = 0, end = 0;  // samples of the piece
    double recording_begin = 0;
  };

  bool is_long_pause(size_t before, size_t behind) const;
  size_t first_behind(std::span<const Word> words, size_t from, double seam_s) const;
  size_t stretch_at(double piece_s) const;
  double place(size_t stretch, double piece_s) const;
  void place_segment(TranscriptSegment& segment, size_t first, size_t last) const;
  void place_words(TranscriptSegment& segment, std::span<const size_t> stretches) const;

  std::vector<Stretch> stretches_;  // those with nothing left out between them are one
  double pad_s_;
};

// The words of segments in seconds of a piece, as stretches_of() takes them.
std::vector<PieceTimes::Word> piece_words(std::span<const TranscriptSegment> segments);
// Whether a sentence ends with this word: behind it stands . ? or !, closing marks aside.
bool ends_sentence(std::string_view word);

}  // namespace syrinx
