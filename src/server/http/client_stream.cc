#include "server/http/client_stream.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <boost/asio/ssl/stream.hpp>
#include <boost/beast/websocket/teardown.hpp>

#include <algorithm>
#include <new>
#include <vector>

namespace syrinx::server {

namespace asio = boost::asio;
namespace beast = boost::beast;
using tcp = asio::ip::tcp;

namespace {

constexpr size_t kRecordBytes = 16384;  // of one record's content

// A handler without its type has an executor without one, too, which Beast cannot post to.  In these, everything goes
// to the stream's own, which is that of all handlers here: the transport's thread.
template <class Done>
auto on_own_executor(Done done) {
  return [done = std::move(done)](const auto&... results) mutable { std::move(done)(results...); };
}

ssl_st* connection_of(const TlsIdentity& identity) {
  ssl_st* const connection = identity.make_connection();
  if (connection == nullptr) throw std::bad_alloc();
  return connection;
}

}  // namespace

struct ClientStream::Tls {
  Tls(beast::tcp_stream& tcp, const TlsIdentity& identity) : stream(tcp, connection_of(identity)) {}

  asio::ssl::stream<beast::tcp_stream&> stream;
  std::vector<std::byte> record;  // what is being written, if it came in pieces
  bool writing = false;           // a record may be on the wire in part
  bool ended = false;
};

ClientStream::ClientStream(tcp::socket socket, const TlsIdentity* identity) : tcp_(std::move(socket)) {
  if (identity != nullptr) tls_ = std::make_unique<Tls>(tcp_, *identity);
}

ClientStream::~ClientStream() = default;

void ClientStream::start_handshake(Done done) {
  tls_->stream.async_handshake(asio::ssl::stream_base::server, on_own_executor(std::move(done)));
}

void ClientStream::start_read(Moved done) {
  if (tls_ && !tls_->ended)
    tls_->stream.async_read_some(incoming_, on_own_executor(std::move(done)));
  else
    tcp_.async_read_some(incoming_, on_own_executor(std::move(done)));
}

void ClientStream::start_write(Moved done) {
  if (tls_)
    start_tls_write(std::move(done));
  else
    tcp_.async_write_some(outgoing_, on_own_executor(std::move(done)));
}

// As one record, however many pieces it came in: a chunk's length would be one of its own.
void ClientStream::start_tls_write(Moved done) {
  asio::const_buffer bytes = outgoing_.count() > 0 ? *outgoing_.begin() : asio::const_buffer();
  if (outgoing_.count() > 1 && bytes.size() < kRecordBytes) {
    std::vector<std::byte>& record = tls_->record;
    record.resize(std::min(asio::buffer_size(outgoing_), kRecordBytes));
    asio::buffer_copy(asio::buffer(record), outgoing_);
    bytes = asio::buffer(record);
  }
  tls_->writing = true;
  tls_->stream.async_write_some(bytes, [this, done = std::move(done)](const error_code& error, size_t count) mutable {
    tls_->writing = error.failed();  // then a part of the record may be on the wire, and nothing can follow it
    std::move(done)(error, count);
  });
}

bool ClientStream::has_left() {
  tcp_info info = {};
  socklen_t size = sizeof(info);
  if (::getsockopt(tcp_.socket().native_handle(), IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return false;
  return info.tcpi_state == TCP_CLOSE_WAIT || info.tcpi_state == TCP_CLOSE;
}

void ClientStream::end_sending() {
  if (tls_) send_close_notify();
  error_code ignored;
  tcp_.socket().shutdown(tcp::socket::shutdown_send, ignored);
}

// By hand: Asio's own would wait for the client's answer.  What the socket has no room for is left out.
void ClientStream::send_close_notify() {
  if (std::exchange(tls_->ended, true) || tls_->writing) return;
  ssl_st* const connection = tls_->stream.native_handle();
  BIO* const memory = SSL_is_init_finished(connection) == 1 ? BIO_new(BIO_s_mem()) : nullptr;
  if (memory != nullptr) {
    SSL_set0_wbio(connection, memory);
    SSL_shutdown(connection);
    char* bytes = nullptr;
    const long count = BIO_get_mem_data(memory, &bytes);
    if (count > 0)
      ::send(tcp_.socket().native_handle(), bytes, static_cast<size_t>(count), MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  ERR_clear_error();
}

void ClientStream::start_teardown(beast::role_type role, Done done) {
  if (tls_) send_close_notify();
  beast::websocket::async_teardown(role, tcp_.socket(), on_own_executor(std::move(done)));
}

}  // namespace syrinx::server
