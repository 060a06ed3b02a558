// A bounded queue of bytes from the thread that makes an answer to the transport that sends it.
//
// The producer begins with a head, whole or to be followed by blocks, and ends with finish() or abort().  When the
// client reads slowly the queue fills and write() waits; when the client is gone write() returns kCancelled.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/spsc_queue.h"
#include "server/http/http_message.h"
#include "server/http/waker.h"

namespace syrinx::server {

class ReplyStream {
 public:
  static constexpr size_t kBlocks = 32, kBlockBytes = 8192;
  using Block = std::vector<std::byte>;
  enum class End { kOpen, kFinished, kAborted };

  // For the producer; one thread at a time.
  // Once, first of all.  A whole head is the answer, which goes out with finish() or abort().  Where telling of it
  // throws, whatever comes next does.
  void begin(HttpReply head, bool whole);
  bool begun() const;
  bool has_room() const { return blocks_.size() < blocks_.capacity(); }  // for a block
  // Waits while the queue is full.  kCancelled once the client is gone.
  Status write(std::span<const std::byte> bytes);
  Status write(std::string_view text) { return write(std::as_bytes(std::span(text.data(), text.size()))); }
  // Status of an answer that failed behind its head, for log and metrics; an event tells the client.
  void note_failure(int status);
  // `last` comes behind what was written, is seen no earlier than the end, and waits for nothing: a client that leaves
  // when it has heard an answer's last words has heard all of it.
  void finish(std::string_view last = {}) { end(End::kFinished, last); }
  void abort(std::string_view last = {}) { end(End::kAborted, last); }  // the client is to see that it is broken off
  // `action` is called by cancel(), at once if that was called already; empty: none.  When this returns, the previous
  // action is not running.
  void on_cancel(std::function<void()> action);
  bool cancelled() const { return cancelled_.load(std::memory_order_acquire); }

  // For the transport; one thread.
  // `wake` is called, from the producer's thread, when there is something new; once, until pop_news().
  void on_news(std::function<void()> wake) { waker_.set(std::move(wake)); }
  // State so far.  Blocks that were written before `end` was reached can still be popped.
  struct News {
    const HttpReply* head = nullptr;  // null: not begun; stays where it is
    bool whole = false;
    End end = End::kOpen;
    int failure = 0;  // its status, where it has failed behind its head
  };
  News pop_news();
  bool try_pop(Block& block);
  void cancel();  // the client is gone; any thread

 private:
  bool wait_for_room();
  void end(End end, std::string_view last);

  SpscQueue<Block> blocks_{kBlocks};
  std::atomic<bool> cancelled_{false};
  Waker waker_;
  mutable std::mutex mutex_;
  std::condition_variable room_;
  std::optional<HttpReply> head_;  // the following by mutex_
  bool whole_ = false;
  End end_ = End::kOpen;
  int failure_ = 0;
  Block last_;  // behind the blocks
  std::mutex action_mutex_;
  std::function<void()> action_;  // by action_mutex_
};

}  // namespace syrinx::server
