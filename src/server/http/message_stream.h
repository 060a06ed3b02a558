// Two bounded queues of messages between a WebSocket and the thread that answers it.
//
// Neither side waits for the other in a queue: a session that finds no room for what it has to say makes no more of it
// until there is some, and a transport that finds none stops reading.  Memory: each way kWaitingBytes and what is added
// to them at once, a client's message or the answer to one; messages above kShortBytes share a room (set_room()).
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "base/spsc_queue.h"
#include "server/http/waker.h"

namespace syrinx::server {

class MessageStream {
 public:
  static constexpr size_t kMessages = 64;                     // each way
  static constexpr size_t kWaitingBytes = size_t{256} << 10;  // each way, above which there is no room for more

  // Takes room for so many bytes of one message, all in all; false: there is none.  What it has taken is free with it.
  using Room = std::function<bool(size_t bytes)>;
  struct Message {
    std::string bytes;
    bool is_text = true;  // else binary
    // Group for revoke(); 0: always sent.
    uint64_t group = 0;
    std::optional<int64_t> came_ns = {};  // of a client's, by system_clock(), where the transport says so
    Room room = {};                       // of a long one
  };
  // How a connection is closed: a code of RFC 6455, section 7.4, and at most 120 bytes of UTF-8.
  struct End {
    int code = 1000;
    std::string reason = {};
  };
  static constexpr size_t kShortBytes = size_t{1} << 20;  // of a message, above which it needs room
  static End going_away() { return {.code = 1001, .reason = "the server is going down"}; }

  // For the session; one thread at a time.
  bool try_receive(Message& message);
  size_t room() const { return outgoing_.capacity() - outgoing_.size(); }
  // Whether so many more may be made: not where what waits already is long.
  bool has_room(size_t messages) const { return room() >= messages && outgoing_bytes_.load() < kWaitingBytes; }
  // Whether no more work is to begin.
  bool is_ending() const { return ending_.load(std::memory_order_acquire); }
  // Whether so much more may be made that may have to be taken back: half of the queue is left for what may not.
  bool has_room_for_groups(size_t messages) const {
    return room() >= kMessages / 2 + messages && outgoing_bytes_.load() < kWaitingBytes / 2;
  }
  // Messages of that group, and of those with lower numbers, that are not on their way yet are not sent any more.
  void revoke(uint64_t group) { revoked_.store(group, std::memory_order_release); }
  // There must be room(); dropped when the client is gone.
  void send(Message message);
  // Room for what the session keeps of the client's messages; empty: none is needed.
  Room begin_room() const { return begin_room_ ? begin_room_() : Room(); }
  // Behind what was sent; the first one counts.
  void end(End end);
  // Until something has changed since the last wait: a message, room, the client, a poke; or for `limit`.
  void wait(std::chrono::nanoseconds limit);

  // Any thread.
  void poke();  // ends a wait
  bool is_gone() const { return gone_.load(std::memory_order_acquire); }
  // The client is gone or, with an end, is to go at once, whatever it has not been sent yet.
  void leave(std::optional<End> end = {});
  // The server goes down: the session is to end as soon as nothing is under way in it.
  void end_when_idle();

  // Where long messages of the client find room; before the transport has the stream.  Without it all do.
  void set_room(std::function<Room()> begin) { begin_room_ = std::move(begin); }

  // For the transport; one thread.
  // Whether a message of which so much has come may go on; `room` is its own, empty at first.
  bool has_room_for(size_t bytes, Room& room) const;
  // `wake` is called, from any thread, when there is something to send, room to deliver, or an end; once, until
  // taken().
  void on_news(std::function<void()> wake) { waker_.set(std::move(wake)); }
  void taken() { waker_.taken(); }
  bool takes_more() const { return incoming_.size() < kMessages && incoming_bytes_.load() < kWaitingBytes; }
  void deliver(Message message);  // takes_more() must have said so
  bool try_pop(Message& message);
  // Messages that were sent before can still be popped.
  std::optional<End> ended() const;

 private:
  SpscQueue<Message> incoming_{kMessages}, outgoing_{kMessages};
  std::atomic<size_t> incoming_bytes_{0}, outgoing_bytes_{0};
  std::atomic<uint64_t> revoked_{0};
  std::atomic<bool> gone_{false}, ending_{false};
  Waker waker_;
  std::function<Room()> begin_room_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool poked_ = false;      // by mutex_
  std::optional<End> end_;  // by mutex_
};

}  // namespace syrinx::server
