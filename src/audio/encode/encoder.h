// Mono sound to the bytes of a file or stream, as it is made: one encoder and one header for a whole reply, each frame
// handed to the sink as soon as it is complete.
//
//   SYRINX_TRY(auto encoder, AudioEncoder::create(AudioFormat::kFlac, {.rate_hz = 24000}, file_sink(file)));
//   SYRINX_TRY_VOID(encoder->write(samples));      // any number of times, any sizes
//   SYRINX_TRY_VOID(encoder->finish());            // once; without it the stream is cut off
//
// format  content                                       when the sink can patch             when it cannot
// wav     RIFF, s16                                     true sizes                          sizes 0xFFFFFFFF
// pcm     s16le without a header
// flac    16 bits, frames of 1152 samples               true length and MD5                 length unknown, no MD5
// opus    Ogg, packets of 20 ms, 48 kbit/s, 8/12/16/24/48 kHz; a page ends with each write(); length exact by trimming
// mp3     96 kbit/s constant (48 below 16 kHz)          tag with the exact length           no tag
// aac     64 kbit/s (32 below 16 kHz), frames of 1024 samples each with its header (ADTS), which tell no length: there
//         are 1024 samples of delay in front and silence behind, up to a whole frame
//
// Samples outside [-1, 1] are clipped and counted; those that are no number become 0.  One thread at a time.
// Errors: the sink's own (returned again by every later call), kUnsupported (rate and format do not go together;
// aac without FFmpeg's libraries, libav.h).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "audio/encode/byte_sink.h"
#include "base/result.h"

namespace syrinx {

enum class AudioFormat { kWav, kPcm, kFlac, kOpus, kMp3, kAac };

const char* audio_format_name(AudioFormat format);              // "wav", ...
Result<AudioFormat> parse_audio_format(std::string_view name);  // kInvalidArgument listing the known ones
std::optional<AudioFormat> audio_format_of(
    std::string_view path);  // by the ending: .wav .pcm .raw .flac .opus .ogg .mp3 .aac

struct EncoderOptions {
  int rate_hz = 24000;
  std::optional<uint64_t> dither_seed = {};  // wav, pcm and flac
};

class AudioEncoder {
 public:
  static Result<std::unique_ptr<AudioEncoder>> create(AudioFormat format, const EncoderOptions& options, ByteSink sink);
  virtual ~AudioEncoder() = default;
  AudioEncoder(const AudioEncoder&) = delete;
  AudioEncoder& operator=(const AudioEncoder&) = delete;

  Status write(std::span<const float> samples);
  Status finish();
  uint64_t samples() const { return samples_; }  // taken so far
  virtual uint64_t clipped_samples() const = 0;

 protected:
  AudioEncoder() = default;
  virtual Status encode(std::span<const float> samples) = 0;
  virtual Status close() = 0;

 private:
  Status remember(Status status);

  uint64_t samples_ = 0;
  std::optional<Error> error_;
  bool finished_ = false;
};

}  // namespace syrinx
