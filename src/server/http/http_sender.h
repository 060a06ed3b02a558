// How answers leave a connection: heads, whole bodies and chunks, each part with the time of a stalled reader for
// itself.  On the transport's thread; inside the server alone.
#pragma once

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "server/http/client_stream.h"
#include "server/http/http_message.h"

namespace syrinx::server {

// Operations answer with their error, as everything else here does.
inline constexpr auto kAwait = boost::asio::as_tuple(boost::asio::use_awaitable);

inline std::chrono::nanoseconds seconds(double s) { return std::chrono::nanoseconds(static_cast<int64_t>(s * 1e9)); }

// Shared by the answers to one request.
struct AnswerHead {
  std::string request_id = {};
  std::vector<HttpHeader> headers = {};
  ErrorForm error_form = error_body;
  bool keep_alive = false, http_1_0 = false;
  bool head_only = false;  // no body: HEAD asked for it
};

class HttpSender {
 public:
  HttpSender(ClientStream& stream, double stalled_reader_s) : stream_(stream), stalled_reader_s_(stalled_reader_s) {}

  void begin(AnswerHead head) {
    head_ = std::move(head);
    sent_ = 0;
  }
  AnswerHead& head() { return head_; }
  uint64_t sent() const { return sent_; }  // bytes of the body

  // False when the client is gone.
  boost::asio::awaitable<bool> send_whole(const HttpReply& reply);
  boost::asio::awaitable<bool> send_head(const HttpReply& head, bool chunked);
  boost::asio::awaitable<bool> send_part(std::span<const boost::asio::const_buffer> body, bool chunked);
  boost::asio::awaitable<bool> send_last_chunk();

 private:
  template <class Response>
  void fill_head(Response& response, const HttpReply& reply) const;
  template <class Buffers>
  boost::asio::awaitable<bool> send_all(const Buffers& buffers);

  ClientStream& stream_;
  const double stalled_reader_s_;
  AnswerHead head_;
  uint64_t sent_ = 0;
};

}  // namespace syrinx::server
