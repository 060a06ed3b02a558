// Base of the tests' servers on loopback: one connection at a time, served by a thread of its own.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <utility>

namespace syrinx {

class LoopbackServer {
 public:
  // Listens at any free port; clients of this process use no proxy from now on.
  LoopbackServer() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    for (const char* const name : {"http_proxy", "https_proxy", "all_proxy", "HTTPS_PROXY", "ALL_PROXY"})
      ::unsetenv(name);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 || ::listen(listener_, 16) != 0 ||
        ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0)
      std::abort();
    port_ = ntohs(address.sin_port);
  }
  // Waits for the connection that is being served.
  ~LoopbackServer() {
    ending_ = true;
    ::shutdown(listener_, SHUT_RDWR);
    if (thread_.joinable()) thread_.join();
    ::close(listener_);
  }
  LoopbackServer(const LoopbackServer&) = delete;
  LoopbackServer& operator=(const LoopbackServer&) = delete;

  // Once.  `each` is given one client after another, whose connection is closed behind it.
  void serve(std::function<void(int client)> each) {
    thread_ = std::thread([this, each = std::move(each)] {
      while (!ending_) {
        const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
        if (client < 0) return;
        each(client);
        ::close(client);
      }
    });
  }
  int port() const { return port_; }
  const std::atomic<bool>& ending() const { return ending_; }

  static void send_all(int client, const std::string& bytes) {
    for (size_t sent = 0; sent < bytes.size();) {
      const ssize_t done = ::send(client, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (done <= 0) return;
      sent += static_cast<size_t>(done);
    }
  }

 private:
  const int listener_;
  int port_ = 0;
  std::atomic<bool> ending_{false};
  std::thread thread_;
};

}  // namespace syrinx
