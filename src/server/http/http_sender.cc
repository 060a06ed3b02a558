#include "server/http/http_sender.h"

#include <boost/beast/core/buffers_suffix.hpp>
#include <boost/beast/http.hpp>

#include <algorithm>
#include <utility>

namespace syrinx::server {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using error_code = boost::system::error_code;

template <class Response>
void HttpSender::fill_head(Response& response, const HttpReply& reply) const {
  response.version(11);
  response.result(static_cast<unsigned>(reply.status));
  response.reason(status_phrase(reply.status));
  if (!reply.type.empty()) response.set(http::field::content_type, reply.type);
  for (const HttpHeader& header : head_.headers) response.set(header.name, header.value);
  for (const HttpHeader& header : reply.headers) response.set(header.name, header.value);
  response.set("X-Request-Id", head_.request_id);
  response.set(http::field::server, "syrinx");
  // An older client hears of keep-alive in a header of its own.
  if (!head_.keep_alive)
    response.set(http::field::connection, "close");
  else if (head_.http_1_0)
    response.set(http::field::connection, "keep-alive");
}

asio::awaitable<bool> HttpSender::send_whole(const HttpReply& reply) {
  http::response<http::string_body> response;
  fill_head(response, reply);
  std::string body = reply.error ? head_.error_form(*reply.error) : reply.body;
  response.content_length(body.size());
  if (reply.status == 204 || reply.status == 304) response.erase(http::field::content_length);
  if (!head_.head_only) response.body() = std::move(body);
  http::response_serializer<http::string_body> serializer(response);
  error_code error;
  uint64_t written = 0;
  while (!error && !serializer.is_done()) {  // each part has the time of a stalled reader for itself
    stream_.expires_after(seconds(stalled_reader_s_));
    const auto [failed, bytes] = co_await http::async_write_some(stream_, serializer, kAwait);
    error = failed;
    written += bytes;
  }
  sent_ = std::min<uint64_t>(written, response.body().size());  // of one that is cut, with its header
  co_return !error;
}

asio::awaitable<bool> HttpSender::send_head(const HttpReply& head, bool chunked) {
  http::response<http::empty_body> response;
  fill_head(response, head);
  response.chunked(chunked);
  http::response_serializer<http::empty_body> serializer(response);
  stream_.expires_after(seconds(stalled_reader_s_));
  const auto [error, bytes] = co_await http::async_write_header(stream_, serializer, kAwait);
  co_return !error;
}

// Each part that is taken renews the time of a stalled reader.
template <class Buffers>
asio::awaitable<bool> HttpSender::send_all(const Buffers& buffers) {
  beast::buffers_suffix<Buffers> left(buffers);
  while (beast::buffer_bytes(left) > 0) {
    stream_.expires_after(seconds(stalled_reader_s_));
    const auto [error, bytes] = co_await stream_.async_write_some(left, kAwait);
    if (error) co_return false;
    left.consume(bytes);
  }
  co_return true;
}

asio::awaitable<bool> HttpSender::send_part(std::span<const asio::const_buffer> body, bool chunked) {
  const std::vector<asio::const_buffer> buffers(body.begin(), body.end());
  if (!(chunked ? co_await send_all(http::make_chunk(buffers)) : co_await send_all(buffers))) co_return false;
  sent_ += beast::buffer_bytes(buffers);
  co_return true;
}

asio::awaitable<bool> HttpSender::send_last_chunk() { co_return co_await send_all(http::make_chunk_last()); }

}  // namespace syrinx::server
