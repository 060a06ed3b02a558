#include "server/realtime/event_sender.h"

#include <fmt/format.h>

#include "server/http/request_id.h"

namespace syrinx::server::realtime {

EventSender::EventSender(std::shared_ptr<MessageStream> messages, Dialect dialect)
    : messages_(std::move(messages)), dialect_(dialect), session_(new_request_id().substr(0, 16)) {}

void EventSender::send(ServerEvent event, Json fields, uint64_t group) {
  const char* const name = event_name(event, dialect_);
  if (name == nullptr) return;
  Json json;
  json.set("type", name).set("event_id", new_id("event"));
  if (Json::Object* const members = fields.object(); members != nullptr)
    for (JsonMember& member : *members) json.set(std::move(member.key), std::move(member.value));
  messages_->send({.bytes = json.dump(), .group = group});
}

void EventSender::send_error(const EventFault& fault) {
  Json fields;
  fields.set("error", error_json(fault));
  send(ServerEvent::kError, std::move(fields));
}

std::string EventSender::new_id(const char* kind) { return fmt::format("{}_{}{:06x}", kind, session_, ++ids_); }

}  // namespace syrinx::server::realtime
