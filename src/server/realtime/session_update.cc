// Settings of a session: what a client sets, and what it is told of them.
#include <utility>

#include "server/realtime/session.h"
#include "server/settings/model_id.h"

namespace syrinx::server::realtime {

const std::string& Session::model_id() const { return order_.speech ? order_.speech->id() : order_.recognition->id(); }

Json Session::session_event() const {
  Json session, fields;
  session.set("id", id_);
  Json told = session_json(config_, model_id(), order_.dialect);
  for (JsonMember& member : *told.object()) session.set(std::move(member.key), std::move(member.value));
  return fields.set("session", std::move(session));
}

Checked Session::has_voice(const std::string& voice) const {
  if (!order_.speech) return tl::unexpected(no_model(false, "speaks", ""));
  auto found = order_.speech->find_voice(voice);
  if (!found) return tl::unexpected(std::move(found).error());
  return {};
}

OutputChecks Session::output_checks() const {
  return {.voice = [this](const std::string& voice) { return has_voice(voice); },
          .has_speed = !order_.speech || has_knob(order_.speech->family(), "speed"),
          .strict = order_.strict};
}

Session::Handled Session::update(const ClientMessage& message) {
  const Json* const session = message.fields.find("session");
  if (session == nullptr || session->object() == nullptr)
    return tl::unexpected(bad("session", "'session' must be an object", "missing_required_parameter"));
  const bool is_of_transcription = message.event == ClientEvent::kTranscriptionSessionUpdate;
  const InputChecks checks = input_checks();
  SessionConfig changed = config_;
  changed.is_transcription = changed.is_transcription || (is_of_transcription && checks.can_hear);
  if (auto taken = update_session(*session, output_checks(), checks, changed); !taken) return taken;
  if (!changed.input.is_turns_given) changed.input.turns = default_turns(changed.input, checks, order_.asked_model);
  config_ = std::move(changed);
  log_ignored();
  configure_hearing();
  events_.send(is_of_transcription ? ServerEvent::kTranscriptionSessionUpdated : ServerEvent::kSessionUpdated,
               session_event());
  return {};
}

void Session::log_ignored() const {
  const std::vector<std::string> ignored = ignored_fields(config_);
  if (ignored.empty()) return;
  auto line = begin_log_line(reports_, {}, "session_update", order_.id, model_id(), "done");
  if (!line) return;
  line->set("ignored", Json::Array(ignored.begin(), ignored.end()));
  reports_.log->write(line->dump());
}

}  // namespace syrinx::server::realtime
