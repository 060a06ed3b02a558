#include "server/http/reply_stream.h"

#include <algorithm>
#include <exception>
#include <new>
#include <utility>

#include "base/check.h"

namespace syrinx::server {

void ReplyStream::begin(HttpReply head, bool whole) {
  {
    const std::lock_guard lock(mutex_);
    SYRINX_CHECK(!head_);
    head_ = std::move(head);
    whole_ = whole;
  }
  try {
    waker_.tell();
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): the head stays, and is told with the next news
  }
}

bool ReplyStream::begun() const {
  const std::lock_guard lock(mutex_);
  return head_.has_value();
}

Status ReplyStream::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const std::span<const std::byte> part = bytes.first(std::min(bytes.size(), kBlockBytes));
    if (!wait_for_room()) return fail(Code::kCancelled, "the client has closed the connection");
    SYRINX_CHECK(blocks_.try_push(Block(part.begin(), part.end())));  // nobody else pushes
    waker_.tell();
    bytes = bytes.subspan(part.size());
  }
  return {};
}

void ReplyStream::note_failure(int status) {
  const std::lock_guard lock(mutex_);
  failure_ = status;
}

// False when the client is gone.
bool ReplyStream::wait_for_room() {
  if (!has_room()) {
    std::unique_lock lock(mutex_);
    room_.wait(lock, [&] { return has_room() || cancelled(); });
  }
  return !cancelled();
}

void ReplyStream::end(End end, std::string_view last) {
  const auto bytes = std::as_bytes(std::span(last.data(), last.size()));
  Block block;
  try {
    block.assign(bytes.begin(), bytes.end());
  } catch (const std::bad_alloc&) {  // the end is told all the same, and not as that of a whole answer
    end = End::kAborted;
  }
  {
    const std::lock_guard lock(mutex_);
    end_ = end;
    last_ = std::move(block);
  }
  waker_.tell();
}

void ReplyStream::on_cancel(std::function<void()> action) {
  const std::lock_guard lock(action_mutex_);
  action_ = std::move(action);
  if (cancelled() && action_) action_();
}

ReplyStream::News ReplyStream::pop_news() {
  waker_.taken();
  const std::lock_guard lock(mutex_);
  return {.head = head_ ? &*head_ : nullptr, .whole = whole_, .end = end_, .failure = failure_};
}

bool ReplyStream::try_pop(Block& block) {
  const bool popped = blocks_.try_pop(block);
  const std::lock_guard lock(mutex_);  // so that a producer that has just found it full does not miss this
  if (popped) {
    room_.notify_one();
    return true;
  }
  if (last_.empty()) return false;
  if (!blocks_.try_pop(block)) block = std::exchange(last_, {});  // what was written just before the end goes first
  return true;
}

void ReplyStream::cancel() {
  {
    const std::lock_guard lock(mutex_);
    cancelled_.store(true, std::memory_order_release);
    room_.notify_all();
  }
  const std::lock_guard lock(action_mutex_);
  if (action_) action_();
}

}  // namespace syrinx::server
