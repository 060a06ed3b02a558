#include "server/wyoming/connection.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <exception>
#include <memory>
#include <string>
#include <utility>

#include "base/log.h"
#include "server/http/connection_starter.h"
#include "server/http/http_sender.h"
#include "server/http/reply_stream.h"
#include "server/wyoming/info.h"
#include "server/wyoming/session.h"
#include "server/wyoming/speech_answer.h"

namespace syrinx::server::wyoming {
namespace {

namespace asio = boost::asio;
using tcp = asio::ip::tcp;
using error_code = boost::system::error_code;

constexpr size_t kReadBytes = 8192;
constexpr size_t kAheadBytes = size_t{16} << 10;  // of further events that are read while none can be taken
constexpr size_t kSendBytes = size_t{64} << 10;   // that are on their way at once
constexpr size_t kSaidBytes =
    size_t{64} << 10;               // of answers that wait to be sent; while there are so many, none is added
constexpr int kEventsPerTurn = 16;  // before other connections have theirs
constexpr size_t kLingerBytes = size_t{1} << 20;  // that are read behind an error, so that its client sees why
constexpr std::chrono::seconds kLingerTime{10};   // as http_connection.cc has it
constexpr auto kNever = std::chrono::steady_clock::time_point::max();

// Two coroutines: one reads events and gives them to the session, the other sends what it says and what its reply
// brings.
class Connection final : public HttpConnection, public std::enable_shared_from_this<Connection> {
 public:
  Connection(Transport& transport, tcp::socket socket, const asio::ip::address& address, Host& host,
             Description& description)
      : membership_(transport, *this, address),
        transport_(transport),
        stream_(std::move(socket)),
        patience_(transport.io),
        stalled_(transport.io),
        news_(transport.io),
        room_(transport.io),
        text_timeout_s_(host.text_timeout_s()),
        events_({.max_json_bytes = std::min(host.max_body_bytes(), EventLimits::kMaxJsonBytes)}),
        session_(host, description) {}
  ~Connection() override { end_reply(499); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  asio::awaitable<void> read();
  asio::awaitable<void> write();
  void close_if_idle() override {
    if (session_.reply() != nullptr) return;
    if (said_.empty() && sending_ == 0)
      cut();
    else
      close();  // behind what has been said
  }
  void cut() override;

 private:
  // A client that does not read its answers gets no more of them.
  bool may_take() const { return !closing_ && session_.takes_events() && said_.size() + sending_ < kSaidBytes; }
  // A client that has left is noticed by reading, but little is read of events that cannot be taken yet.
  bool may_read() const {
    return closing_ || (!more_ && (may_take() || (!session_.takes_events() && events_.waiting_bytes() < kAheadBytes)));
  }
  void take_events();
  void say(const Session::Said& said);
  void close();
  void end_reply(int status);
  void reply_may_have_changed();
  void sound_has_room();
  void expect_client(std::chrono::nanoseconds within);
  void client_is_late();
  void expect_reader(std::chrono::steady_clock::time_point from);
  asio::awaitable<bool> send(std::string_view bytes);
  asio::awaitable<bool> send_blocks(std::shared_ptr<ReplyStream> reply);
  asio::awaitable<void> wait(asio::steady_timer& timer);

  const Membership membership_;
  Transport& transport_;
  boost::beast::tcp_stream stream_;
  asio::steady_timer patience_;                              // until the client must have said something
  std::chrono::steady_clock::time_point text_end_ = kNever;  // until all of its text or sound must have come
  asio::steady_timer stalled_;                               // until it must have taken something of what is sent
  std::chrono::steady_clock::time_point spoke_at_;           // when something came last amid a sound, its end too
  asio::steady_timer news_;                                  // cancelled when there is something to be sent
  asio::steady_timer room_;                                  // cancelled when events may be taken again
  const double text_timeout_s_;
  EventReader events_;
  Session session_;
  std::string said_;        // to be sent between two blocks of the reply
  size_t sending_ = 0;      // bytes of what was said that are on their way
  bool more_ = false;       // events may be there that wait for their turn
  bool answering_ = false;  // the session has a reply, which is counted
  bool closing_ = false;    // behind what has been said: nothing more is taken
  bool gone_ = false;
  bool sending_sound_ = false;
};

void Connection::cut() {
  gone_ = true;
  end_reply(499);
  close();
  stream_.close();
}

void Connection::close() {
  closing_ = true;
  news_.cancel();
  room_.cancel();
}

// Timers are waited for until they are cancelled.
asio::awaitable<void> Connection::wait(asio::steady_timer& timer) {
  timer.expires_at(asio::steady_timer::time_point::max());
  co_await timer.async_wait(kAwait);
}

asio::awaitable<void> Connection::read() {
  const auto self = shared_from_this();
  std::array<char, kReadBytes> bytes;
  expect_client(seconds(transport_.limits.idle_timeout_s));
  for (size_t left = kLingerBytes; !gone_ && left > 0;) {
    if (!may_read()) {
      co_await wait(room_);
      continue;
    }
    const auto [error, count] = co_await stream_.async_read_some(asio::buffer(bytes), kAwait);
    if (error) break;
    if (session_.sound() != nullptr) spoke_at_ = std::chrono::steady_clock::now();
    if (closing_) {  // a connection that is closed while something is unread is reset, and its client might not see why
      left -= std::min(left, count);
    } else {
      events_.push({bytes.data(), count});
      take_events();
    }
  }
  end_reply(499);  // its client has left; messages so far are still sent
  close();
}

// One turn; another one follows by itself if there may be more.
void Connection::take_events() {
  if (more_) return;
  for (int taken = 0; may_take(); ++taken) {
    if (taken == kEventsPerTurn) {
      more_ = true;
      asio::post(transport_.io, [self = shared_from_this()] {
        self->more_ = false;
        self->room_.cancel();
        self->take_events();
      });
      return;
    }
    auto event = events_.next();
    if (!event) {
      say(session_.refuse_bytes(event.error()));
    } else if (*event) {
      const Session::Said said = session_.take(**event);
      say(said);
      if (said.goes_on) expect_client(seconds(transport_.limits.idle_timeout_s));
    } else {
      return;
    }
    reply_may_have_changed();
  }
}

void Connection::say(const Session::Said& said) {
  said_ += said.bytes;
  if (said.closes) close();
  news_.cancel();
}

// The producer's thread tells; what it tells of is looked at on this one.
void Connection::reply_may_have_changed() {
  const bool answering = session_.reply() != nullptr;
  if (answering == answering_) return;
  answering_ = answering;
  if (!answering) {
    --transport_.answering;
    room_.cancel();
    return;
  }
  ++transport_.answering;
  session_.reply()->on_news([weak = weak_from_this(), executor = transport_.io.get_executor()] {
    asio::post(executor, [weak] {
      if (const auto self = weak.lock()) self->news_.cancel();
    });
  });
  if (session_.sound() != nullptr)
    session_.sound()->on_room([weak = weak_from_this(), executor = transport_.io.get_executor()] {
      asio::post(executor, [weak] {
        if (const auto self = weak.lock()) self->sound_has_room();
      });
    });
  news_.cancel();
}

void Connection::sound_has_room() {
  if (session_.sound() != nullptr) expect_client(seconds(transport_.limits.idle_timeout_s));
  take_events();
  room_.cancel();
}

void Connection::end_reply(int status) {
  session_.reply_ended(status);
  reply_may_have_changed();
}

// While it is the server's turn no client is late.  One who is to send text, too, has it while there is no sound to be
// sent, and one who is to send sound while there is room for it, but for all of it only so long.
void Connection::expect_client(std::chrono::nanoseconds within) {
  const auto now = std::chrono::steady_clock::now();
  if (!session_.owes())
    text_end_ = kNever;
  else if (text_end_ == kNever)
    text_end_ = now + seconds(text_timeout_s_);
  patience_.expires_at(std::min(now + within, text_end_));
  patience_.async_wait([weak = weak_from_this()](const error_code& error) {
    const auto self = weak.lock();
    // One that is renewed after it has expired is not over, whatever stands in line.
    if (!error && self && self->patience_.expiry() <= std::chrono::steady_clock::now()) self->client_is_late();
  });
}

void Connection::client_is_late() {
  if (closing_ || session_.reply() == nullptr) {
    cut();
  } else if (session_.owes()) {
    // Once what is sent or taken has been, they are waited for.
    const bool is_our_turn = sending_sound_ || !session_.takes_events();
    if (is_our_turn && std::chrono::steady_clock::now() < text_end_) return;
    say(session_.refuse_late());
    reply_may_have_changed();
  }
}

asio::awaitable<void> Connection::write() {
  const auto self = shared_from_this();
  while (!gone_) {
    if (!said_.empty()) {
      const std::string bytes = std::exchange(said_, {});
      sending_ = bytes.size();
      if (!co_await send(bytes)) cut();
      sending_ = 0;
      take_events();
      room_.cancel();
    } else if (closing_) {
      error_code ignored;
      stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
      expect_client(kLingerTime);  // read() ends with the connection
      break;
    } else if (auto reply = session_.reply()) {
      if (!co_await send_blocks(std::move(reply))) cut();
    } else {
      co_await wait(news_);
    }
  }
}

// A client that reads nothing is disconnected, except while it sends audio; the time begins again at its last audio,
// since a client may read only the events behind that.
void Connection::expect_reader(std::chrono::steady_clock::time_point from) {
  stalled_.expires_at(from + seconds(transport_.limits.stalled_reader_s));
  stalled_.async_wait([weak = weak_from_this(), from](const error_code& error) {
    const auto self = weak.lock();
    const auto now = std::chrono::steady_clock::now();
    if (error || !self || self->stalled_.expiry() > now) return;  // it has taken something meanwhile
    if (self->session_.sound() != nullptr && !self->session_.takes_events())
      self->expect_reader(now);
    else if (self->spoke_at_ > from)
      self->expect_reader(self->spoke_at_);
    else
      self->cut();
  });
}

// Each part that is taken renews the time of a stalled reader.  False when the client is gone.
asio::awaitable<bool> Connection::send(std::string_view bytes) {
  while (!bytes.empty()) {
    expect_reader(std::chrono::steady_clock::now());
    const auto [error, count] = co_await stream_.async_write_some(asio::buffer(bytes), kAwait);
    stalled_.expires_at(kNever);
    if (error) co_return false;
    bytes.remove_prefix(count);
  }
  co_return true;
}

asio::awaitable<bool> Connection::send_blocks(std::shared_ptr<ReplyStream> reply) {
  const ReplyStream::News news = reply->pop_news();  // before the blocks: those in front of its end are all there then
  std::string bytes;
  for (ReplyStream::Block block; bytes.size() < kSendBytes && reply->try_pop(block);)
    bytes.append(reinterpret_cast<const char*>(block.data()), block.size());
  if (!bytes.empty()) {
    sending_sound_ = true;
    const bool taken = co_await send(bytes);
    sending_sound_ = false;
    session_.reply_sent(bytes.size());
    if (session_.owes()) expect_client(seconds(transport_.limits.idle_timeout_s));
    co_return taken;
  }
  if (news.end == ReplyStream::End::kOpen) {
    co_await wait(news_);
    co_return true;
  }
  const bool whole = news.end == ReplyStream::End::kFinished;
  end_reply(whole ? 200 : news.head != nullptr && news.head->status >= 400 ? news.head->status : 500);
  expect_client(seconds(transport_.limits.idle_timeout_s));
  if (!whole || transport_.draining) close();
  take_events();  // those that came meanwhile
  co_return true;
}

void start_connection(Transport& transport, tcp::socket socket, const asio::ip::address& address, Host& host,
                      Description& description) {
  const auto connection = std::make_shared<Connection>(transport, std::move(socket), address, host, description);
  const auto ended = [connection](const std::exception_ptr& thrown) {
    if (!thrown) return;
    log_error("a connection was given up after an exception");
    connection->cut();
  };
  asio::co_spawn(transport.io, connection->read(), ended);
  try {
    asio::co_spawn(transport.io, connection->write(), ended);
  } catch (...) {
    connection->cut();  // or it would read on
    throw;
  }
}

class Starter final : public ConnectionStarter {
 public:
  explicit Starter(Host& host) : host_(host) {}
  void start(Transport& transport, tcp::socket socket, const asio::ip::address& address) override {
    start_connection(transport, std::move(socket), address, host_, description_);
  }
  std::string no_room(const std::string& why) const override {
    return written(error_event({.status = 503, .message = why, .code = "connections"}));
  }

 private:
  Host& host_;
  Description description_;  // of the models, for all connections
};

}  // namespace

ProtocolPort wyoming_port(int port, Host& host) {
  return {.port = port, .flag = "--wyoming-port", .protocol = std::make_shared<Starter>(host)};
}

}  // namespace syrinx::server::wyoming
