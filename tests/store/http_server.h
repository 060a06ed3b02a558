// A small HTTP server on loopback whose every answer a test decides: broken off, stalled, redirected, lying about its
// length or its ranges.  One connection at a time, closed after one answer, served by a thread of its own.
#pragma once

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
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

#include "tests/base/loopback_server.h"

namespace syrinx::testing {

struct HttpRequest {
  std::string target;                  // "/file", or a whole URL when we are the proxy
  std::optional<uint64_t> range_from;  // Range: bytes=N-
  std::string method;
  std::string authorization;  // of the headers of these names; empty: not sent
  std::string if_range;
};

struct HttpAnswer {
  int status = 200;
  std::vector<std::string> headers;  // Content-Length is added unless one is here or `no_length` is set
  std::string body;
  bool no_length = false;
  size_t send_bytes = SIZE_MAX;  // breaks off after so many bytes of the body
  int stall_ms = 0;              // then keeps the line open for so long (or until the server ends)
};

class HttpServer {
 public:
  using Handler = std::function<HttpAnswer(const HttpRequest&)>;

  explicit HttpServer(Handler handler) : handler_(std::move(handler)) {
    server_.serve([this](int client) { answer(client); });
  }

  std::string url(const std::string& target) const {
    return fmt::format("http://127.0.0.1:{}{}", server_.port(), target);
  }

  std::vector<HttpRequest> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }
  size_t count() const { return requests().size(); }

 private:
  void answer(int client) {
    std::string text;
    char block[4096];
    while (text.find("\r\n\r\n") == std::string::npos) {
      const ssize_t got = ::recv(client, block, sizeof block, 0);
      if (got <= 0) return;
      text.append(block, static_cast<size_t>(got));
    }
    HttpRequest request;
    const size_t start = text.find(' ') + 1;
    request.target = text.substr(start, text.find(' ', start) - start);
    const size_t range = text.find("Range: bytes=");
    if (range != std::string::npos) request.range_from = std::strtoull(text.c_str() + range + 13, nullptr, 10);
    request.method = text.substr(0, text.find(' '));
    request.authorization = header_of(text, "Authorization");
    request.if_range = header_of(text, "If-Range");
    {
      const std::lock_guard lock(mutex_);
      requests_.push_back(request);
    }
    const HttpAnswer reply = handler_(request);
    std::string head = fmt::format("HTTP/1.1 {} X\r\nConnection: close\r\n", reply.status);
    bool has_length = reply.no_length;
    for (const auto& header : reply.headers) {
      head += header + "\r\n";
      has_length = has_length || header.rfind("Content-Length", 0) == 0;
    }
    if (!has_length) head += fmt::format("Content-Length: {}\r\n", reply.body.size());
    const bool body = request.method != "HEAD";
    LoopbackServer::send_all(
        client, head + "\r\n" + reply.body.substr(0, body ? std::min(reply.send_bytes, reply.body.size()) : 0));
    const auto is_left = [client] {  // closed, or reset with something unread
      char byte = 0;
      const ssize_t got = ::recv(client, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
      return got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
    };
    for (int waited = 0; body && waited < reply.stall_ms && !server_.ending() && !is_left(); waited += 10)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }

  static std::string header_of(const std::string& text, const std::string& name) {
    const size_t at = text.find("\r\n" + name + ": ");
    if (at == std::string::npos) return {};
    const size_t begin = at + name.size() + 4;
    return text.substr(begin, text.find("\r\n", begin) - begin);
  }

  Handler handler_;
  mutable std::mutex mutex_;
  std::vector<HttpRequest> requests_;
  LoopbackServer server_;  // last: its thread uses the above
};

// Answer of a good server: the whole, or the requested range.
inline HttpAnswer serve_range(const HttpRequest& request, const std::string& content) {
  if (!request.range_from) return HttpAnswer{200, {}, content};
  if (*request.range_from >= content.size()) return HttpAnswer{416, {}, ""};
  const uint64_t from = *request.range_from;
  return HttpAnswer{206,
                    {fmt::format("Content-Range: bytes {}-{}/{}", from, content.size() - 1, content.size())},
                    content.substr(from)};
}

}  // namespace syrinx::testing
