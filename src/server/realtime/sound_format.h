// How sound travels in a realtime session: one channel, s16 little endian at 24 kHz, or G.711 at 8 kHz.  Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "audio/wav.h"
#include "base/json.h"
#include "server/http/json_fields.h"

namespace syrinx::server::realtime {

enum class SoundFormat : uint8_t { kPcm, kMuLaw, kALaw };

PcmFormat pcm_format(SoundFormat format);
inline int rate_hz(SoundFormat format) { return pcm_format(format).rate_hz; }
inline size_t sample_bytes(SoundFormat format) { return pcm_format(format).frame_bytes(); }

// {"type": "audio/pcm", "rate": 24000}, or a beta name; null changes nothing.
Checked take_format(const Json& value, const char* field, SoundFormat& format);
Json format_json(SoundFormat format);
const char* beta_format_name(SoundFormat format);  // "pcm16", ...

}  // namespace syrinx::server::realtime
