// Any bytes as what a decoding child says: sound within the limits, or a sentence.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>

#include "audio/child/decode_talk.h"
#include "audio/mono_mixer.h"
#include "base/check.h"

namespace {

class Said final : public syrinx::DecodeChannel {
 public:
  explicit Said(std::span<const std::byte> bytes) : left_(bytes) {}
  syrinx::Status receive(std::span<std::byte> bytes) override {
    SYRINX_CHECK(bytes.size() <= syrinx::kMaxBlockSamples * sizeof(float));
    if (bytes.size() > left_.size()) return syrinx::fail(syrinx::Code::kUnsupported, "has ended");
    std::memcpy(bytes.data(), left_.data(), bytes.size());
    left_ = left_.subspan(bytes.size());
    return {};
  }
  syrinx::Status send(std::span<const std::byte> bytes) override {
    SYRINX_CHECK(bytes.size() <= syrinx::kMaxReadBytes);
    return {};
  }

 private:
  std::span<const std::byte> left_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const syrinx::SoundLimits limits{.max_seconds = 5};
  const std::string file(1000, 'a'), name = "input";
  uint64_t samples = 0;
  int rate = 0;
  const syrinx::SoundSink sink{.begin =
                                   [&](int rate_hz, std::optional<uint64_t>) {
                                     rate = rate_hz;
                                     return syrinx::Status();
                                   },
                               .add =
                                   [&](std::span<const float> some) {
                                     for (const float sample : some) SYRINX_CHECK(std::isfinite(sample));
                                     samples += some.size();
                                     return syrinx::Status();
                                   }};
  syrinx::MonoMixer mixer(limits, name, sink);
  Said child(std::as_bytes(std::span(data, size)));
  const syrinx::Status status =
      syrinx::decode_by(child, {std::as_bytes(std::span(file)), syrinx::SoundContainer::kMatroska, name, mixer});
  SYRINX_CHECK(samples <= static_cast<uint64_t>(limits.max_seconds * rate) + 1);
  if (!status) SYRINX_CHECK(!status.error().message.empty() && status.error().message.size() < 600);
  return 0;
}
