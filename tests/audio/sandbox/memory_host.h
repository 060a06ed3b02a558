// A decoding without a child: the file and its sound in memory.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "audio/sandbox/libav_decoder.h"

namespace syrinx {

struct MemoryHost final : DecodeHost {
  explicit MemoryHost(const std::string& bytes) : file(bytes) {}

  bool read(uint64_t at, std::span<std::byte> out) override {
    if (at > file.size() || out.size() > file.size() - at) return false;
    std::memcpy(out.data(), file.data() + at, out.size());
    return true;
  }
  bool give_format(uint32_t rate, uint32_t count) override {
    rate_hz = rate;
    channels = count;
    return true;
  }
  bool give_samples(std::span<const float> some) override {
    samples.insert(samples.end(), some.begin(), some.end());
    return samples.size() <= max_samples;
  }
  bool give_silence(uint64_t frames) override {
    silence += frames;
    silences.push_back(frames);
    return silence <= max_samples;
  }

  const std::string& file;
  size_t max_samples = size_t{1} << 22;
  uint32_t rate_hz = 0, channels = 0;
  uint64_t silence = 0;
  std::vector<uint64_t> silences;
  std::vector<float> samples;
};

}  // namespace syrinx
