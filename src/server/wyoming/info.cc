#include "server/wyoming/info.h"

#include <algorithm>
#include <utility>

#include "engine/version.h"
#include "text/unicode.h"

namespace syrinx::server::wyoming {
namespace {

Json attribution(const char* name, const char* url) {
  Json json;
  json.set("name", name);
  json.set("url", url);
  return json;
}

Json maker_of(ModelFamily family) {
  switch (family) {
    case ModelFamily::kKokoro: return attribution("hexgrad", "https://huggingface.co/hexgrad/Kokoro-82M");
    case ModelFamily::kPocketTts: return attribution("Kyutai", "https://huggingface.co/kyutai/pocket-tts");
  }
  return attribution("unknown", "");
}

// What programs, models and voices have in common.
Json artifact(const std::string& name, Json made_by, std::string description) {
  Json json;
  json.set("name", name);
  json.set("attribution", std::move(made_by));
  json.set("installed", true);
  json.set("description", std::move(description));
  json.set("version", version());
  return json;
}

Json program(const char* does) { return artifact("syrinx", attribution("Syrinx", ""), does); }

Json voice_of(const SpeechModel& speech, const ListedVoice& voice) {
  Json json = artifact(voice.id, maker_of(speech.family()), fmt::format("{} ({})", voice.id, speech.id()));
  Json::Array languages;
  if (!voice.language.empty()) languages.emplace_back(voice.language);
  json.set("languages", std::move(languages));
  return json;
}

Json speaking_program(const SpeechModel& speech) {
  Json::Array voices;
  for (const ListedVoice& voice : speech.voices()) voices.push_back(voice_of(speech, voice));
  Json json = program("Real-time speech");
  json.set("voices", std::move(voices));
  json.set("supports_synthesize_streaming", true);
  return json;
}

// "en_US" and "en-us" are one; "en" is part of both.
bool is_of(const ListedVoice& voice, std::string_view language) {
  std::string asked = text::ascii_lower(language);
  std::replace(asked.begin(), asked.end(), '_', '-');
  const std::string_view known = voice.language;
  if (known.empty() || asked.empty()) return false;
  const size_t common = std::min(known.size(), asked.size());
  return known.substr(0, common) == asked.substr(0, common) && (known.size() == common || known[common] == '-') &&
         (asked.size() == common || asked[common] == '-');
}

}  // namespace

Event info(const SpeechModel* speech) {
  Json::Array speaking;
  if (speech != nullptr) speaking.push_back(speaking_program(*speech));
  Event event{.type = "info"};
  event.data.set("asr", Json::Array());
  event.data.set("tts", std::move(speaking));
  for (const char* domain : {"handle", "intent", "wake", "mic", "snd"}) event.data.set(domain, Json::Array());
  return event;
}

const std::string& Description::of(const Service::Models& models) {
  if (written_.empty() || models.speech != speech_) {
    speech_ = models.speech;
    written_ = written(info(speech_.get()));
  }
  return written_;
}

std::string voice_of_language(const SpeechModel& speech, std::string_view language) {
  const auto preferred = speech.find_voice("");
  std::string found;
  for (const ListedVoice& voice : speech.voices()) {
    if (!is_of(voice, language)) continue;
    if (preferred && voice.id == *preferred) return voice.id;
    if (found.empty()) found = voice.id;
  }
  return found;
}

}  // namespace syrinx::server::wyoming
