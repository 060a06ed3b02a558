#include "server/realtime/sound_format.h"

#include <array>

#include "base/in_quotes.h"
#include "engine/speech/speech_session.h"

namespace syrinx::server::realtime {
namespace {

constexpr int kPcmRateHz = 24000;
constexpr int kTelephoneRateHz = 8000;

struct FormatName {
  SoundFormat format;
  const char* released;  // `type` of the object
  const char* beta;
};
constexpr std::array kFormatNames = {
    FormatName{SoundFormat::kPcm, "audio/pcm", "pcm16"},
    FormatName{SoundFormat::kMuLaw, "audio/pcmu", "g711_ulaw"},
    FormatName{SoundFormat::kALaw, "audio/pcma", "g711_alaw"},
};

const FormatName& names_of(SoundFormat format) {
  size_t at = 0;
  while (kFormatNames[at].format != format) ++at;
  return kFormatNames[at];
}

}  // namespace

PcmFormat pcm_format(SoundFormat format) {
  if (format == SoundFormat::kPcm) return {.rate_hz = kPcmRateHz, .channels = 1, .bits = 16};
  return {.rate_hz = kTelephoneRateHz,
          .channels = 1,
          .bits = 8,
          .coding = format == SoundFormat::kMuLaw ? PcmCoding::kMuLaw : PcmCoding::kALaw};
}

Checked take_format(const Json& value, const char* field, SoundFormat& format) {
  if (value.is_null()) return {};
  const Json* const type = value.find("type");
  const bool is_released = type != nullptr;
  const std::string* const name = is_released ? type->string() : value.string();
  if (name == nullptr)
    return refuse(field, "'{}' must be an object with a 'type', or a beta name such as pcm16", field);
  for (const FormatName& each : kFormatNames) {
    if (*name != (is_released ? each.released : each.beta)) continue;
    if (const Json* const rate = value.find("rate"); rate != nullptr && !rate->is_null())
      if (rate->whole() == nullptr || *rate->whole() != rate_hz(each.format))
        return refuse(field, "'{}' must have a 'rate' of {}, or none", field, rate_hz(each.format));
    format = each.format;
    return {};
  }
  return refuse(field, "'{}' is {}; choose audio/pcm, audio/pcmu or audio/pcma", field, in_quotes(*name));
}

Json format_json(SoundFormat format) {
  Json json;
  json.set("type", names_of(format).released);
  if (format == SoundFormat::kPcm) json.set("rate", rate_hz(format));
  return json;
}

const char* beta_format_name(SoundFormat format) { return names_of(format).beta; }

}  // namespace syrinx::server::realtime
