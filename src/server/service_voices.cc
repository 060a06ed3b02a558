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

HttpReply Service::voices(HttpRequest& request) {
  Json::Array list;
  Json json;
  if (modules_.first(ModuleKind::kSpeech) == nullptr) {
    if (const auto closed = why_closed(/*to_new_work=*/false)) return error_reply(*closed);
    json.set("voices", std::move(list));
    json.set("uploads", false);
    return {.body = json.dump()};
  }
  const auto offered = offer_of_query(ModuleKind::kSpeech, request);
  if (!offered) return offered.error();
  const SpeechModel& speech = *offered->models.speech;
  for (const ListedVoice& voice : speech.voices()) list.push_back(voice_json(speech, voice));
  json.set("voices", std::move(list));
  json.set("uploads", !voice_misuse(&speech).has_value());
  return {.body = json.dump()};
}

HttpReply Service::voice(HttpRequest& request) {
  const std::string name = named_voice(request);
  if (const auto closed = why_closed(/*to_new_work=*/false)) return error_reply(*closed);
  if (modules_.first(ModuleKind::kSpeech) == nullptr) return error_reply(no_voice(name));
  const auto offered = offer_of_query(ModuleKind::kSpeech, request);
  if (!offered) return offered.error();
  const auto found = offered->models.speech->find_listed(name);
  if (!found) return error_reply(no_voice(name));
  return {.body = voice_json(*offered->models.speech, *found).dump()};
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
  if (modules_.first(ModuleKind::kSpeech) == nullptr) return error_reply(no_cloning());
  auto offered = offer(ModuleKind::kSpeech, named_model(ModuleKind::kSpeech, request));
  if (!offered) return std::move(offered).error();
  if (const auto misuse = voice_misuse(offered->models.speech.get())) return error_reply(*misuse);
  const auto job = std::make_shared<VoiceJob>(std::move(offered->models.speech),
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
  if (const auto closed = why_closed(/*to_new_work=*/true)) return error_reply(*closed);
  VoiceOrder order{.deleted = named_voice(request), .id = request.id};
  if (modules_.first(ModuleKind::kSpeech) == nullptr || order.deleted.empty())
    return error_reply(no_voice(order.deleted));
  auto offered = offer_of_query(ModuleKind::kSpeech, request);
  if (!offered) return std::move(offered).error();
  const auto job = std::make_shared<VoiceJob>(std::move(offered->models.speech), std::move(order), reports());
  if (const auto refused = start_job(voice_slot_, job, SlotPool::Work::kLive)) return error_reply(*refused);
  return {.stream = job->reply()};
}

}  // namespace syrinx::server
