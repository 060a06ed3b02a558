#include "server/http/http_server.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include <array>
#include <chrono>
#include <exception>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/in_quotes.h"
#include "base/log.h"
#include "server/http/connection_starter.h"
#include "server/http/counted_address.h"
#include "server/http/http_connection.h"
#include "server/http/http_sender.h"
#include "server/http/request_id.h"

namespace syrinx::server {
namespace {

namespace asio = boost::asio;
using tcp = asio::ip::tcp;
using error_code = boost::system::error_code;

// Bytes that the system keeps for a slow reader; it asks for more once a third of them has gone, which counts as
// progress.
constexpr int kSocketBytes = 32 << 10;
constexpr std::chrono::milliseconds kPause{100};

// Without waiting.  A socket that is closed while there is something unread is reset, and what it was told is lost:
// what has come already is read, and what comes later meets the end of what we say, which is then on its way.
void turn_away(tcp::socket& socket, const std::string& words) {
  error_code error;
  socket.non_blocking(true, error);
  socket.write_some(asio::buffer(words), error);
  socket.shutdown(tcp::socket::shutdown_send, error);
  std::array<char, 4096> unread;
  for (int reads = 0; reads < 16 && !error; ++reads) socket.read_some(asio::buffer(unread), error);
}

// Also where only the address has no room: behind a proxy all clients share one, and another server may have room.
std::string no_room(const std::string& why) {
  const std::string body = error_body({.status = 503, .message = why, .code = "connections"});
  return fmt::format(
      "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Type: application/json\r\nX-Request-Id: {}\r\n"
      "Content-Length: {}\r\nConnection: close\r\n\r\n{}",
      new_request_id(), body.size(), body);
}

Result<asio::ip::address> address_of(const std::string& host) {
  error_code error;
  const asio::ip::address address = asio::ip::make_address(host == "localhost" ? "127.0.0.1" : host, error);
  if (!error) return address;
  return fail(Code::kInvalidArgument, "'host' {} is not an address; give one such as 127.0.0.1, ::1 or 0.0.0.0",
              in_quotes(host));
}

}  // namespace

struct HttpServer::Impl {
  // A port, and what is served there.
  struct Door {
    Door(asio::io_context& io, const char* flag) : port_flag(flag), acceptor(io) {}
    const char* port_flag;
    int port = 0;
    tcp::acceptor acceptor;
    std::function<void(tcp::socket socket, const asio::ip::address& address)> start;
    // Answer to a client for whom there is no room, and why; empty where it could not be read, by TLS.
    std::function<std::string(const std::string& why)> no_room;
  };

  Impl(const HttpLimits& wanted, HttpService& asked) : transport(wanted, asked) {}
  Status open(Door& door, int port) const;
  Status start();
  void run();
  void start_accepting(Door& door, std::chrono::milliseconds pause);
  asio::awaitable<void> accept(Door& door, std::chrono::milliseconds pause);
  void take(const Door& door, tcp::socket socket, const asio::ip::address& address);
  std::optional<std::string> fullness(const asio::ip::address& address) const;
  Door* other_door() { return other ? &*other : nullptr; }
  void close(std::initializer_list<Door*> doors);

  std::shared_ptr<ConnectionStarter> protocol;  // served at `other`
  Transport transport;
  Door http{transport.io, "--port"};
  std::optional<Door> other;
  std::thread thread;
};

Status HttpServer::Impl::open(Door& door, int port) const {
  const HttpLimits& limits = transport.limits;
  SYRINX_TRY(const asio::ip::address address, address_of(limits.host));
  error_code error;
  const tcp::endpoint endpoint(address, static_cast<unsigned short>(port));
  tcp::acceptor& acceptor = door.acceptor;
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(asio::socket_base::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error)
    return fail(Code::kUnavailable, "cannot listen on {} port {}: {}; choose another --host or {}", limits.host, port,
                error.message(), door.port_flag);
  door.port = acceptor.local_endpoint(error).port();
  return {};
}

// Why there is no room for one more from that address; none: there is.
std::optional<std::string> HttpServer::Impl::fullness(const asio::ip::address& address) const {
  const HttpLimits& limits = transport.limits;
  if (transport.connections.size() >= limits.max_connections)
    return fmt::format("the server has too many connections: 'max_connections' is {}; ask again in a second",
                       limits.max_connections);
  const auto count = transport.by_address.find(address);
  if (count != transport.by_address.end() && count->second >= limits.max_connections_per_address)
    return fmt::format(
        "there are too many connections from your address: 'max_connections_per_address' is {}; close some, or ask "
        "again in a second",
        limits.max_connections_per_address);
  return std::nullopt;
}

asio::awaitable<void> HttpServer::Impl::accept(Door& door, std::chrono::milliseconds pause) {
  asio::steady_timer timer(transport.io);
  while (door.acceptor.is_open()) {
    if (pause.count() > 0) {
      timer.expires_after(pause);
      co_await timer.async_wait(kAwait);
    }
    auto [error, socket] = co_await door.acceptor.async_accept(kAwait);
    if (!door.acceptor.is_open()) break;
    pause = error ? kPause : std::chrono::milliseconds(0);  // no descriptor is free: until some have been closed
    if (error) continue;
    const asio::ip::address address = counted_as(socket.remote_endpoint(error).address());
    if (!error) take(door, std::move(socket), address);  // or it is gone again
  }
}

// A fault of one connection must not keep others out.
void HttpServer::Impl::take(const Door& door, tcp::socket socket, const asio::ip::address& address) {
  error_code ignored;
  try {
    if (const auto why = fullness(address)) {
      turn_away(socket, door.no_room ? door.no_room(*why) : "");
      transport.service.refused();
      return;
    }
    socket.set_option(tcp::no_delay(true), ignored);
    socket.set_option(asio::socket_base::send_buffer_size(kSocketBytes), ignored);
    door.start(std::move(socket), address);
  } catch (const std::exception& error) {
    log_error("a connection was given up: {}", error.what());
  }
}

void HttpServer::Impl::start_accepting(Door& door, std::chrono::milliseconds pause) {
  asio::co_spawn(transport.io, accept(door, pause), [this, &door](const std::exception_ptr& thrown) {
    if (!thrown) return;
    log_error("connections are taken again after an exception");
    start_accepting(door, kPause);
  });
}

// The thread's entry: what libraries throw ends here, and the others' handlers go on.
void HttpServer::Impl::run() {
  for (bool ended = false; !ended;) {
    try {
      transport.io.run();
      ended = true;
    } catch (const std::exception& error) {
      log_error("the transport goes on after an exception: {}", error.what());
    }
  }
}

Status HttpServer::Impl::start() {
  start_accepting(http, std::chrono::milliseconds(0));
  if (other) start_accepting(*other, std::chrono::milliseconds(0));
  try {
    thread = std::thread([this] { run(); });
  } catch (const std::system_error& error) {
    return fail(Code::kUnavailable,
                "no thread can be made for the server's connections: {}; raise the limit of threads", error.what());
  }
  return {};
}

void HttpServer::Impl::close(std::initializer_list<Door*> doors) {
  transport.draining = true;
  error_code ignored;
  for (Door* const door : doors)
    if (door != nullptr) door->acceptor.close(ignored);
}

HttpServer::HttpServer() = default;

Status HttpServer::check_host(const std::string& host) {
  const auto address = address_of(host);
  if (!address) return tl::unexpected(address.error());
  return {};
}

HttpServer::~HttpServer() { stop(); }

Result<std::unique_ptr<HttpServer>> HttpServer::listen(const HttpLimits& limits, HttpService& service,
                                                       std::optional<ProtocolPort> other,
                                                       std::shared_ptr<const TlsIdentity> identity) {
  SYRINX_CHECK(limits.max_header_bytes <= HttpLimits::kMaxHeaderBytes);
  std::unique_ptr<HttpServer> server(new HttpServer);
  server->impl_ = std::make_unique<Impl>(limits, service);
  Impl& impl = *server->impl_;
  impl.http.start = [&impl](tcp::socket socket, const asio::ip::address& address) {
    start_connection(impl.transport, std::move(socket), address);
  };
  impl.transport.identity = std::move(identity);
  if (!impl.transport.identity) impl.http.no_room = no_room;
  SYRINX_TRY_VOID(impl.open(impl.http, limits.port));
  if (other) {
    impl.protocol = other->protocol;
    impl.other.emplace(impl.transport.io, other->flag);
    impl.other->start = [&impl](tcp::socket socket, const asio::ip::address& address) {
      impl.protocol->start(impl.transport, std::move(socket), address);
    };
    impl.other->no_room = [&impl](const std::string& why) { return impl.protocol->no_room(why); };
    SYRINX_TRY_VOID(impl.open(*impl.other, other->port));
  }
  SYRINX_TRY_VOID(impl.start());
  return server;
}

int HttpServer::port() const { return impl_->http.port; }

int HttpServer::protocol_port() const { return impl_->other ? impl_->other->port : 0; }

size_t HttpServer::answering() const { return impl_->transport.answering.load(); }

void HttpServer::renew(std::shared_ptr<const TlsIdentity> identity) {
  asio::post(impl_->transport.io,
             [impl = impl_.get(), identity = std::move(identity)] { impl->transport.identity = identity; });
}

void HttpServer::drain() {
  asio::post(impl_->transport.io, [impl = impl_.get()] {
    // Over HTTP the service says for itself that it goes down, and balancers, Kubernetes and Prometheus ask to the end.
    impl->close({impl->other_door()});
    for (HttpConnection* connection : impl->transport.connections) connection->close_if_idle();
  });
}

void HttpServer::stop() {
  if (!impl_->thread.joinable()) return;
  asio::post(impl_->transport.io, [impl = impl_.get()] {
    impl->close({&impl->http, impl->other_door()});
    for (HttpConnection* connection : impl->transport.connections) connection->cut();
  });
  impl_->thread.join();  // with no connection left there is nothing to run
}

}  // namespace syrinx::server
