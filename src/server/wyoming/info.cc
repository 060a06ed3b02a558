#include "server/wyoming/info.h"

#include <utility>

#include "base/version.h"

namespace syrinx::server::wyoming {
namespace {

Json attribution(const char* name, const char* url) {
  Json json;
  json.set("name", name);
  json.set("url", url);
  return json;
}

template <class Family>
Json maker_of(const Family& family) {
  return attribution(family.maker, family.url);
}

// Fields shared by programs, models and voices.
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

// The sound's end is the client's to find.
Json recognising_program(const RecognitionModel& recognition) {
  Json model = artifact(recognition.id(), maker_of(recognition.family()), recognition.id());
  Json::Array languages, models;
  for (const std::string& language : recognition.languages()) languages.emplace_back(language);
  model.set("languages", std::move(languages));
  models.push_back(std::move(model));
  Json json = program("Real-time recognition");
  json.set("models", std::move(models));
  json.set("supports_transcript_streaming", recognition.recogniser().hears_streams_as_recordings());
  json.set("requires_external_vad", true);
  return json;
}

}  // namespace

Event info(const SpeechModel* speech, const RecognitionModel* recognition) {
  Json::Array speaking, recognising;
  if (recognition != nullptr) recognising.push_back(recognising_program(*recognition));
  if (speech != nullptr) speaking.push_back(speaking_program(*speech));
  Event event{.type = "info"};
  event.data.set("asr", std::move(recognising));
  event.data.set("tts", std::move(speaking));
  for (const char* domain : {"handle", "intent", "wake", "mic", "snd"}) event.data.set(domain, Json::Array());
  return event;
}

const std::string& Description::of(const Models& models) {
  const uint64_t changes = models.speech ? models.speech->shelf().changes() : 0;
  if (written_.empty() || models.speech != speech_.lock() || models.recognition != recognition_.lock() ||
      changes != changes_) {
    speech_ = models.speech;
    recognition_ = models.recognition;
    changes_ = changes;
    written_ = written(info(models.speech.get(), models.recognition.get()));
  }
  return written_;
}

}  // namespace syrinx::server::wyoming
