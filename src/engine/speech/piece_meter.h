// Rate and loudness of the pieces of a text, each beside those before: a piece that departs by much from them may be
// one whose speech went astray.  Samples are not changed.
//
// Blocks of 20 ms below kSilenceDb are silence and left out of both figures, so that pauses count for neither.  A piece
// departs if its rate is more than kRateFactor times the median of up to kRemembered pieces before, or less than the
// median divided by that, or if its loudness is more than kLoudnessDb away from their median; one of silence alone
// departs in both.  The first piece, and pieces of fewer than kLeastTokens, never do, and the latter have no figures:
// a word or two say little of either.
//
// PieceMeter belongs to one thread; hear() allocates nothing.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>

namespace syrinx {

struct PieceFigures {
  size_t tokens = 0;
  double sound_s = 0;      // without silence
  double rate = 0;         // tokens a second of that; 0: it was silent
  double loudness_db = 0;  // root mean square of that, dB below full scale
  bool rate_departs = false, loudness_departs = false;
};
// For the log: "25 tokens in 2.31 s of sound, 10.8 a second, -21.3 dBFS".
std::string describe(const PieceFigures& piece);

// Figures of all measured pieces.
struct PieceSpread {
  size_t pieces = 0;
  size_t uneven_rate = 0, uneven_loudness = 0;             // of them, that depart
  double least_rate = 0, greatest_rate = 0;                // tokens a second; 0: no piece had sound
  double least_loudness_db = 0, greatest_loudness_db = 0;  // likewise

  void add(const PieceFigures& piece);
  void add(const PieceSpread& more);
};

class PieceMeter {
 public:
  static constexpr double kRateFactor = 1.5, kLoudnessDb = 6, kSilenceDb = -60;
  static constexpr size_t kLeastTokens = 8, kRemembered = 16;

  explicit PieceMeter(int rate_hz);
  // A piece, or another try at it; all that was heard since the last end() is left out.
  void begin() { block_ = sound_ = {}; }
  // No piece before counts any more: another voice speaks.
  void forget() { pieces_ = 0; }
  // Samples of the piece, full scale 1, as they are handed to the listener.
  void hear(std::span<const float> samples);
  // The piece is over; nothing: it had fewer than kLeastTokens.  One that was cut (not `whole`) departs in nothing, and
  // is not remembered.
  std::optional<PieceFigures> end(size_t tokens, bool whole = true);

 private:
  struct Block {
    double sum = 0;  // of squares
    size_t samples = 0;
  };
  struct Remembered {
    std::array<double, kRemembered> values = {};  // a ring
    void add(double value, size_t number) { values[number % kRemembered] = value; }
    double median(size_t count) const;
  };

  const int rate_hz_;
  const size_t block_samples_;
  Block block_, sound_;
  Remembered rates_, loudness_;
  size_t pieces_ = 0;  // with sound
};

}  // namespace syrinx
