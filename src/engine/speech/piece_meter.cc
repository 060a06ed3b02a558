#include "engine/speech/piece_meter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace syrinx {
namespace {

constexpr int kBlocksPerSecond = 50;

double decibels(double mean_square) { return 10 * std::log10(mean_square); }

}  // namespace

std::string describe(const PieceFigures& piece) {
  if (piece.sound_s == 0) return fmt::format("{} tokens, silence alone", piece.tokens);
  return fmt::format("{} tokens in {:.2f} s of sound, {:.1f} a second{}, {:.1f} dBFS{}", piece.tokens, piece.sound_s,
                     piece.rate, piece.rate_departs ? " (departs)" : "", piece.loudness_db,
                     piece.loudness_departs ? " (departs)" : "");
}

void PieceSpread::add(const PieceFigures& piece) {
  PieceSpread more{.pieces = 1,
                   .uneven_rate = piece.rate_departs ? size_t{1} : 0,
                   .uneven_loudness = piece.loudness_departs ? size_t{1} : 0};
  if (piece.sound_s > 0) {
    more.least_rate = more.greatest_rate = piece.rate;
    more.least_loudness_db = more.greatest_loudness_db = piece.loudness_db;
  }
  add(more);
}

void PieceSpread::add(const PieceSpread& more) {
  pieces += more.pieces;
  uneven_rate += more.uneven_rate;
  uneven_loudness += more.uneven_loudness;
  if (more.greatest_rate == 0) return;
  const bool is_first = std::exchange(greatest_rate, std::max(greatest_rate, more.greatest_rate)) == 0;
  least_rate = is_first ? more.least_rate : std::min(least_rate, more.least_rate);
  least_loudness_db = is_first ? more.least_loudness_db : std::min(least_loudness_db, more.least_loudness_db);
  greatest_loudness_db =
      is_first ? more.greatest_loudness_db : std::max(greatest_loudness_db, more.greatest_loudness_db);
}

PieceMeter::PieceMeter(int rate_hz)
    : rate_hz_(rate_hz), block_samples_(static_cast<size_t>(rate_hz / kBlocksPerSecond)) {}

void PieceMeter::hear(std::span<const float> samples) {
  static const double kSilence = std::pow(10, kSilenceDb / 10);
  for (const float sample : samples) {
    block_.sum += static_cast<double>(sample) * static_cast<double>(sample);
    if (++block_.samples < block_samples_) continue;
    if (block_.sum >= kSilence * static_cast<double>(block_samples_)) {
      sound_.sum += block_.sum;
      sound_.samples += block_.samples;
    }
    block_ = {};
  }
}

double PieceMeter::Remembered::median(size_t count) const {
  std::array<double, kRemembered> sorted = values;
  const auto end = sorted.begin() + static_cast<std::ptrdiff_t>(std::min(count, kRemembered));
  std::sort(sorted.begin(), end);
  const auto size = static_cast<size_t>(end - sorted.begin());
  return (sorted[(size - 1) / 2] + sorted[size / 2]) / 2;
}

std::optional<PieceFigures> PieceMeter::end(size_t tokens, bool whole) {
  const Block sound = std::exchange(sound_, {});
  block_ = {};
  if (tokens < kLeastTokens) return {};
  PieceFigures piece{.tokens = tokens};
  if (sound.samples == 0) {
    piece.rate_departs = piece.loudness_departs = whole && pieces_ > 0;
    return piece;
  }
  piece.sound_s = static_cast<double>(sound.samples) / rate_hz_;
  piece.rate = static_cast<double>(tokens) / piece.sound_s;
  piece.loudness_db = decibels(sound.sum / static_cast<double>(sound.samples));
  if (!whole) return piece;
  if (pieces_ > 0) {
    const double rate = rates_.median(pieces_);
    piece.rate_departs = piece.rate > rate * kRateFactor || piece.rate * kRateFactor < rate;
    piece.loudness_departs = std::abs(piece.loudness_db - loudness_.median(pieces_)) > kLoudnessDb;
  }
  rates_.add(piece.rate, pieces_);
  loudness_.add(piece.loudness_db, pieces_);
  ++pieces_;
  return piece;
}

}  // namespace syrinx
