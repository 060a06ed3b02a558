// Text in, sound out, piece by piece: a thread of its own computes the next piece while the last one is played or
// written.  The same options, text and build give the same samples when the text is given at once (speak()).  Text that
// arrives in parts is spoken as soon as its sentences end: at once where that is certain, after a pause of 0.3 s where
// it is likely (text::SentenceStream::next_at_pause).
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "models/g2p/english.h"
#include "models/kokoro/model.h"
#include "models/kokoro/pieces.h"
#include "text/split.h"

namespace syrinx {

struct SpeakOptions {
  std::string voice;   // "af_heart", a blend, or the path of a voice file; empty: the default
  float speed = 1.0f;  // 0.25 to 4
  bool noise = false;  // the model's source noise, drawn from `seed`
  uint64_t seed = 0;
  bool phonemes = false;  // the input is phonemes in Kokoro's alphabet; . ! ? … and a line's end close a sentence
};

// When a word of the input is heard.  Words that are read out as several ("$3.50") have one entry.
struct WordTime {
  std::string text;                         // as written; of an escape, [word](/phonemes/), the word
  size_t source_begin = 0, source_end = 0;  // bytes of the input
  double start_s = 0, end_s = 0;            // from the first sample
};

struct SpeechChunk {
  std::vector<float> samples;  // mono, 24 kHz
  double start_s = 0;
  std::vector<WordTime> words;
  std::string phonemes;
};

struct SpeechStatistics {
  double first_audio_ms = 0;  // from the first text to the first chunk
  double total_ms = 0;        // from the first text to the last chunk
  double compute_ms = 0;      // front end and model, without waiting for text or for the listener
  double audio_seconds = 0;
  size_t pieces = 0;
  size_t dropped_characters = 0;  // of the text: emoji, other scripts
  size_t unknown_phonemes = 0;    // outside the alphabet, left out

  double rtf() const { return audio_seconds > 0 ? compute_ms / 1000.0 / audio_seconds : 0.0; }
};

// What a session needs of its engine; tests bring their own.  Called from the session's thread only.
class SpeechMaker {
 public:
  virtual ~SpeechMaker() = default;
  virtual Result<g2p::Phonemized> phonemize(std::string_view sentence, size_t source_offset) = 0;
  // `ids` without the zeros; `symbols` chooses the row of the voice; `output` is reused.
  virtual Status synthesize(std::span<const int32_t> ids, size_t symbols, uint64_t seed,
                            kokoro::PieceOutput& output) = 0;
};

class SpeechSession {
 public:
  static constexpr size_t kMaxWaitingText = size_t{1} << 20;  // bytes accepted but not yet read by the front end
  static constexpr size_t kMaxWaitingChunks = 2;              // finished but not yet taken

  SpeechSession(std::unique_ptr<SpeechMaker> maker, const SpeakOptions& options, const Clock& clock = system_clock());
  // Cancels, and waits for the piece that is being computed.
  ~SpeechSession();
  SpeechSession(const SpeechSession&) = delete;
  SpeechSession& operator=(const SpeechSession&) = delete;

  // Any thread.  Waits while kMaxWaitingText is waiting.  Fails with the session's error once it has failed.
  Status write(std::string_view text);
  void finish();
  // All of the text, and the end.  kLimitExceeded above kMaxWaitingText.
  Status speak(std::string_view text);
  // The next stretch of sound; waits for it.  Nothing at the end.  One thread.
  Result<std::optional<SpeechChunk>> next();
  // Any thread; next() and write() return kCancelled soon.
  void cancel();
  SpeechStatistics statistics() const;

 private:
  enum class Arrival { kText, kQuiet, kEnd };

  void run();
  Status produce();
  enum class Moment { kFlow, kPause, kEnd };  // of the text: more may follow, follows later, never follows

  Result<Arrival> wait_for_text(std::optional<g2p::Phonemized>& piece);
  Result<bool> absorb(Moment moment);
  Result<bool> absorb_phonemes(Moment moment);
  Result<Arrival> take_text(std::optional<std::chrono::milliseconds> limit);
  Status read_sentence(std::string_view sentence, size_t offset);
  Status make(const g2p::Phonemized& piece);
  Status hand_over(SpeechChunk chunk);
  std::vector<WordTime> word_times(const g2p::Phonemized& piece, const std::vector<uint32_t>& offsets,
                                   size_t first_sample, size_t kept) const;
  std::string source_text(text::Range range) const;

  const std::unique_ptr<SpeechMaker> maker_;
  const SpeakOptions options_;
  const Clock& clock_;

  // The producer's own.
  struct Sentence {
    size_t offset;
    std::string text;
  };
  text::SentenceStream sentences_;
  std::string phoneme_text_;  // phonemes without the end of their sentence yet
  size_t phoneme_offset_ = 0;
  kokoro::PiecePlanner planner_;
  std::deque<Sentence> spoken_;  // those whose pieces are not all made yet, for the words' spelling
  kokoro::PieceOutput output_;
  uint64_t samples_made_ = 0;
  bool said_something_ = false;

  // Shared; guarded by mutex_.
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::string waiting_text_;
  std::deque<SpeechChunk> chunks_;
  std::optional<Error> error_;
  bool finished_ = false;  // no more text
  bool done_ = false;      // no more chunks
  bool cancelled_ = false;
  int64_t first_text_ns_ = 0;
  SpeechStatistics statistics_;

  std::thread thread_;  // last: it uses all of the above
};

}  // namespace syrinx
