// The voices, those that clients upload among them.
#include <memory>
#include <utility>

#include "base/in_quotes.h"
#include "base/json.h"
#include "server/openai/voice_job.h"
#include "server/service.h"

namespace syrinx::server {
namespace {

// Behind the last slash: what is still coded with `%` is no voice's name.
std::string named_voice(const HttpRequest& request) { return request.path.substr(request.path.rfind('/') + 1); }

}  // namespace

HttpReply Service::voices(HttpRequest& /*request*/) {
  const auto models = loaded_models();
  if (!models) return error_reply(models.error());
  Json::Array list;
  const auto& speech = models->speech;
  if (speech)
    for (const ListedVoice& voice : speech->voices()) list.push_back(voice_json(*speech, voice));
  Json json;
  json.set("voices", std::move(list));
  json.set("uploads", !voice_misuse(speech.get()).has_value());
  return {.body = json.dump()};
}

HttpReply Service::voice(HttpRequest& request) {
  const auto models = loaded_models();
  if (!models) return error_reply(models.error());
  const auto& speech = models->speech;
  const std::string name = named_voice(request);
  const auto found = speech ? speech->find_listed(name) : std::nullopt;
  if (!found) return error_reply(no_voice(name));
  return {.body = voice_json(*speech, *found).dump()};
}

// Refusals that need no form.
std::optional<HttpError> Service::voice_misuse(const SpeechModel* speech) {
  if (speech == nullptr || !speech->engine().clones()) return no_cloning();
  if (speech->shelf().is_open()) return std::nullopt;
  return HttpError{.status = 403,
                   .message = "this server takes no voices; the operator can name a folder for them (voices_dir)",
                   .code = "voices_off"};
}

// The form is read on the slot, too: it may be long.
HttpReply Service::upload_voice(HttpRequest& request) {
  auto models = loaded_models();
  if (!models) return error_reply(models.error());
  if (const auto misuse = voice_misuse(models->speech.get())) return error_reply(*misuse);
  const auto job = std::make_shared<VoiceJob>(std::move(models->speech),
                                              VoiceOrder{.type = std::string(request.header("Content-Type")),
                                                         .body = std::move(request.body),
                                                         .hold = std::move(request.hold),
                                                         .max_voices = static_cast<size_t>(settings_.max_voices),
                                                         .id = request.id},
                                              reports());
  if (const auto refused = start_job(voice_slot_, job, SlotPool::Work::kLive)) return error_reply(*refused);
  return {.stream = job->reply()};
}

HttpReply Service::delete_voice(HttpRequest& request) {
  auto models = serving_models();
  if (!models) return error_reply(models.error());
  VoiceOrder order{.deleted = named_voice(request), .id = request.id};
  if (!models->speech || order.deleted.empty()) return error_reply(no_voice(order.deleted));
  const auto job = std::make_shared<VoiceJob>(std::move(models->speech), std::move(order), reports());
  if (const auto refused = start_job(voice_slot_, job, SlotPool::Work::kLive)) return error_reply(*refused);
  return {.stream = job->reply()};
}

}  // namespace syrinx::server
