// A chat endpoint on loopback that answers as a test tells it to, byte for byte.  One connection at a time, which is
// closed behind its answer; or any number of them, which stay open.
#pragma once

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "../../base/loopback_server.h"

namespace syrinx::server::upstream {

class ChatEndpoint {
 public:
  // Answer of a test's handler.
  class Answer {
   public:
    Answer(int connection, const std::atomic<bool>& ending) : connection_(connection), ending_(ending) {}
    void send(const std::string& bytes) const { LoopbackServer::send_all(connection_, bytes); }
    void begin(int status = 200) const {
      send(fmt::format("HTTP/1.1 {} X\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n",
                       status));
    }
    void chunk(const std::string& bytes) const { send(fmt::format("{:x}\r\n{}\r\n", bytes.size(), bytes)); }
    void say(const std::string& content) const {
      chunk(R"(data: {"choices":[{"index":0,"delta":{"content":")" + content + "\"}}]}\n\n");
    }
    void done() const { send("e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n"); }
    // Until the client has closed the connection, or for `limit`: whether it has.
    bool is_left(std::chrono::milliseconds limit) const {
      const auto end = std::chrono::steady_clock::now() + limit;
      char byte = 0;
      do {
        pollfd waiting{.fd = connection_, .events = POLLIN, .revents = 0};
        if (::poll(&waiting, 1, 5) > 0 && ::recv(connection_, &byte, 1, MSG_PEEK) <= 0) return true;
      } while (!ending_ && std::chrono::steady_clock::now() < end);
      return false;
    }

   private:
    int connection_;
    const std::atomic<bool>& ending_;
  };
  using Handler = std::function<void(const Answer&)>;
  // State of a connection behind its answer; the last: its end and the next question cross.
  enum class Behind : uint8_t { kIsClosed, kStaysOpen, kIsOpenUntilTheQuestion };

  explicit ChatEndpoint(Handler handler, Behind behind = Behind::kIsClosed) : handler_(std::move(handler)) {
    server_->serve([this, behind](int client) {
      ++connections_;
      if (behind == Behind::kIsClosed)
        answer(client);
      else
        threads_.emplace_back([this, behind, mine = ::dup(client)] {
          while (answer(mine) && behind == Behind::kStaysOpen) {
          }
          if (behind == Behind::kIsOpenUntilTheQuestion) close_at_the_question(mine);
          if (!ending_) ++closed_;
          ::close(mine);
        });
    });
  }
  ~ChatEndpoint() {
    ending_ = true;
    server_.reset();
    for (std::thread& thread : threads_) thread.join();
  }
  ChatEndpoint(const ChatEndpoint&) = delete;
  ChatEndpoint& operator=(const ChatEndpoint&) = delete;

  std::string url() const {
    return fmt::format("http://127.0.0.1:{}/v1", server_->port());
  }                                                 // without /chat/completions
  int connections() const { return connections_; }  // that it has accepted
  int closed() const { return closed_; }            // of those that stay open: by anybody
  int crossed() const { return crossed_; }          // of the latter: with a question under way
  std::vector<std::string> requests() const {       // heads and bodies, as far as kKeptBytes
    const std::lock_guard lock(mutex_);
    return requests_;
  }

 private:
  static constexpr size_t kKeptBytes = size_t{64} << 10;  // of a request: a test may ask often

  bool answer(int client) {
    if (!read_request(client)) return false;
    handler_(Answer(client, ending_));
    return true;
  }
  // At its first bytes, which are not read: whoever sends more of it learns of the end as he reads, and then cannot
  // send.
  void close_at_the_question(int client) {
    char byte = 0;
    if (!wait_for_bytes(client) || ::recv(client, &byte, 1, MSG_PEEK) <= 0) return;
    ++crossed_;
    ::shutdown(client, SHUT_WR);
  }
  bool wait_for_bytes(int client) const {
    pollfd waiting{.fd = client, .events = POLLIN, .revents = 0};
    while (!ending_)
      if (::poll(&waiting, 1, 5) > 0) return true;
    return false;
  }
  bool read_request(int client) {
    std::string text;
    char block[4096];
    size_t whole = std::string::npos;
    while (text.size() < whole) {
      if (!wait_for_bytes(client)) return false;
      const ssize_t got = ::recv(client, block, sizeof block, 0);
      if (got <= 0) return false;
      text.append(block, static_cast<size_t>(got));
      const size_t end = text.find("\r\n\r\n"), length = text.find("Content-Length: ");
      if (end != std::string::npos)
        whole = end + 4 + (length < end ? std::strtoull(text.c_str() + length + 16, nullptr, 10) : 0);
    }
    const std::lock_guard lock(mutex_);
    requests_.push_back(text.substr(0, kKeptBytes));
    return true;
  }

  const Handler handler_;
  std::atomic<int> connections_{0}, closed_{0}, crossed_{0};
  mutable std::mutex mutex_;
  std::vector<std::string> requests_;  // by mutex_
  std::atomic<bool> ending_{false};
  std::vector<std::thread> threads_;                     // of server_'s thread, until that has ended
  std::optional<LoopbackServer> server_{std::in_place};  // its thread uses the above
};

}  // namespace syrinx::server::upstream
