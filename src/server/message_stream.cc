#include "server/message_stream.h"

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

bool MessageStream::try_pop(Message& message) {
  if (!outgoing_.try_pop(message)) return false;
  outgoing_bytes_.fetch_sub(message.bytes.size());
  poke();
  return true;
}

std::optional<MessageStream::End> MessageStream::ended() const {
  const std::lock_guard lock(mutex_);
  return end_;
}

}  // namespace syrinx::server
