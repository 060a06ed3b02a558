// The messages between a program that reads a recording and its decoding child, over one socket (docs/decoding.md).
//
// The parent sends a DecodeOrder, and bytes of the file where the child asks for them.  The child sends messages: a
// MessageHeader and its body.  kReady or a kFault comes first; then kRead as often as needed, kFormat once, kSamples
// and kSilence; kDone or kFault ends.  Both sides are built together and run on one machine: numbers are in its own
// order.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "audio/guards/sound_container.h"

namespace syrinx {

inline constexpr int kDecodeSocket = 3;  // the child's descriptor
inline constexpr uint32_t kDecodeVersion = 1;
inline constexpr uint32_t kMaxReadBytes = 1 << 16;  // of the file at once
inline constexpr uint32_t kMaxDecodeChannels = 64;
inline constexpr uint32_t kMaxBlockSamples = 1 << 16;  // of all channels
inline constexpr uint32_t kMaxDetailBytes = 300;
// A file's silences together: an hour, and no more work than an hour at 48 kHz.
inline constexpr uint64_t kMaxSilenceS = 3600, kMaxSilentFrames = kMaxSilenceS * 48000;
constexpr uint64_t max_silent_frames(uint32_t rate_hz) { return std::min(kMaxSilenceS * rate_hz, kMaxSilentFrames); }

struct DecodeOrder {
  SoundContainer container;
  uint32_t takes_parts;  // of a file that is cut off, its whole beginning is wanted
  uint64_t file_bytes;
};

enum class DecodeMessage : uint32_t { kReady = 1, kRead, kFormat, kSamples, kSilence, kDone, kFault };

struct MessageHeader {
  DecodeMessage kind;
  uint32_t bytes;  // of the body
};

struct ReadyBody {
  uint32_t version;
};
struct ReadBody {
  uint64_t at;
  uint32_t bytes;
  uint32_t unused;
};
struct FormatBody {
  uint32_t rate_hz, channels;
};
struct SilenceBody {
  uint64_t frames;
};

// Why a file is not decoded, or not to its end.  The parent has the sentences; a detail follows where one is told here.
enum class DecodeFault : uint32_t {
  kNone,
  kNoLibraries = 1,  // detail: the sentence of load_libav()
  kNoSandbox,        // detail: which limit the system refused
  kCutOff,           // the file announces more than it holds
  kDamaged,          // detail: the libraries' words
  kNoSound,          // no audio track
  kUnknownCodec,     // detail: its name
  kNoDemuxer,        // these libraries lack what reads the container
  kUnknownSamples,   // of a format that no decoder is known to give
  kFormatChanges,    // of rate or channels
  kTooManyChannels,  // more than kMaxDecodeChannels
  kNoMemory,         // more than the limit
};

}  // namespace syrinx
