#include "server/http/message_stream.h"

#include "base/check.h"

namespace syrinx::server {

bool MessageStream::try_receive(Message& message) {
  if (!incoming_.try_pop(message)) return false;
  incoming_bytes_.fetch_sub(message.bytes.size());
  waker_.tell();
  return true;
}

void MessageStream::send(Message message) {
  if (is_gone()) return;
  outgoing_bytes_.fetch_add(message.bytes.size());
  SYRINX_CHECK(outgoing_.try_push(std::move(message)));
  waker_.tell();
}

void MessageStream::end(End end) {
  {
    const std::lock_guard lock(mutex_);
    if (!end_) end_ = std::move(end);
  }
  waker_.tell();
}

void MessageStream::wait(std::chrono::nanoseconds limit) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, limit, [this] { return poked_; });
  poked_ = false;
}

void MessageStream::poke() {
  const std::lock_guard lock(mutex_);
  poked_ = true;
  changed_.notify_one();
}

void MessageStream::leave(std::optional<End> end) {
  {
    const std::lock_guard lock(mutex_);
    if (end && !end_) end_ = std::move(end);
  }
  gone_.store(true, std::memory_order_release);
  poke();
  waker_.tell();
}

void MessageStream::end_when_idle() {
  ending_.store(true, std::memory_order_release);
  poke();
}

void MessageStream::deliver(Message message) {
  incoming_bytes_.fetch_add(message.bytes.size());
  SYRINX_CHECK(incoming_.try_push(std::move(message)));
  poke();
}

bool MessageStream::has_room_for(size_t bytes, Room& room) const {
  if (bytes <= kShortBytes || !begin_room_) return true;
  if (!room) room = begin_room_();
  return room(bytes);
}

bool MessageStream::try_pop(Message& message) {
  bool popped = false, is_revoked = true;
  while (is_revoked && outgoing_.try_pop(message)) {
    popped = true;
    outgoing_bytes_.fetch_sub(message.bytes.size());
    is_revoked = message.group != 0 && message.group <= revoked_.load(std::memory_order_acquire);
  }
  if (popped) poke();
  return popped && !is_revoked;
}

std::optional<MessageStream::End> MessageStream::ended() const {
  const std::lock_guard lock(mutex_);
  return end_;
}

}  // namespace syrinx::server
