// One client of the transport, both ends in this thread: what it sends is handed in, what it is answered comes back.
#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/ip/address_v4.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "server/http/http_connection.h"
#include "server/http/http_server.h"

namespace syrinx::fuzz {

class Client {
 public:
  explicit Client(server::Transport& transport) : transport_(transport) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) != 0) __builtin_trap();
    own_ = ends[0];
    using boost::asio::ip::tcp;
    server::start_connection(transport_, tcp::socket(transport_.io, tcp::v4(), ends[1]),
                             boost::asio::ip::address_v4::loopback());
  }
  ~Client() { leave(); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // In pieces of so many bytes, and of more where they would be too many; between them `meanwhile` is called and the
  // server does all that it can.  A server that does not read any more gets no more.
  void send(
      std::string_view bytes, size_t piece_bytes, const std::function<void()>& meanwhile = [] {}) {
    piece_bytes = std::max(piece_bytes, (bytes.size() + kMaxPieces - 1) / kMaxPieces);
    while (!bytes.empty()) {
      const ssize_t sent = ::send(own_, bytes.data(), std::min(piece_bytes, bytes.size()), MSG_NOSIGNAL);
      if (sent > 0) bytes.remove_prefix(static_cast<size_t>(sent));
      if (!settle(meanwhile) && sent <= 0) return;
    }
  }
  void end_sending() { ::shutdown(own_, SHUT_WR); }
  // Until nothing moves any more.  Whether anything has.
  bool settle(const std::function<void()>& meanwhile = [] {}) {
    for (bool moved = false;; moved = true) {
      size_t steps = transport_.io.poll();
      meanwhile();
      steps += receive();
      if (steps == 0) return moved;
    }
  }
  // And the server lets go of it.
  void leave() {
    if (own_ < 0) return;
    settle();
    ::close(std::exchange(own_, -1));
    // At once, but for moments in which nothing can be done; five of a second each in a row, so that a machine that
    // stands still for one of them is none.
    for (int idle = 0; !transport_.connections.empty();) {
      idle = transport_.io.run_one_for(std::chrono::seconds(1)) > 0 ? 0 : idle + 1;
      if (idle == 5) __builtin_trap();
    }
    transport_.io.poll();
    if (transport_.answering != 0 || !transport_.by_address.empty()) __builtin_trap();
  }
  const std::string& heard() const { return heard_; }

 private:
  static constexpr size_t kMaxPieces = 4096;  // 64 kB byte by byte take a minute where others use the machine, too
  size_t receive() {
    char bytes[16384];
    const ssize_t n = ::recv(own_, bytes, sizeof(bytes), 0);
    if (n <= 0) return 0;
    heard_.append(bytes, static_cast<size_t>(n));
    return 1;
  }

  server::Transport& transport_;
  int own_ = -1;
  std::string heard_;
};

}  // namespace syrinx::fuzz
