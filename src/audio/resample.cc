#include "audio/resample.h"

#include <algorithm>
#include <numeric>

namespace syrinx {
namespace {

constexpr size_t kBlockSamples = size_t{1} << 16;

}  // namespace

Result<std::vector<float>> resample(std::span<const float> sound, int from_hz, int to_hz) {
  SYRINX_TRY(StreamResampler resampler, StreamResampler::create(from_hz, to_hz));
  const size_t common = static_cast<size_t>(std::gcd(from_hz, to_hz));
  const size_t up = static_cast<size_t>(to_hz) / common, down = static_cast<size_t>(from_hz) / common;
  const size_t size = (sound.size() * up + down - 1) / down;
  if (sound.size() > kMaxResampledSamples || size > kMaxResampledSamples)
    return fail(Code::kLimitExceeded, "a sound of {} samples is too long to be converted from {} to {} Hz; shorten it",
                sound.size(), from_hz, to_hz);
  std::vector<float> out;
  out.reserve(size);
  // In blocks, since the resampler keeps a copy of what it is given.
  for (size_t at = 0; at < sound.size(); at += kBlockSamples)
    resampler.push(sound.subspan(at, std::min(kBlockSamples, sound.size() - at)), out);
  resampler.finish(out);
  return out;
}

}  // namespace syrinx
