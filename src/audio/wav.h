// RIFF WAVE: a bounded reader that trusts nothing in the file, and the header that the encoder writes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "audio/mono_mixer.h"
#include "audio/sound_limits.h"
#include "base/result.h"

namespace syrinx {

inline constexpr size_t kWavHeaderBytes = 44;

// Header of a mono s16 file.  No size: both fields say 0xFFFFFFFF, "until the end", as for more than they can hold.
std::array<std::byte, kWavHeaderBytes> wav_header(int rate_hz, std::optional<uint64_t> data_bytes);

struct WavSound {
  int rate_hz = 0;
  int channels = 0;
  std::vector<float> samples;  // [frames, channels], in [-1, 1] for integer files

  size_t frames() const { return channels == 0 ? 0 : samples.size() / static_cast<size_t>(channels); }
  double seconds() const { return rate_hz == 0 ? 0 : static_cast<double>(frames()) / rate_hz; }
};

// Integer samples of 8, 16, 24 or 32 bits, floats of 32, A-law and mu-law, plain or in the extensible form; other
// chunks are skipped. The data reach to the end where their size is 0xFFFFFFFF (or any from 0x7FFFF000 that the file
// does not hold), or where it is 0 and the writer never closed the file: the size of all is 0, unknown too, or ends
// before the data, or no chunks are behind them. Memory: the samples, after the limits were checked.  Errors, all
// naming `name`: kDataLoss, kUnsupported, kLimitExceeded.
Result<WavSound> read_wav(std::span<const std::byte> file, const std::string& name, const SoundLimits& limits = {});
// How samples stand in bytes, little endian.
enum class PcmCoding : uint8_t { kInteger, kFloat, kALaw, kMuLaw };

struct PcmFormat {
  int rate_hz = 0;
  int channels = 0;
  int bits = 0;
  PcmCoding coding = PcmCoding::kInteger;
  size_t frame_bytes() const { return static_cast<size_t>(channels) * static_cast<size_t>(bits / 8); }
};

// Header of a WAV file.
struct WavHead {
  PcmFormat format;
  size_t bytes = 0;                        // of the head: the sound begins there
  std::optional<uint32_t> announced = {};  // bytes of sound; absent: until the end
};
// Nothing while the head goes on behind `bytes`, which are the first of the file, or all of it.  A size of 0 is
// believed where a chunk follows, of which 8 bytes are looked at.  Errors: as read_wav().
Result<std::optional<WavHead>> read_wav_head(std::span<const std::byte> bytes, const std::string& name,
                                             const SoundLimits& limits, bool is_whole = false);
// All whole samples of `bytes`, replacing `samples`; not checked for being numbers.
void decode_pcm(std::span<const std::byte> bytes, const PcmFormat& format, std::vector<float>& samples);

// The same block by block, in little memory, as one channel.  `limits` are the mixer's.  Floats far beyond full scale
// are scaled or refused (float_range.h).
Status decode_wav(std::span<const std::byte> file, const std::string& name, const SoundLimits& limits,
                  MonoMixer& mixer);

}  // namespace syrinx
