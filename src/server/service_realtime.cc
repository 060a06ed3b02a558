// Sessions of /v1/realtime.
#include <memory>
#include <utility>

#include "server/realtime/handshake.h"
#include "server/realtime/session.h"
#include "server/service.h"
#include "server/settings/model_id.h"
#include "server/upstream/upstream_settings.h"

namespace syrinx::server {

// The modules of a session: those that the handshake names, else the first of their kind.  What a session for
// transcripts does not need is left out where something recognises.
Service::SessionModules Service::session_modules(const realtime::Handshake& handshake) {
  const std::string& asked = handshake.model;
  const auto named = [&](ModuleKind kind) { return asked.empty() ? nullptr : modules_.find(kind, asked); };
  const auto chosen = [&](ModuleKind kind, Module* by_name) {
    return by_name != nullptr ? by_name : modules_.first(kind);
  };
  Module *const speech = named(ModuleKind::kSpeech), *const recognition = named(ModuleKind::kRecognition);
  SessionModules found;
  found.is_spoken = speech != nullptr || (asked.empty() && modules_.first(ModuleKind::kSpeech) != nullptr);
  found.is_heard = recognition != nullptr || (asked.empty() && modules_.first(ModuleKind::kRecognition) != nullptr);
  found.is_transcription = handshake.is_transcription || (found.is_heard && !found.is_spoken);
  found.recognition = chosen(ModuleKind::kRecognition, recognition);
  if (found.is_transcription && found.recognition != nullptr && speech == nullptr) return found;
  found.speech = chosen(ModuleKind::kSpeech, speech);
  if (!upstream::is_local(settings_)) return found;
  found.chat = modules_.find(ModuleKind::kChat, upstream::local_upstream(settings_).model);
  found.is_local = found.chat != nullptr && found.chat == named(ModuleKind::kChat);
  return found;
}

// Loads what is missing, all of it at once; the request keeps what is there while it waits.
std::optional<HttpReply> Service::load_for_session(const SessionModules& found, Models& models, HttpRequest& request) {
  std::optional<HttpReply> not_yet;
  for (Module* const module : {found.speech, found.recognition, found.chat}) {
    if (module == nullptr) continue;
    auto offered = offer(module->plan.kind, module->plan.id);
    if (!offered) {
      if (!offered.error().until) return std::move(offered).error();
      not_yet = std::move(offered).error();
      continue;
    }
    if (module == found.speech) models.speech = std::move(offered->models.speech);
    if (module == found.recognition) models.recognition = std::move(offered->models.recognition);
    if (module == found.chat) models.chat = std::move(offered->models.chat);
  }
  request.kept = not_yet ? std::make_shared<const Models>(models) : nullptr;
  return not_yet;
}

// It takes slots by itself, while it speaks or hears.
HttpReply Service::realtime(HttpRequest& request) {
  if (const auto fault = realtime::handshake_fault(request)) return realtime::refused_handshake(*fault);
  if (const auto closed = why_closed(/*to_new_work=*/true)) return error_reply(*closed);
  const realtime::Handshake handshake = realtime::read_handshake(request, settings_.realtime_dialect);
  const SessionModules found = session_modules(handshake);
  const bool is_upstream = found.is_local || (answers_turns_ && handshake.model == settings_.upstream_model);
  const bool is_known =
      found.is_heard || found.is_spoken || is_upstream || realtime::is_realtime_model(handshake.model);
  if (!is_known || (found.speech == nullptr && found.recognition == nullptr))
    return error_reply(no_model(true, "", handshake.model));
  // Before one is built; the last place may still go to somebody else.
  if (sessions_.busy() == sessions_.size()) return error_reply(all_busy(sessions_.size(), "session"));
  Models models;
  if (auto not_yet = load_for_session(found, models, request)) return std::move(*not_yet);
  Module *const speech = found.speech, *const recognition = found.recognition;
  const auto session = std::make_shared<realtime::Session>(
      realtime::SessionOrder{
          .speech = std::move(models.speech),
          .recognition = std::move(models.recognition),
          .replies = replies_,
          .answers_turns = answers_turns_,
          .take_slot = [this, speech] { return take_slot(speech); },
          .has_slot = [this, speech] { return speech != nullptr && has_room(*speech); },
          .start_ear = [this,
                        recognition](const std::shared_ptr<realtime::Ear>& ear) { return start_ear(recognition, ear); },
          .asked_model = handshake.model,
          .is_transcription = found.is_transcription,
          .strict = settings_.strict,
          .max_backlog_s = settings_.max_backlog_s,
          .max_clip_s = settings_.max_clip_s,
          .events_per_s = static_cast<double>(settings_.session_events_per_s),
          .kb_per_s = static_cast<double>(settings_.session_kb_per_s),
          .id = request.id,
          .dialect = handshake.dialect,
          .max_text_characters = static_cast<size_t>(settings_.max_text_characters),
          .max_session_s = settings_.max_session_s,
          .idle_s = settings_.session_idle_s},
      reports());
  const auto chat = std::move(models.chat);  // held, so that it stays as long as the session
  if (!sessions_.try_start([session, chat](SlotWatch&) { session->run(); }, [session] { session->end(); }))
    return error_reply(all_busy(sessions_.size(), "session"));
  give_room(*session->messages(), request);
  HttpReply reply{.messages = session->messages()};
  if (!handshake.protocol.empty()) reply.headers.push_back({"Sec-WebSocket-Protocol", handshake.protocol});
  return reply;
}

}  // namespace syrinx::server
