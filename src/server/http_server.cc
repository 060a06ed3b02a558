#include "server/http_server.h"

#include <sys/socket.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <map>
#include <set>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/in_quotes.h"
#include "base/log.h"
#include "server/reply_stream.h"
#include "server/request_id.h"

namespace syrinx::server {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using tcp = asio::ip::tcp;
using error_code = boost::system::error_code;

// Operations answer with their error, as everything else here does.
constexpr auto kAwait = asio::as_tuple(asio::use_awaitable);
constexpr size_t kReadBytes = 4096;
constexpr size_t kSendBytes = size_t{64} << 10;   // of an answer that are on their way at once
constexpr int kSocketBytes = 128 << 10;           // that the system keeps for a slow reader
constexpr size_t kLingerBytes = size_t{1} << 20;  // of a refused request that are read so that its client sees why
constexpr std::chrono::seconds kLingerTime{2};

std::chrono::nanoseconds seconds(double s) { return std::chrono::nanoseconds(static_cast<int64_t>(s * 1e9)); }

bool is_malformed(const error_code& error) {
  return error.category() == http::make_error_code(http::error::bad_method).category() &&
         error != http::error::end_of_stream && error != http::error::partial_message;
}

HttpReply parse_fault(const error_code& error, const HttpLimits& limits) {
  if (error == http::error::header_limit || error == http::error::buffer_overflow)
    return error_reply({.status = 431,
                        .message = fmt::format("the request's header has more than {} bytes; send a shorter one",
                                               limits.max_header_bytes)});
  return error_reply({.status = 400, .message = fmt::format("this is no HTTP/1.1 request: {}", error.message())});
}

HttpReply too_long(size_t limit) {
  return error_reply(
      {.status = 413, .message = fmt::format("the request's body has more than {} bytes; send a shorter one", limit)});
}

}  // namespace

struct HttpServer::Impl {
  class Connection;

  Impl(const HttpLimits& wanted, HttpService& s) : limits(wanted), service(s) {}
  Status open();
  asio::awaitable<void> accept();
  bool has_room(const asio::ip::address& address);

  const HttpLimits limits;
  HttpService& service;
  int port = 0;
  std::atomic<size_t> answering{0};
  // The following on the transport's thread alone.
  bool draining = false;
  std::set<Connection*> connections;
  std::map<asio::ip::address, size_t> by_address;

  asio::io_context io{1};  // behind all that its coroutines use: they end with it
  tcp::acceptor acceptor{io};
  std::thread thread;
};

class HttpServer::Impl::Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(Impl& server, tcp::socket socket, const asio::ip::address& address)
      : server_(server), address_(address), stream_(std::move(socket)), news_(server.io) {
    server_.connections.insert(this);
    ++server_.by_address[address_];
  }
  ~Connection() {
    drop_reply();
    server_.connections.erase(this);
    const auto count = server_.by_address.find(address_);
    if (--count->second == 0) server_.by_address.erase(count);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Requests one after another, until the connection is to be closed.
  asio::awaitable<void> serve();
  void close_if_idle() {
    if (idle_) stream_.close();
  }
  void cut() {
    gone_ = true;
    if (reply_) reply_->cancel();
    stream_.close();
    news_.cancel();
  }

 private:
  enum class Next { kRequest, kLinger, kClose };

  asio::awaitable<bool> wait_for_request();
  asio::awaitable<Next> serve_request();
  asio::awaitable<Next> refuse(HttpReply reply);
  asio::awaitable<Next> send_whole(const HttpReply& reply, bool close);
  asio::awaitable<Next> send_stream(std::shared_ptr<ReplyStream> reply);
  asio::awaitable<bool> send_head(const HttpReply& head, bool chunked);
  asio::awaitable<bool> send_blocks(ReplyStream& reply, bool chunked);
  asio::awaitable<void> wait_for_news();
  asio::awaitable<void> linger();
  void take_head(const http::request<http::string_body>& message);
  template <class Response>
  void fill_head(Response& response, const HttpReply& reply, bool close);
  void watch();
  void drop_reply();
  void done(int status);

  Impl& server_;
  const asio::ip::address address_;
  beast::tcp_stream stream_;
  beast::flat_buffer buffer_;
  asio::steady_timer news_;  // cancelled when there are any
  HttpRequest request_;
  std::vector<HttpHeader> headers_;  // of every answer to it
  bool keep_alive_ = false, http_1_0_ = false, head_only_ = false;
  bool idle_ = true, gone_ = false, watching_ = false;
  uint64_t sent_ = 0;
  std::shared_ptr<ReplyStream> reply_;
};

asio::awaitable<void> HttpServer::Impl::Connection::serve() {
  const auto self = shared_from_this();
  while (co_await wait_for_request()) {
    ++server_.answering;
    const Next next = co_await serve_request();
    --server_.answering;
    if (next == Next::kRequest && !server_.draining) continue;
    if (next == Next::kLinger) co_await linger();
    break;
  }
  stream_.close();
}

asio::awaitable<bool> HttpServer::Impl::Connection::wait_for_request() {
  if (buffer_.size() == 0) {
    idle_ = true;
    stream_.expires_after(seconds(server_.limits.idle_timeout_s));
    const auto [error, bytes] = co_await stream_.async_read_some(buffer_.prepare(kReadBytes), kAwait);
    idle_ = false;
    if (error) co_return false;
    buffer_.commit(bytes);
  }
  co_return true;
}

asio::awaitable<HttpServer::Impl::Connection::Next> HttpServer::Impl::Connection::serve_request() {
  request_ = {};
  request_.arrived_ns = system_clock().now_ns();
  request_.id = new_request_id();
  headers_.clear();
  sent_ = 0;
  keep_alive_ = http_1_0_ = head_only_ = gone_ = false;
  stream_.expires_after(seconds(server_.limits.request_timeout_s));

  http::request_parser<http::string_body> parser;
  parser.header_limit(static_cast<std::uint32_t>(server_.limits.max_header_bytes));
  parser.body_limit(boost::none);  // known when the header is
  const auto [head_error, head_bytes] = co_await http::async_read_header(stream_, buffer_, parser, kAwait);
  if (head_error) {
    if (!is_malformed(head_error)) co_return Next::kClose;
    co_return co_await refuse(parse_fault(head_error, server_.limits));
  }
  take_head(parser.get());

  HttpService::Admission admission = server_.service.admit(request_);
  headers_ = std::move(admission.headers);
  if (admission.refusal) {
    if (parser.is_done()) co_return co_await send_whole(*admission.refusal, /*close=*/false);
    co_return co_await refuse(std::move(*admission.refusal));
  }
  if (parser.content_length().value_or(0) > admission.max_body_bytes)
    co_return co_await refuse(too_long(admission.max_body_bytes));
  parser.body_limit(admission.max_body_bytes);
  if (!parser.is_done() && beast::iequals(parser.get()[http::field::expect], "100-continue")) {
    static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
    const auto [error, bytes] = co_await asio::async_write(stream_, asio::buffer(kContinue), kAwait);
    if (error) co_return Next::kClose;
  }
  if (!parser.is_done()) {
    const auto [body_error, body_bytes] = co_await http::async_read(stream_, buffer_, parser, kAwait);
    if (body_error == http::error::body_limit) co_return co_await refuse(too_long(admission.max_body_bytes));
    if (body_error && !is_malformed(body_error)) co_return Next::kClose;
    if (body_error) co_return co_await refuse(parse_fault(body_error, server_.limits));
  }
  request_.body = std::move(parser.get().body());
  const HttpReply reply = server_.service.answer(request_);
  if (!reply.stream) co_return co_await send_whole(reply, /*close=*/false);
  co_return co_await send_stream(reply.stream);
}

void HttpServer::Impl::Connection::take_head(const http::request<http::string_body>& message) {
  request_.method = std::string(message.method_string());
  const std::string_view target(message.target().data(), message.target().size());
  const size_t question = std::min(target.find('?'), target.size());
  request_.path = std::string(target.substr(0, question));
  request_.query = std::string(target.substr(std::min(question + 1, target.size())));
  for (const auto& field : message)
    request_.headers.push_back({std::string(field.name_string()), std::string(field.value())});
  if (const std::string_view given = request_.header("X-Request-Id"); is_request_id(given)) request_.id = given;
  keep_alive_ = message.keep_alive();
  http_1_0_ = message.version() < 11;
  head_only_ = message.method() == http::verb::head;
}

// What is left of the request is not read as another one.
asio::awaitable<HttpServer::Impl::Connection::Next> HttpServer::Impl::Connection::refuse(HttpReply reply) {
  const Next next = co_await send_whole(reply, /*close=*/true);
  co_return next == Next::kRequest ? Next::kLinger : next;
}

template <class Response>
void HttpServer::Impl::Connection::fill_head(Response& response, const HttpReply& reply, bool close) {
  response.version(11);
  response.result(static_cast<unsigned>(reply.status));
  response.reason(status_phrase(reply.status));
  if (!reply.type.empty()) response.set(http::field::content_type, reply.type);
  for (const HttpHeader& header : headers_) response.set(header.name, header.value);
  for (const HttpHeader& header : reply.headers) response.set(header.name, header.value);
  response.set("X-Request-Id", request_.id);
  response.set(http::field::server, "syrinx");
  keep_alive_ = keep_alive_ && !close && !server_.draining;
  // An older client hears of keep-alive in a header of its own.
  if (!keep_alive_)
    response.set(http::field::connection, "close");
  else if (http_1_0_)
    response.set(http::field::connection, "keep-alive");
}

asio::awaitable<HttpServer::Impl::Connection::Next> HttpServer::Impl::Connection::send_whole(const HttpReply& reply,
                                                                                             bool close) {
  http::response<http::string_body> response;
  fill_head(response, reply, close);
  response.content_length(reply.body.size());
  if (reply.status == 204) response.erase(http::field::content_length);
  if (!head_only_) response.body() = reply.body;
  http::response_serializer<http::string_body> serializer(response);
  stream_.expires_after(seconds(server_.limits.stalled_reader_s));
  const auto [error, bytes] = co_await http::async_write(stream_, serializer, kAwait);
  sent_ = response.body().size();
  done(error ? 499 : reply.status);
  if (error) co_return Next::kClose;
  co_return keep_alive_ || close ? Next::kRequest : Next::kLinger;
}

asio::awaitable<HttpServer::Impl::Connection::Next> HttpServer::Impl::Connection::send_stream(
    std::shared_ptr<ReplyStream> reply) {
  reply_ = std::move(reply);
  // The producer's thread tells; what it tells of is looked at on this one.
  reply_->on_news([weak = weak_from_this(), executor = server_.io.get_executor()] {
    asio::post(executor, [weak] {
      if (const auto self = weak.lock()) self->news_.cancel();
    });
  });
  watch();
  ReplyStream::News news = reply_->pop_news();
  // A whole answer waits for its end, before which the slot that made it is not free.
  const auto ready = [&] { return news.head != nullptr && (!news.whole || news.end != ReplyStream::End::kOpen); };
  while (!ready() && !gone_) {
    co_await wait_for_news();
    news = reply_->pop_news();
  }
  bool whole = false;
  int status = 499;
  if (!gone_ && news.whole) {
    const Next next = co_await send_whole(*news.head, /*close=*/false);
    drop_reply();
    co_return next;
  }
  if (!gone_) {
    const bool chunked = !http_1_0_;
    if (!chunked) keep_alive_ = false;
    status = news.head->status;
    whole = co_await send_head(*news.head, chunked) && co_await send_blocks(*reply_, chunked);
  }
  drop_reply();
  done(whole ? status : 499);
  if (!whole) co_return Next::kClose;
  co_return keep_alive_ ? Next::kRequest : Next::kLinger;
}

asio::awaitable<bool> HttpServer::Impl::Connection::send_head(const HttpReply& head, bool chunked) {
  http::response<http::empty_body> response;
  fill_head(response, head, /*close=*/false);
  response.chunked(chunked);
  http::response_serializer<http::empty_body> serializer(response);
  stream_.expires_after(seconds(server_.limits.stalled_reader_s));
  const auto [error, bytes] = co_await http::async_write_header(stream_, serializer, kAwait);
  co_return !error;
}

// False when the client is gone, or is to see that the answer is broken off: then no last chunk is sent.
asio::awaitable<bool> HttpServer::Impl::Connection::send_blocks(ReplyStream& reply, bool chunked) {
  for (;;) {
    const ReplyStream::End end = reply.pop_news().end;  // before the blocks: those in front of it are all there then
    std::vector<ReplyStream::Block> blocks;
    std::vector<asio::const_buffer> buffers;
    size_t bytes = 0;
    for (ReplyStream::Block block; bytes < kSendBytes && reply.try_pop(block);) {
      bytes += block.size();
      blocks.push_back(std::move(block));
    }
    buffers.reserve(blocks.size());
    for (const ReplyStream::Block& block : blocks) buffers.emplace_back(block.data(), block.size());
    if (gone_) co_return false;
    stream_.expires_after(seconds(server_.limits.stalled_reader_s));
    if (bytes > 0) {
      if (chunked) {
        const auto [error, n] = co_await asio::async_write(stream_, http::make_chunk(buffers), kAwait);
        if (error) co_return false;
      } else {
        const auto [error, n] = co_await asio::async_write(stream_, buffers, kAwait);
        if (error) co_return false;
      }
      sent_ += bytes;
    } else if (end != ReplyStream::End::kOpen) {
      if (end == ReplyStream::End::kAborted) co_return false;
      if (!chunked) co_return true;
      const auto [error, n] = co_await asio::async_write(stream_, http::make_chunk_last(), kAwait);
      co_return !error;
    } else {
      co_await wait_for_news();
    }
  }
}

// News that came before are told when the one that waits is: both happen on this thread.
asio::awaitable<void> HttpServer::Impl::Connection::wait_for_news() {
  stream_.expires_never();
  news_.expires_at(asio::steady_timer::time_point::max());
  co_await news_.async_wait(kAwait);
}

// Hears of a client that closes its connection while its answer is made.  What a client sends ahead is left where it
// is.
void HttpServer::Impl::Connection::watch() {
  if (watching_) return;
  watching_ = true;
  stream_.socket().async_wait(tcp::socket::wait_read, [self = shared_from_this()](const error_code& error) {
    self->watching_ = false;
    if (error || !self->reply_) return;
    char byte = 0;
    if (::recv(self->stream_.socket().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0) return;
    self->cut();
  });
}

void HttpServer::Impl::Connection::drop_reply() {
  if (!reply_) return;
  reply_->on_news({});
  reply_->cancel();
  reply_.reset();
  error_code ignored;
  stream_.socket().cancel(ignored);  // what watch() waits for
}

void HttpServer::Impl::Connection::done(int status) {
  server_.service.answered(request_, {.status = status, .bytes = sent_});
}

// A connection that is closed while there is something unread is reset, and its client might not see the answer.
asio::awaitable<void> HttpServer::Impl::Connection::linger() {
  error_code error;
  stream_.socket().shutdown(tcp::socket::shutdown_send, error);
  stream_.expires_after(kLingerTime);
  std::array<char, kReadBytes> ignored;
  for (size_t left = kLingerBytes; !error && left > 0;) {
    const auto [failed, bytes] = co_await stream_.async_read_some(asio::buffer(ignored), kAwait);
    if (failed) break;
    left -= std::min(left, bytes);
  }
}

Status HttpServer::Impl::open() {
  error_code error;
  const asio::ip::address address =
      asio::ip::make_address(limits.host == "localhost" ? "127.0.0.1" : limits.host, error);
  if (error)
    return fail(Code::kInvalidArgument, "'host' {} is no address; give one such as 127.0.0.1, ::1 or 0.0.0.0",
                in_quotes(limits.host));
  const tcp::endpoint endpoint(address, static_cast<unsigned short>(limits.port));
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(asio::socket_base::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error)
    return fail(Code::kUnavailable, "cannot listen on {} port {}: {}; choose another --host or --port", limits.host,
                limits.port, error.message());
  port = acceptor.local_endpoint(error).port();
  return {};
}

bool HttpServer::Impl::has_room(const asio::ip::address& address) {
  const auto count = by_address.find(address);
  return connections.size() < limits.max_connections &&
         (count == by_address.end() || count->second < limits.max_connections_per_address);
}

asio::awaitable<void> HttpServer::Impl::accept() {
  constexpr std::chrono::milliseconds kPause{100};
  asio::steady_timer pause(io);
  while (acceptor.is_open()) {
    auto [error, socket] = co_await acceptor.async_accept(kAwait);
    if (error == asio::error::operation_aborted || draining) break;
    error_code ignored;
    const asio::ip::address address = error ? asio::ip::address() : socket.remote_endpoint(error).address();
    if (error) {  // gone again, or no descriptor is free: then it is tried once more when some have been closed
      pause.expires_after(kPause);
      co_await pause.async_wait(kAwait);
      continue;
    }
    if (!has_room(address)) {
      service.refused();
      static constexpr std::string_view kFull =
          "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
      socket.non_blocking(true, ignored);
      socket.write_some(asio::buffer(kFull), ignored);
      continue;
    }
    socket.set_option(tcp::no_delay(true), ignored);
    socket.set_option(asio::socket_base::send_buffer_size(kSocketBytes), ignored);
    const auto connection = std::make_shared<Connection>(*this, std::move(socket), address);
    asio::co_spawn(io, connection->serve(), [connection](const std::exception_ptr& thrown) {
      if (thrown) log_error("a connection was given up after an exception");
    });
  }
}

HttpServer::HttpServer() = default;

HttpServer::~HttpServer() { stop(); }

Result<std::unique_ptr<HttpServer>> HttpServer::listen(const HttpLimits& limits, HttpService& service) {
  std::unique_ptr<HttpServer> server(new HttpServer);
  server->impl_ = std::make_unique<Impl>(limits, service);
  Impl& impl = *server->impl_;
  SYRINX_TRY_VOID(impl.open());
  asio::co_spawn(impl.io, impl.accept(), [](const std::exception_ptr& thrown) {
    if (thrown) log_error("no connections are taken any more, after an exception");
  });
  impl.thread = std::thread([&impl] { impl.io.run(); });
  return server;
}

int HttpServer::port() const { return impl_->port; }

size_t HttpServer::answering() const { return impl_->answering.load(); }

void HttpServer::drain() {
  asio::post(impl_->io, [impl = impl_.get()] {
    impl->draining = true;
    error_code ignored;
    impl->acceptor.close(ignored);
    for (Impl::Connection* connection : impl->connections) connection->close_if_idle();
  });
}

void HttpServer::stop() {
  if (!impl_->thread.joinable()) return;
  asio::post(impl_->io, [impl = impl_.get()] {
    impl->draining = true;
    error_code ignored;
    impl->acceptor.close(ignored);
    for (Impl::Connection* connection : impl->connections) connection->cut();
  });
  impl_->thread.join();  // with no connection left there is nothing to run
}

}  // namespace syrinx::server
