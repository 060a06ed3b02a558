// Any bytes through a pipe, in pieces: the same samples as in one, an answer within the limits, never a crash.
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "audio/decode/pcm_stream.h"
#include "base/check.h"

namespace {

struct Heard {
  std::vector<uint32_t> samples;  // as bits
  bool whole = false;
};

Heard hear(std::span<const std::byte> bytes, size_t piece) {
  const std::string name = "input";
  const syrinx::SoundLimits limits{.max_seconds = 5};
  Heard heard;
  const syrinx::SoundSink sink{.begin =
                                   [&](int rate_hz, std::optional<uint64_t>) {
                                     SYRINX_CHECK(rate_hz >= limits.min_rate_hz && rate_hz <= limits.max_rate_hz);
                                     return syrinx::Status();
                                   },
                               .add =
                                   [&](std::span<const float> samples) {
                                     for (const float sample : samples)
                                       heard.samples.push_back(std::bit_cast<uint32_t>(sample));
                                     return syrinx::Status();
                                   }};
  syrinx::PcmStream stream({}, name, limits, sink);
  syrinx::Status status;
  for (; !bytes.empty() && status; bytes = bytes.subspan(std::min(piece, bytes.size())))
    status = stream.push(bytes.first(std::min(piece, bytes.size())));
  if (status) status = stream.finish();
  heard.whole = status.has_value();
  SYRINX_CHECK(heard.whole || !status.error().message.empty());
  return heard;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const Heard at_once = hear(bytes, std::max<size_t>(size, 1)), in_pieces = hear(bytes, 7);
  SYRINX_CHECK(at_once.whole == in_pieces.whole);
  if (at_once.whole) SYRINX_CHECK(at_once.samples == in_pieces.samples);
  return 0;
}
