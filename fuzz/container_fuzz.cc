// Any bytes to FFmpeg's libraries, as the decoding child hands them on, in this process: the sandbox is of another
// test.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "audio/sandbox/libav_decoder.h"
#include "base/check.h"

namespace {

constexpr size_t kMaxBytes = 16384;                 // FFmpeg compares each tag with all others
constexpr size_t kMaxAllocation = size_t{1} << 20;  // this process has no limit of its own
constexpr uint64_t kMaxSamples = uint64_t{1} << 20;

struct Host final : syrinx::DecodeHost {
  explicit Host(std::span<const std::byte> bytes) : file(bytes) {}
  bool read(uint64_t at, std::span<std::byte> out) override {
    SYRINX_CHECK(at <= file.size() && out.size() <= file.size() - at);
    std::memcpy(out.data(), file.data() + at, out.size());
    return true;
  }
  bool give_format(uint32_t rate_hz, uint32_t count) override {
    SYRINX_CHECK(channels == 0 && rate_hz > 0 && count > 0 && count <= syrinx::kMaxDecodeChannels);
    channels = count;
    rate = rate_hz;
    return true;
  }
  bool give_samples(std::span<const float> some) override {
    SYRINX_CHECK(channels > 0 && !some.empty() && some.size() % channels == 0);
    SYRINX_CHECK(some.size() <= syrinx::kMaxBlockSamples);
    samples += some.size();
    return samples < kMaxSamples;
  }
  bool give_silence(uint64_t frames) override {
    SYRINX_CHECK(channels > 0 && frames > 0 && frames <= syrinx::max_silent_frames(rate) - silence);
    silence += frames;
    return true;
  }
  std::span<const std::byte> file;
  uint64_t samples = 0, silence = 0;
  uint32_t channels = 0, rate = 0;
};

const syrinx::Libav& libav() {
  static const syrinx::Libav loaded = [] {
    const auto found = syrinx::find_libav();
    SYRINX_CHECK(found.has_value());
    (*found)->av_max_alloc(kMaxAllocation);
    return **found;
  }();
  return loaded;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto file = std::as_bytes(std::span(data, size));
  auto container = syrinx::container_of(file);
  if (!container && size > 4 && std::memcmp(data, "OggS", 4) == 0) container = syrinx::SoundContainer::kOggFlac;
  if (!container || size > kMaxBytes) return 0;
  Host whole(file), part(file);
  const auto end = syrinx::decode_libav(libav(), {*container, 0, size}, whole);
  SYRINX_CHECK(end.detail.size() <= syrinx::kMaxDetailBytes);
  static_cast<void>(syrinx::decode_libav(libav(), {*container, 1, size}, part));
  SYRINX_CHECK(part.samples >= whole.samples);
  return 0;
}
