#include "audio/mel_bank.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace syrinx {
namespace {

constexpr double kLinearHzPerMel = 200.0 / 3.0;
constexpr double kCornerHz = 1000.0;
constexpr double kCornerMel = kCornerHz / kLinearHzPerMel;

double log_step() { return std::log(6.4) / 27.0; }

double mel_from_hz(double hz) {
  return hz < kCornerHz ? hz / kLinearHzPerMel : kCornerMel + std::log(hz / kCornerHz) / log_step();
}

double hz_from_mel(double mel) {
  return mel < kCornerMel ? mel * kLinearHzPerMel : kCornerHz * std::exp((mel - kCornerMel) * log_step());
}

}  // namespace

Result<MelBank> MelBank::slaney(const Shape& shape) {
  if (shape.mels < 1 || shape.mels > 512)
    return fail(Code::kInvalidArgument, "a mel bank has 1 to 512 filters, not {}", shape.mels);
  if (shape.fft_size < 16 || shape.fft_size > 65536 || shape.fft_size % 2 != 0)
    return fail(Code::kInvalidArgument, "a mel bank's transform has an even size from 16 to 65536, not {}",
                shape.fft_size);
  const bool ordered = shape.low_hz >= 0 && shape.low_hz < shape.high_hz && shape.high_hz <= shape.rate_hz / 2;
  if (!ordered)
    return fail(Code::kInvalidArgument, "a mel bank lies between 0 and half of {} Hz, not from {} to {} Hz",
                shape.rate_hz, shape.low_hz, shape.high_hz);

  std::vector<double> points(shape.mels + 2);
  const double low = mel_from_hz(shape.low_hz), high = mel_from_hz(shape.high_hz);
  for (size_t i = 0; i < points.size(); ++i)
    points[i] = hz_from_mel(low + (high - low) * static_cast<double>(i) / static_cast<double>(shape.mels + 1));

  MelBank bank;
  bank.bins_ = shape.fft_size / 2 + 1;
  std::vector<float> row(bank.bins_);
  for (size_t m = 0; m < shape.mels; ++m) {
    const double left = points[m], centre = points[m + 1], right = points[m + 2];
    for (size_t bin = 0; bin < bank.bins_; ++bin) {
      const double hz = static_cast<double>(bin) * shape.rate_hz / static_cast<double>(shape.fft_size);
      const double triangle = std::min((hz - left) / (centre - left), (right - hz) / (right - centre));
      row[bin] = static_cast<float>(std::max(0.0, triangle) * 2.0 / (right - left));
    }
    bank.add(row);
  }
  return bank;
}

Result<MelBank> MelBank::from_matrix(std::span<const float> weights, size_t mels) {
  if (mels == 0 || weights.empty() || weights.size() % mels != 0)
    return fail(Code::kInvalidArgument, "{} weights are not a mel bank of {} filters", weights.size(), mels);
  MelBank bank;
  bank.bins_ = weights.size() / mels;
  for (size_t m = 0; m < mels; ++m) {
    const std::span<const float> row = weights.subspan(m * bank.bins_, bank.bins_);
    if (!std::all_of(row.begin(), row.end(), [](float w) { return std::isfinite(w); }))
      return fail(Code::kDataLoss, "filter {} of the mel bank holds a value that is not finite", m);
    bank.add(row);
  }
  return bank;
}

void MelBank::add(std::span<const float> row) {
  size_t first_bin = 0;
  while (!row.empty() && row.back() == 0) row = row.first(row.size() - 1);
  while (!row.empty() && row.front() == 0) {
    row = row.subspan(1);
    ++first_bin;
  }
  filters_.push_back({first_bin, weights_.size(), row.size()});
  weights_.insert(weights_.end(), row.begin(), row.end());
}

void MelBank::apply(std::span<const float> power, std::span<float> mel) const {
  SYRINX_CHECK(power.size() == bins_ && mel.size() == filters_.size(), "{} bins and {} filters for a bank of {} and {}",
               power.size(), mel.size(), bins_, filters_.size());
  for (size_t m = 0; m < filters_.size(); ++m) {
    const Filter& filter = filters_[m];
    const float* weights = weights_.data() + filter.first_weight;
    const float* from = power.data() + filter.first_bin;
    float sum = 0;
    for (size_t i = 0; i < filter.weights; ++i) sum += weights[i] * from[i];
    mel[m] = sum;
  }
}

}  // namespace syrinx
