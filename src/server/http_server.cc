#include "server/http_server.h"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <chrono>
#include <exception>
#include <system_error>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/in_quotes.h"
#include "base/log.h"
#include "server/http_connection.h"

namespace syrinx::server {
namespace {

namespace asio = boost::asio;
using tcp = asio::ip::tcp;
using error_code = boost::system::error_code;

constexpr auto kAwait = asio::as_tuple(asio::use_awaitable);
// What the system keeps for a slow reader; it asks for more once a third of it has gone, which is what counts as
// progress.
constexpr int kSocketBytes = 32 << 10;
constexpr std::chrono::milliseconds kPause{100};

}  // namespace

struct HttpServer::Impl {
  Impl(const HttpLimits& wanted, HttpService& asked) : transport(wanted, asked) {}
  Status open();
  Status start();
  void run();
  void start_accepting(std::chrono::milliseconds pause);
  asio::awaitable<void> accept(std::chrono::milliseconds pause);
  void take(tcp::socket socket, const asio::ip::address& address);
  bool has_room(const asio::ip::address& address) const;

  Transport transport;
  int port = 0;
  tcp::acceptor acceptor{transport.io};
  std::thread thread;
};

Status HttpServer::Impl::open() {
  const HttpLimits& limits = transport.limits;
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

bool HttpServer::Impl::has_room(const asio::ip::address& address) const {
  const HttpLimits& limits = transport.limits;
  const auto count = transport.by_address.find(address);
  return transport.connections.size() < limits.max_connections &&
         (count == transport.by_address.end() || count->second < limits.max_connections_per_address);
}

asio::awaitable<void> HttpServer::Impl::accept(std::chrono::milliseconds pause) {
  asio::steady_timer timer(transport.io);
  while (acceptor.is_open()) {
    if (pause.count() > 0) {
      timer.expires_after(pause);
      co_await timer.async_wait(kAwait);
    }
    auto [error, socket] = co_await acceptor.async_accept(kAwait);
    if (error == asio::error::operation_aborted || transport.draining) break;
    pause = error ? kPause : std::chrono::milliseconds(0);  // no descriptor is free: until some have been closed
    if (error) continue;
    const asio::ip::address address = socket.remote_endpoint(error).address();
    if (!error) take(std::move(socket), address);  // or it is gone again
  }
}

// What goes wrong with one connection must not keep others out.
void HttpServer::Impl::take(tcp::socket socket, const asio::ip::address& address) {
  error_code ignored;
  try {
    if (!has_room(address)) {
      static constexpr std::string_view kFull =
          "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
      socket.non_blocking(true, ignored);
      socket.write_some(asio::buffer(kFull), ignored);
      transport.service.refused();
      return;
    }
    socket.set_option(tcp::no_delay(true), ignored);
    socket.set_option(asio::socket_base::send_buffer_size(kSocketBytes), ignored);
    start_connection(transport, std::move(socket), address);
  } catch (const std::exception& error) {
    log_error("a connection was given up: {}", error.what());
  }
}

void HttpServer::Impl::start_accepting(std::chrono::milliseconds pause) {
  asio::co_spawn(transport.io, accept(pause), [this](const std::exception_ptr& thrown) {
    if (!thrown) return;
    log_error("connections are taken again after an exception");
    start_accepting(kPause);
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
  start_accepting(std::chrono::milliseconds(0));
  try {
    thread = std::thread([this] { run(); });
  } catch (const std::system_error& error) {
    return fail(Code::kUnavailable,
                "no thread can be made for the server's connections: {}; raise the limit of threads", error.what());
  }
  return {};
}

HttpServer::HttpServer() = default;

HttpServer::~HttpServer() { stop(); }

Result<std::unique_ptr<HttpServer>> HttpServer::listen(const HttpLimits& limits, HttpService& service) {
  SYRINX_CHECK(limits.max_header_bytes <= HttpLimits::kMaxHeaderBytes);
  std::unique_ptr<HttpServer> server(new HttpServer);
  server->impl_ = std::make_unique<Impl>(limits, service);
  SYRINX_TRY_VOID(server->impl_->open());
  SYRINX_TRY_VOID(server->impl_->start());
  return server;
}

int HttpServer::port() const { return impl_->port; }

size_t HttpServer::answering() const { return impl_->transport.answering.load(); }

void HttpServer::drain() {
  asio::post(impl_->transport.io, [impl = impl_.get()] {
    impl->transport.draining = true;
    error_code ignored;
    impl->acceptor.close(ignored);
    for (HttpConnection* connection : impl->transport.connections) connection->close_if_idle();
  });
}

void HttpServer::stop() {
  if (!impl_->thread.joinable()) return;
  asio::post(impl_->transport.io, [impl = impl_.get()] {
    impl->transport.draining = true;
    error_code ignored;
    impl->acceptor.close(ignored);
    for (HttpConnection* connection : impl->transport.connections) connection->cut();
  });
  impl_->thread.join();  // with no connection left there is nothing to run
}

}  // namespace syrinx::server
