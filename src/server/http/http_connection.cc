#include "server/http/http_connection.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "server/http/counted.h"
#include "server/http/http_faults.h"
#include "server/http/http_sender.h"
#include "server/http/message_stream.h"
#include "server/http/reply_stream.h"
#include "server/http/request_head.h"
#include "server/http/request_id.h"
#include "server/http/websocket.h"

namespace syrinx::server {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using tcp = asio::ip::tcp;
using error_code = boost::system::error_code;

constexpr size_t kReadBytes = 4096;
constexpr size_t kSendBytes = size_t{64} << 10;  // of an answer that are on their way at once
// For one read.  Headers, chunk extensions and trailers have to fit in whole, and Beast throws at a field of 65534.
constexpr size_t kBufferBytes = 64000;
static_assert(HttpLimits::kMaxHeaderBytes < kBufferBytes);
constexpr size_t kAheadBytes = size_t{16} << 10;    // of further requests that are read while one is answered
constexpr size_t kLingerBytes = size_t{64} << 20;   // of a refused request that are read, so that its client sees why
constexpr std::chrono::seconds kLastLingerTime{2};  // at the server's end, which waits for it
constexpr std::chrono::seconds kMissedTime{10};     // behind a deadline that nobody has heeded
constexpr std::chrono::milliseconds kCancelTime{10};
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

class Connection final : public HttpConnection, public std::enable_shared_from_this<Connection> {
 public:
  Connection(Transport& transport, tcp::socket socket, const asio::ip::address& address)
      : transport_(transport),
        address_(address),
        stream_(std::move(socket), transport.identity.get()),
        news_(transport.io),
        deadline_(transport.io),
        look_(transport.io),
        sender_(stream_, transport.limits.stalled_reader_s),
        membership_(transport, *this, address) {}
  ~Connection() override {
    drop_reply();
    if (messages_) messages_->leave();
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Requests one after another, until the connection is to be closed.
  asio::awaitable<void> serve();
  void close_if_idle() override {
    if (messages_) return messages_->end_when_idle();
    if (lingering_) return arrives_by(std::min(deadline_.expiry(), std::chrono::steady_clock::now() + kLastLingerTime));
    if (answering_ || asks_first_) return;  // a new client is told that it is too late
    stream_.end_sending();
    stream_.close();
  }
  void cut() override {
    gone_ = true;
    if (messages_) return messages_->leave(MessageStream::going_away());
    if (reply_) reply_->cancel();
    stream_.close();
    news_.cancel();
  }

 private:
  enum class Next { kRequest, kLinger, kClose };
  using Parser = http::request_parser<http::string_body>;

  asio::awaitable<bool> begin_tls();
  asio::awaitable<bool> wait_for_request();
  asio::awaitable<Next> serve_request();
  void begin_request();
  bool is_late() const { return std::chrono::steady_clock::now() >= deadline_.expiry(); }
  asio::awaitable<error_code> read_head(Parser& parser);
  using Admission = HttpService::Admission;
  asio::awaitable<error_code> read_body(Parser& parser, Admission& admission);
  asio::awaitable<bool> wait_until(std::shared_ptr<ReplyStream> end);
  asio::awaitable<Next> refuse_unread(const error_code& error);
  asio::awaitable<Next> refuse(HttpReply reply);
  asio::awaitable<Next> send_whole(const HttpReply& reply, bool close);
  asio::awaitable<Next> send_stream(std::shared_ptr<ReplyStream> reply);
  asio::awaitable<Next> serve_messages(const HttpReply& reply, http::request<http::string_body> handshake);
  asio::awaitable<bool> send_blocks(ReplyStream& reply, bool chunked);
  asio::awaitable<void> wait_for_news();
  asio::awaitable<void> linger();
  void watch();
  void watch_from_afar();
  asio::awaitable<void> end_watch();
  void take_reply(std::shared_ptr<ReplyStream> reply);
  void drop_reply();
  void end_keep_alive(bool close);
  void done(int status);
  Next leave();
  void arrives_within(double time_s);
  void arrives_by(std::chrono::steady_clock::time_point end);

  Transport& transport_;
  const asio::ip::address address_;
  ClientStream stream_;
  beast::flat_buffer buffer_{kBufferBytes};
  asio::steady_timer news_;      // cancelled when there are any
  asio::steady_timer deadline_;  // of the request's arrival
  asio::steady_timer look_;      // at a client who has sent ahead more than is read
  HttpSender sender_;
  HttpRequest request_;
  double arrival_s_ = 0;  // how long the request has had
  bool gone_ = false, watching_ = false, reading_ = false, lingering_ = false;
  bool asks_first_ = true;            // what comes is the first request
  std::optional<Counted> answering_;  // once the header is there
  std::shared_ptr<ReplyStream> reply_;
  std::shared_ptr<MessageStream> messages_;
  const Membership membership_;  // last: it can throw, and is counted then no more
};

asio::awaitable<void> Connection::serve() {
  const auto self = shared_from_this();
  if (stream_.is_tls() && !co_await begin_tls()) co_return;
  bool whole = true;
  for (; co_await wait_for_request(); answering_.reset()) {
    const Next next = co_await serve_request();
    asks_first_ = false;
    request_.clear();  // a connection that waits holds nothing of what it has asked
    sender_.begin({});
    buffer_.shrink_to_fit();
    if (next == Next::kRequest && !transport_.draining) continue;
    if (next != Next::kClose) co_await linger();
    whole = next != Next::kClose;
    break;
  }
  answering_.reset();
  if (whole) stream_.end_sending();  // else its end would look like that of the answer
  stream_.close();
}

// A client without TLS, or with an unsafe version, gets OpenSSL's alert, if any.
asio::awaitable<bool> Connection::begin_tls() {
  const auto now = std::chrono::steady_clock::now();
  if (const auto begins = transport_.handshakes.next(address_, now); begins > now) {
    news_.expires_at(begins);
    co_await news_.async_wait(kAwait);
  }
  stream_.expires_after(seconds(transport_.limits.request_timeout_s));
  const auto [error] = co_await stream_.async_handshake(kAwait);
  if (!error) co_return true;
  stream_.close();
  if (!transport_.draining) transport_.service.handshake_failed();
  co_return false;
}

// Empty lines in front of a request are not part of it.
asio::awaitable<bool> Connection::wait_for_request() {
  arrives_within(transport_.limits.idle_timeout_s);
  for (;;) {
    const std::string_view ahead(static_cast<const char*>(buffer_.data().data()), buffer_.size());
    buffer_.consume(std::min(ahead.find_first_not_of("\r\n"), ahead.size()));
    if (buffer_.size() > 0) co_return true;
    reading_ = true;
    const auto [error, bytes] = co_await stream_.async_read_some(buffer_.prepare(kReadBytes), kAwait);
    reading_ = false;
    if (error) co_return false;
    buffer_.commit(bytes);
  }
}

void Connection::begin_request() {
  request_.address = address_.to_string();
  request_.arrived_ns = system_clock().now_ns();
  request_.id = new_request_id();
  sender_.begin({.request_id = request_.id});
  gone_ = reading_ = false;
  arrives_within(transport_.limits.request_timeout_s);
}

void Connection::arrives_within(double time_s) {
  arrival_s_ = time_s;
  arrives_by(std::chrono::steady_clock::now() + seconds(time_s));
}

void Connection::arrives_by(std::chrono::steady_clock::time_point end) {
  // The stream's own expiry closes it, and tells a late client nothing: it is for what the deadline misses.
  stream_.expires_at(end + kMissedTime);
  deadline_.expires_at(end);
  deadline_.async_wait([weak = weak_from_this()](const error_code& error) {
    const auto self = weak.lock();
    if (!error && self && self->reading_ && self->is_late()) self->stream_.cancel();
  });
}

asio::awaitable<error_code> Connection::read_head(Parser& parser) {
  reading_ = true;
  const auto [error, bytes] = co_await http::async_read_header(stream_, buffer_, parser, kAwait);
  reading_ = false;
  co_return error&& is_late() ? error_code(beast::error::timeout) : error;
}

// Piece by piece, each of which has to find room, and has to come in time.  An error may have an answer of its own,
// which is then the admission's.
asio::awaitable<error_code> Connection::read_body(Parser& parser, Admission& admission) {
  const auto end = deadline_.expiry();
  while (!parser.is_done()) {
    if (admission.body_timeout_s > 0)
      arrives_by(std::min(end, std::chrono::steady_clock::now() + seconds(transport_.limits.stalled_reader_s)));
    if (is_late()) co_return error_code(beast::error::timeout);
    reading_ = true;
    const auto [error, bytes] = co_await http::async_read_some(stream_, buffer_, parser, kAwait);
    reading_ = false;
    if (error && is_late()) {
      if (deadline_.expiry() < end)
        admission.refusal = std::make_unique<HttpReply>(stalled(transport_.limits.stalled_reader_s));
      co_return error_code(beast::error::timeout);
    }
    if (error) co_return error;
    if (admission.grow) admission.refusal = admission.grow(parser.get().body().size());
    if (admission.refusal) co_return error_code(asio::error::no_buffer_space);
  }
  co_return error_code();
}

asio::awaitable<Connection::Next> Connection::serve_request() {
  begin_request();
  Parser parser;
  parser.header_limit(static_cast<std::uint32_t>(transport_.limits.max_header_bytes));
  parser.body_limit(boost::none);  // known when the header is
  if (const error_code error = co_await read_head(parser)) co_return co_await refuse_unread(error);
  if (!transport_.draining) answering_.emplace(transport_.answering);  // else further requests do not delay the end
  const bool is_taken = take_head(parser.get(), request_);
  sender_.begin(answer_head(parser.get(), request_.id));
  if (!is_taken) co_return co_await refuse(bad_target());
  if (const std::string_view encoding = request_.header("Transfer-Encoding");
      !encoding.empty() && (sender_.head().http_1_0 || !beast::iequals(encoding, "chunked")))
    co_return co_await refuse(unknown_encoding());

  HttpService::Admission admission = transport_.service.admit(request_);
  sender_.head().headers = std::move(admission.headers);
  sender_.head().error_form = admission.error_form;
  if (admission.refusal) {
    if (parser.is_done()) co_return co_await send_whole(*admission.refusal, /*close=*/false);
    co_return co_await refuse(std::move(*admission.refusal));
  }
  if (parser.content_length().value_or(0) > admission.max_body_bytes) co_return co_await refuse(too_long(admission));
  parser.body_limit(admission.max_body_bytes);
  request_.hold = std::move(admission.hold);
  if (admission.body_timeout_s > 0 && !parser.is_done()) arrives_within(admission.body_timeout_s);
  if (!parser.is_done() && !sender_.head().http_1_0 &&
      beast::iequals(parser.get()[http::field::expect], "100-continue")) {
    const auto [error, bytes] = co_await asio::async_write(stream_, asio::buffer(kContinue), kAwait);
    if (error) co_return co_await refuse_unread(error);
  }
  if (const error_code error = co_await read_body(parser, admission)) {
    if (admission.refusal) co_return co_await refuse(std::move(*admission.refusal));
    if (error == http::error::body_limit) co_return co_await refuse(too_long(admission));
    co_return co_await refuse_unread(error);
  }
  admission.grow = {};  // which holds the room, too
  request_.body = std::move(parser.get().body());
  HttpReply reply = answer_of(transport_.service, request_);
  for (; reply.until; reply = answer_of(transport_.service, request_))
    if (!co_await wait_until(std::move(reply.until))) co_return leave();
  if (request_.waited_s > 0)
    sender_.head().headers.push_back({"X-Syrinx-Waited", fmt::format("{:.3f}", request_.waited_s)});
  if (reply.messages) co_return co_await serve_messages(reply, parser.release());
  if (!reply.stream) co_return co_await send_whole(reply, /*close=*/false);
  co_return co_await send_stream(reply.stream);
}

asio::awaitable<Connection::Next> Connection::refuse_unread(const error_code& error) {
  if (error == beast::error::timeout) co_return co_await refuse(too_late(arrival_s_));
  if (is_malformed(error)) co_return co_await refuse(parse_fault(error, transport_.limits, kBufferBytes));
  if (!request_.method.empty()) co_return leave();
  co_return Next::kClose;  // what has no header yet is no request
}

// The rest of the request is not read as another one.
asio::awaitable<Connection::Next> Connection::refuse(HttpReply reply) {
  const Next next = co_await send_whole(reply, /*close=*/true);
  co_return next == Next::kRequest ? Next::kLinger : next;
}

asio::awaitable<Connection::Next> Connection::send_whole(const HttpReply& reply, bool close) {
  end_keep_alive(close);
  const bool sent = co_await sender_.send_whole(reply);
  done(sent ? reply.status : 499);
  if (!sent) co_return Next::kClose;
  co_return sender_.head().keep_alive || close ? Next::kRequest : Next::kLinger;
}

// The producer's thread tells; what it tells of is looked at on this one.
void Connection::take_reply(std::shared_ptr<ReplyStream> reply) {
  reply_ = std::move(reply);
  reply_->on_news([weak = weak_from_this(), executor = transport_.io.get_executor()] {
    asio::post(executor, [weak] {
      if (const auto self = weak.lock()) self->news_.cancel();
    });
  });
  watch();
}

// For what the answer needs, whose header tells how long it took.  False: the client has left.
asio::awaitable<bool> Connection::wait_until(std::shared_ptr<ReplyStream> end) {
  const Stopwatch watch;
  take_reply(std::move(end));
  while (reply_->pop_news().end == ReplyStream::End::kOpen && !gone_) co_await wait_for_news();
  drop_reply();
  co_await end_watch();
  request_.waited_s += watch.elapsed_ms() / 1000;
  co_return !gone_;
}

asio::awaitable<Connection::Next> Connection::send_stream(std::shared_ptr<ReplyStream> reply) {
  take_reply(std::move(reply));
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
    co_await end_watch();
    co_return next;
  }
  if (const bool chunked = !sender_.head().http_1_0; !gone_) {
    end_keep_alive(/*close=*/!chunked);
    status = news.head->status;
    whole = co_await sender_.send_head(*news.head, chunked);
    if (whole && !sender_.head().head_only) whole = co_await send_blocks(*reply_, chunked);
  }
  news = reply_->pop_news();
  const bool by_us = !gone_ && !reply_->cancelled() && news.end == ReplyStream::End::kAborted;
  drop_reply();
  // A client that was told of the failure may leave before the end.
  done(news.failure != 0 ? news.failure : whole ? status : by_us ? 500 : 499);
  co_await end_watch();
  if (!whole) co_return Next::kClose;
  co_return sender_.head().keep_alive ? Next::kRequest : Next::kLinger;
}

// The connection ends with the WebSocket.
asio::awaitable<Connection::Next> Connection::serve_messages(const HttpReply& reply,
                                                             http::request<http::string_body> handshake) {
  if (buffer_.size() > 0) {  // what it is would be guessed
    reply.messages->leave();
    co_return co_await refuse(too_early());
  }
  messages_ = reply.messages;
  WebSocketOrder order{
      .stream = stream_, .owner = shared_from_this(), .messages = reply.messages, .headers = sender_.head().headers};
  order.headers.insert(order.headers.end(), reply.headers.begin(), reply.headers.end());
  order.headers.push_back({"X-Request-Id", request_.id});
  const HttpService::Answered answered =
      co_await serve_web_socket(std::move(order), std::move(handshake), transport_.limits);
  messages_.reset();
  transport_.service.answered(request_, answered);
  co_return Next::kClose;
}

// False when the client is gone, or is to see that the answer is broken off: then no last chunk is sent.
asio::awaitable<bool> Connection::send_blocks(ReplyStream& reply, bool chunked) {
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
    if (bytes > 0) {
      if (!co_await sender_.send_part(buffers, chunked)) co_return false;
    } else if (end != ReplyStream::End::kOpen) {
      if (end == ReplyStream::End::kAborted) co_return false;
      if (!chunked) co_return true;
      co_return co_await sender_.send_last_chunk();
    } else {
      co_await wait_for_news();
    }
  }
}

// News that came before are told when the one that waits is: both happen on this thread.
asio::awaitable<void> Connection::wait_for_news() {
  stream_.expires_never();
  news_.expires_at(asio::steady_timer::time_point::max());
  co_await news_.async_wait(kAwait);
}

// Hears of a client that closes its connection while its answer is made, behind what it has sent ahead too, which is
// for the next request.
void Connection::watch() {
  if (watching_) return;
  if (buffer_.size() >= kAheadBytes) return watch_from_afar();
  const auto room = buffer_.prepare(kReadBytes);
  stream_.expires_never();
  watching_ = true;
  stream_.async_read_some(room, [self = shared_from_this()](const error_code& error, size_t bytes) {
    self->watching_ = false;
    self->buffer_.commit(bytes);
    if (!self->reply_)
      self->news_.cancel();  // end_watch() waits
    else if (error)
      self->cut();
    else
      self->watch();
  });
}

// With the limit of bytes read ahead, nothing more is read, so the end behind them is not seen either.
void Connection::watch_from_afar() {
  look_.expires_after(std::chrono::milliseconds(500));
  look_.async_wait([weak = weak_from_this()](const error_code& error) {
    const auto self = weak.lock();
    if (error || !self || !self->reply_) return;
    self->stream_.has_left() ? self->cut() : self->watch_from_afar();
  });
}

// Cancelled again where it could not be at once: a record may have to be written first.
asio::awaitable<void> Connection::end_watch() {
  while (watching_) {
    stream_.cancel();
    news_.expires_after(kCancelTime);
    co_await news_.async_wait(kAwait);
  }
}

void Connection::drop_reply() {
  look_.cancel();
  if (!reply_) return;
  reply_->on_news({});
  reply_->cancel();
  reply_.reset();
}

void Connection::end_keep_alive(bool close) {
  AnswerHead& head = sender_.head();
  head.keep_alive = head.keep_alive && !close && !transport_.draining;
}

void Connection::done(int status) {
  transport_.service.answered(request_, {.status = status, .bytes = sender_.sent()});
}

Connection::Next Connection::leave() {
  done(499);
  return Next::kClose;
}

// A connection that is closed while there is something unread is reset, and its client might not see the answer.
asio::awaitable<void> Connection::linger() {
  stream_.end_sending();
  std::chrono::nanoseconds time = seconds(transport_.limits.linger_s);
  if (transport_.draining) time = std::min<std::chrono::nanoseconds>(time, kLastLingerTime);
  arrives_by(std::chrono::steady_clock::now() + time);
  lingering_ = reading_ = true;  // to the end
  std::array<char, kReadBytes> ignored;
  for (size_t left = kLingerBytes; left > 0 && !is_late();) {
    const auto [failed, bytes] = co_await stream_.async_read_some(asio::buffer(ignored), kAwait);
    if (failed) break;
    left -= std::min(left, bytes);
  }
}

}  // namespace

void start_connection(Transport& transport, tcp::socket socket, const asio::ip::address& address) {
  const auto connection = std::make_shared<Connection>(transport, std::move(socket), address);
  asio::co_spawn(transport.io, connection->serve(), [connection](const std::exception_ptr& thrown) {
    if (!thrown) return;
    log_error("a connection was given up after an exception");
    connection->cut();  // or who waits for the client to leave, and the slot of its answer, stay as long as it does
  });
}

}  // namespace syrinx::server
