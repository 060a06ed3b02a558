// Test signals, the decoder that judges our encoders (libsndfile), and sinks that fail.
#pragma once

#include <sndfile.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <span>
#include <string>
#include <vector>

#include "audio/encode/byte_sink.h"
#include "base/rng.h"

namespace syrinx {

// A voice of sorts: a gliding pitch with falling harmonics, loud and soft in turn, and a little breath.
inline std::vector<float> voice_like(size_t samples, int rate_hz, uint64_t seed = 1) {
  Rng rng(seed);
  std::vector<float> sound(samples);
  double phase = 0;
  for (size_t i = 0; i < samples; ++i) {
    const double t = static_cast<double>(i) / rate_hz;
    phase += 2 * std::numbers::pi * (140 + 30 * std::sin(2 * std::numbers::pi * 0.7 * t)) / rate_hz;
    double value = 0;
    for (int k = 1; k <= 12; ++k) value += std::sin(k * phase) / (k * k);
    const double loudness = 0.5 - 0.5 * std::cos(2 * std::numbers::pi * 2.5 * t);
    sound[i] = static_cast<float>(0.4 * loudness * value + 0.0005 * rng.normal());
  }
  return sound;
}

struct Decoded {
  int rate_hz = 0, channels = 0;
  int64_t announced_frames = 0;  // by the header
  std::vector<float> samples;
  std::string error;
};

inline Decoded decode(const std::string& path) {
  Decoded sound;
  SF_INFO info{};
  SNDFILE* const file = sf_open(path.c_str(), SFM_READ, &info);
  if (file == nullptr) {
    sound.error = sf_strerror(nullptr);
    return sound;
  }
  sound.rate_hz = info.samplerate;
  sound.channels = info.channels;
  sound.announced_frames = info.frames;
  float block[4096];
  for (sf_count_t got; (got = sf_read_float(file, block, std::size(block))) > 0;) {
    sound.samples.insert(sound.samples.end(), block, block + got);
  }
  if (sf_error(file) != SF_ERR_NO_ERROR) sound.error = sf_strerror(file);
  sf_close(file);
  return sound;
}

// Signal over difference in dB, `copy` moved by `shift` samples.
inline double snr_db(std::span<const float> original, std::span<const float> copy, size_t shift = 0) {
  double signal = 0, noise = 0;
  for (size_t i = 0; i < original.size(); ++i) {
    const double got = i + shift < copy.size() ? copy[i + shift] : 0.0f;
    signal += static_cast<double>(original[i]) * original[i];
    noise += (original[i] - got) * (original[i] - got);
  }
  return 10 * std::log10(signal / std::max(noise, 1e-30));
}

// Takes `good_bytes`, then fails like a full disk; counts what came after the failure.
struct FailingSink {
  explicit FailingSink(size_t good_bytes, bool can_patch) : left(good_bytes) {
    sink.append = [this](std::span<const std::byte> bytes) { return take(bytes.size()); };
    if (can_patch) sink.patch = [this](uint64_t, std::span<const std::byte> bytes) { return take(bytes.size()); };
  }
  Status take(size_t bytes) {
    if (failed) ++calls_after;
    if (bytes > left) {
      failed = true;
      return fail(Code::kIo, "cannot write 'x': No space left on device; make room");
    }
    left -= bytes;
    return {};
  }
  ByteSink sink;
  size_t left;
  bool failed = false;
  int calls_after = 0;
};

}  // namespace syrinx
