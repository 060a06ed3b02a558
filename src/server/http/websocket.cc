#include "server/http/websocket.h"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/buffers_to_string.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/websocket.hpp>

#include <chrono>
#include <exception>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "server/http/http_sender.h"
#include "text/unicode.h"

namespace syrinx::server {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace websocket = beast::websocket;
using error_code = boost::system::error_code;

using Duration = std::chrono::steady_clock::duration;

// Time to send the answer and for the closing handshake, in which a client may still have something to send: longer
// than a machine pauses.
constexpr Duration kClosingTime = std::chrono::seconds(10);

Duration steady_seconds(double time_s) { return std::chrono::duration_cast<Duration>(seconds(time_s)); }

class WebSocket final : public std::enable_shared_from_this<WebSocket> {
 public:
  WebSocket(WebSocketOrder order, const HttpLimits& limits)
      : order_(std::move(order)),
        limits_(limits),
        socket_(order_.stream),
        news_(order_.stream.get_executor()),
        room_(order_.stream.get_executor()),
        deadline_(order_.stream.get_executor()),
        arrival_(order_.stream.get_executor()) {}
  ~WebSocket() { order_.messages->on_news({}); }
  WebSocket(const WebSocket&) = delete;
  WebSocket& operator=(const WebSocket&) = delete;

  asio::awaitable<HttpService::Answered> serve(const beast::http::request<beast::http::string_body>& handshake);

 private:
  // However the work ends, an exception included: no more messages are made for it, and reading ends.
  class Ending {
   public:
    explicit Ending(WebSocket& socket) : socket_(socket) {}
    ~Ending() {
      socket_.order_.messages->on_news({});  // so that telling takes no memory
      socket_.order_.messages->leave();
      socket_.over_ = true;
      socket_.room_.cancel();
      socket_.deadline_.cancel();
      socket_.arrival_.cancel();
      socket_.order_.stream.close();
    }
    Ending(const Ending&) = delete;
    Ending& operator=(const Ending&) = delete;

   private:
    WebSocket& socket_;
  };

  asio::awaitable<int> carry(const beast::http::request<beast::http::string_body>& handshake);
  void set_options();
  void listen_for_news();
  void start_reading();
  asio::awaitable<void> read_messages();
  asio::awaitable<void> send_messages();
  asio::awaitable<bool> send(const MessageStream::Message& message);
  asio::awaitable<void> close(const MessageStream::End& end);
  void arrives_by(asio::steady_timer::time_point end);
  void cut_within(Duration time);
  void cut();
  static asio::awaitable<void> wait(asio::steady_timer& timer) {
    timer.expires_at(asio::steady_timer::time_point::max());
    co_await timer.async_wait(kAwait);
  }

  const WebSocketOrder order_;
  const HttpLimits& limits_;
  websocket::stream<ClientStream&> socket_;
  asio::steady_timer news_, room_;                  // cancelled when there are any, and when there is some
  asio::steady_timer deadline_;                     // of the message that is being sent, or of the end
  asio::steady_timer arrival_;                      // deadline of a long message, while it is read
  asio::cancellation_signal end_read_, end_close_;  // Beast's operations, while they run
  bool is_in_read_ = false;
  bool reading_ = false, leaving_ = false, closing_ = false, over_ = false;  // each for good, but the first
  uint64_t sent_ = 0;
};

void WebSocket::set_options() {
  // Its own times stand in for the stream's.
  order_.stream.expires_never();
  socket_.set_option(websocket::stream_base::timeout{.handshake_timeout = kClosingTime,
                                                     .idle_timeout = steady_seconds(limits_.idle_timeout_s),
                                                     .keep_alive_pings = true});
  socket_.set_option(websocket::stream_base::decorator([this](websocket::response_type& response) {
    for (const HttpHeader& header : order_.headers) response.set(header.name, header.value);
    response.set(beast::http::field::server, "syrinx");
  }));
  socket_.read_message_max(limits_.max_message_bytes);
}

asio::awaitable<HttpService::Answered> WebSocket::serve(
    const beast::http::request<beast::http::string_body>& handshake) {
  const int status = co_await carry(handshake);
  while (reading_) co_await wait(news_);
  co_return HttpService::Answered{.status = status, .bytes = sent_};
}

asio::awaitable<int> WebSocket::carry(const beast::http::request<beast::http::string_body>& handshake) {
  const Ending ending(*this);
  set_options();
  const auto [refused] = co_await socket_.async_accept(handshake, kAwait);
  if (refused) co_return refused == websocket::condition::handshake_failed ? 400 : 499;
  listen_for_news();
  start_reading();
  co_await send_messages();
  co_return 101;
}

void WebSocket::listen_for_news() {
  order_.messages->on_news([weak = weak_from_this(), executor = order_.stream.get_executor()] {
    asio::post(executor, [weak] {
      const auto self = weak.lock();
      if (!self) return;
      self->order_.messages->taken();
      self->news_.cancel();
      self->room_.cancel();
      if (self->order_.messages->is_gone() && !std::exchange(self->leaving_, true))
        self->cut_within(steady_seconds(self->limits_.leaving_s));
    });
  });
  order_.messages->taken();  // what was told while nobody listened is looked at next
}

void WebSocket::start_reading() {
  reading_ = true;
  asio::co_spawn(order_.stream.get_executor(), read_messages(),
                 [self = shared_from_this()](const std::exception_ptr& thrown) {
                   if (thrown) log_error("a connection was given up after an exception");
                   self->reading_ = false;
                   self->order_.messages->leave();
                   self->news_.cancel();
                 });
}

// Reads on while the session takes what comes, so that pings and the client's end are heard.  No piece is begun behind
// the close frame: Beast's close reads what still comes itself, and where it stands then Beast's read must not begin
// (1.81: impl_base.hpp asserts that a frame has been left half).
asio::awaitable<void> WebSocket::read_messages() {
  MessageStream& messages = *order_.messages;
  beast::flat_buffer buffer;
  MessageStream::Room room;
  Duration left = steady_seconds(limits_.message_timeout_s);  // for the message that holds room
  for (;;) {
    while (!messages.takes_more() && !messages.is_gone() && !closing_) co_await wait(room_);
    if (messages.is_gone() || closing_) break;
    const auto begun = std::chrono::steady_clock::now();
    if (room) arrives_by(begun + std::min(left, steady_seconds(limits_.stalled_reader_s)));
    is_in_read_ = true;
    const auto [error, bytes] =
        co_await socket_.async_read_some(buffer, 0, asio::bind_cancellation_slot(end_read_.slot(), kAwait));
    is_in_read_ = false;
    arrives_by(asio::steady_timer::time_point::max());
    if (room) left -= std::chrono::steady_clock::now() - begun;
    if (error) co_return;
    if (messages.is_gone()) continue;
    if (!messages.has_room_for(buffer.size(), room)) {
      messages.leave(
          MessageStream::End{.code = 1013, .reason = "there is no room for so long a message; try again later"});
      buffer.clear();
      buffer.shrink_to_fit();
      continue;
    }
    if (!socket_.is_message_done()) continue;
    left = steady_seconds(limits_.message_timeout_s);
    std::string message = beast::buffers_to_string(buffer.data());
    buffer.clear();
    buffer.shrink_to_fit();
    // Beast looks at each piece, and not at the end of a message whose last frame is empty.
    if (socket_.got_text() && text::find_invalid(message))
      messages.leave(MessageStream::End{.code = 1007, .reason = "a message is not UTF-8"});
    else
      messages.deliver({.bytes = std::move(message),
                        .is_text = socket_.got_text(),
                        .came_ns = system_clock().now_ns(),
                        .room = std::exchange(room, {})});
  }
  while (!over_) co_await wait(room_);
}

asio::awaitable<void> WebSocket::send_messages() {
  MessageStream& messages = *order_.messages;
  for (;;) {
    const auto end = messages.ended();  // before the messages: those in front of it are all there then
    MessageStream::Message message;
    if (messages.is_gone()) {
      if (end && reading_) co_await close(*end);
      co_return;
    }
    if (messages.try_pop(message)) {
      if (!co_await send(message)) co_return;
    } else if (end) {
      co_return co_await close(*end);
    } else {
      co_await wait(news_);
    }
  }
}

asio::awaitable<bool> WebSocket::send(const MessageStream::Message& message) {
  cut_within(steady_seconds(limits_.stalled_reader_s));
  socket_.text(message.is_text);
  const auto [error, bytes] = co_await socket_.async_write(asio::buffer(message.bytes), kAwait);
  deadline_.cancel();
  if (!error) sent_ += message.bytes.size();
  co_return !error;
}

asio::awaitable<void> WebSocket::close(const MessageStream::End& end) {
  // A frame that nobody reads may be in front.
  cut_within(order_.messages->is_gone() ? steady_seconds(limits_.leaving_s)
                                        : std::min<Duration>(steady_seconds(limits_.stalled_reader_s), kClosingTime));
  const websocket::close_reason reason(static_cast<websocket::close_code>(end.code), end.reason);
  closing_ = true;  // whether the client answers or not
  co_await socket_.async_close(reason, asio::bind_cancellation_slot(end_close_.slot(), kAwait));
}

// Half a message keeps others from the room that it holds.
void WebSocket::arrives_by(asio::steady_timer::time_point end) {
  arrival_.expires_at(end);
  if (end == asio::steady_timer::time_point::max()) return;
  arrival_.async_wait([weak = weak_from_this()](const error_code& error) {
    const auto self = weak.lock();
    if (error || !self || self->arrival_.expiry() > std::chrono::steady_clock::now()) return;
    self->order_.messages->leave(MessageStream::End{.code = 1008, .reason = "a long message has not come in time"});
  });
}

// Whatever is being written then.
void WebSocket::cut_within(Duration time) {
  deadline_.expires_after(time);
  deadline_.async_wait([weak = weak_from_this()](const error_code& error) {
    const auto self = weak.lock();
    if (!error && self && self->deadline_.expiry() <= std::chrono::steady_clock::now()) self->cut();
  });
}

// A frame that is wrong, read while the close frame is on its way, has Beast's reading wait for its closing and its
// closing for its reading, both without the socket (1.81, close.hpp and read.hpp: each holds the lock that the other
// one wants).
void WebSocket::cut() {
  order_.stream.close();
  if (!closing_) return;
  end_close_.emit(asio::cancellation_type::terminal);
  if (is_in_read_) end_read_.emit(asio::cancellation_type::terminal);
}

}  // namespace

asio::awaitable<HttpService::Answered> serve_web_socket(WebSocketOrder order,
                                                        beast::http::request<beast::http::string_body> handshake,
                                                        const HttpLimits& limits) {
  const auto socket = std::make_shared<WebSocket>(std::move(order), limits);
  co_return co_await socket->serve(handshake);
}

}  // namespace syrinx::server
