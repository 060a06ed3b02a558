// A client's connection as HTTP and WebSockets see it, in the clear or by TLS: an AsyncStream of Beast's, with what
// they need of its tcp_stream besides.  On the transport's thread; inside the server alone.
//
// One class for both, whose handlers have lost their types, so that Beast's readers, writers and WebSockets are
// compiled once, and TLS in this class's own source alone.  It costs each operation an indirect call and a small
// allocation (which the thread recycles), and by TLS a copy of what is written in several pieces, so that it becomes
// one record.
//
// One read and one write may be under way at a time.  TLS takes about 80 kB of memory for each connection.
#pragma once

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/role.hpp>
#include <boost/beast/core/tcp_stream.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <utility>

#include "server/http/tls_identity.h"

namespace syrinx::server {

class ClientStream {
 public:
  using executor_type = boost::beast::tcp_stream::executor_type;
  using error_code = boost::system::error_code;

  // By TLS with an identity, which is not used after this returns.  Throws std::bad_alloc.
  ClientStream(boost::asio::ip::tcp::socket socket, const TlsIdentity* identity);
  ~ClientStream();
  ClientStream(const ClientStream&) = delete;
  ClientStream& operator=(const ClientStream&) = delete;

  executor_type get_executor() { return tcp_.get_executor(); }
  bool is_tls() const { return tls_ != nullptr; }

  // For operations that begin from now on; a late one closes the connection and fails with beast::error::timeout.
  void expires_after(std::chrono::nanoseconds time) { tcp_.expires_after(time); }
  void expires_at(std::chrono::steady_clock::time_point end) { tcp_.expires_at(end); }
  void expires_never() { tcp_.expires_never(); }
  void cancel() { tcp_.cancel(); }  // what is under way; the connection goes on
  void close() { tcp_.close(); }    // as a fault: by TLS the client sees that something is missing
  // The client has closed its connection, or its half of it, also behind bytes that nobody reads here.
  bool has_left();
  // Tells the client, without waiting, that all has been sent.  Nothing may be written any more; bytes that are read
  // come as they are on the wire, to be thrown away.
  void end_sending();

  // For TLS only, before anything else.
  template <class Token>
  auto async_handshake(Token&& token) {
    return boost::asio::async_initiate<Token, void(error_code)>(
        [this](auto handler) { start_handshake(std::move(handler)); }, token);
  }

  template <class Buffers, class Token>
  auto async_read_some(const Buffers& buffers, Token&& token) {
    return boost::asio::async_initiate<Token, void(error_code, size_t)>(
        [this](auto handler, const Buffers& wanted) {
          incoming_.collect(wanted);
          start_read(std::move(handler));
        },
        token, buffers);
  }

  template <class Buffers, class Token>
  auto async_write_some(const Buffers& buffers, Token&& token) {
    return boost::asio::async_initiate<Token, void(error_code, size_t)>(
        [this](auto handler, const Buffers& wanted) {
          outgoing_.collect(wanted);
          start_write(std::move(handler));
        },
        token, buffers);
  }

  // Beast's WebSockets need these of a stream.
  template <class Handler>
  friend void async_teardown(boost::beast::role_type role, ClientStream& stream, Handler&& handler) {
    stream.start_teardown(role, std::forward<Handler>(handler));
  }
  friend void beast_close_socket(ClientStream& stream) { stream.close(); }

 private:
  using Done = boost::asio::any_completion_handler<void(error_code)>;
  using Moved = boost::asio::any_completion_handler<void(error_code, size_t)>;

  // The first of somebody's buffers that are not empty: to move some bytes is enough.  A sequence of buffers itself.
  template <class Buffer>
  class Pieces {
   public:
    using value_type = Buffer;
    using const_iterator = const Buffer*;
    template <class Buffers>
    void collect(const Buffers& buffers) {
      count_ = 0;
      const auto end = boost::asio::buffer_sequence_end(buffers);
      for (auto at = boost::asio::buffer_sequence_begin(buffers); at != end && count_ < pieces_.size(); ++at)
        if (const Buffer piece(*at); piece.size() > 0) pieces_[count_++] = piece;
    }
    const_iterator begin() const { return pieces_.data(); }
    const_iterator end() const { return pieces_.data() + count_; }
    size_t count() const { return count_; }

   private:
    std::array<Buffer, 16> pieces_;
    size_t count_ = 0;
  };

  struct Tls;
  void start_handshake(Done done);
  void start_read(Moved done);
  void start_write(Moved done);
  void start_tls_write(Moved done);
  void start_teardown(boost::beast::role_type role, Done done);
  void send_close_notify();

  boost::beast::tcp_stream tcp_;
  std::unique_ptr<Tls> tls_;  // null: in the clear
  Pieces<boost::asio::mutable_buffer> incoming_;
  Pieces<boost::asio::const_buffer> outgoing_;
};

}  // namespace syrinx::server
