// Events on their way to the client, by the names of its dialect.  One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "server/http/message_stream.h"
#include "server/realtime/events.h"

namespace syrinx::server::realtime {

class EventSender {
 public:
  // Most messages of one client event, or of one step of a response.
  static constexpr size_t kAtOnce = 16;
  static_assert(2 * kAtOnce < MessageStream::kMessages);

  EventSender(std::shared_ptr<MessageStream> messages, Dialect dialect);

  Dialect dialect() const { return dialect_; }
  MessageStream& messages() const { return *messages_; }
  const std::shared_ptr<MessageStream>& shared_messages() const { return messages_; }
  // Whether the client has taken enough that it can be told more.
  bool has_room() const { return messages_->has_room(kAtOnce); }
  // The same for sound: behind it there is room for what cannot be taken back.
  bool has_room_for_sound() const { return messages_->has_room_for_groups(kAtOnce); }
  // With a type and an id in front of the fields; nothing where the dialect has no such event.  `group`: of messages
  // that MessageStream::revoke() may take back.
  void send(ServerEvent event, Json fields, uint64_t group = 0);
  void send_error(const EventFault& fault);
  // "item_3f2a...": told apart from those of other sessions, too.
  std::string new_id(const char* kind);

 private:
  const std::shared_ptr<MessageStream> messages_;
  const Dialect dialect_;
  const std::string session_;  // part of every id
  uint64_t ids_ = 0;
};

}  // namespace syrinx::server::realtime
