// One client's connection: requests one after another, each with its deadlines, and their answers.  Everything here
// runs on the transport's thread.  Inside the server alone (http_server.h is what others use).
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <set>

#include "server/http/handshake_pace.h"
#include "server/http/http_server.h"
#include "server/http/tls_identity.h"

namespace syrinx::server {

class HttpConnection;

// State shared by a server's connections.
struct Transport {
  Transport(const HttpLimits& wanted, HttpService& asked)
      : limits(wanted), service(asked), handshakes(wanted.max_connections_per_address) {}

  const HttpLimits limits;
  HttpService& service;
  std::atomic<size_t> answering{0};  // read by any thread
  bool draining = false;
  std::shared_ptr<const TlsIdentity> identity;  // of HTTP's connections from now on; null: they are in the clear
  std::set<HttpConnection*> connections;
  std::map<boost::asio::ip::address, size_t> by_address;  // as they are counted (counted_address.h), here and elsewhere
  HandshakePace<boost::asio::ip::address> handshakes;
  boost::asio::io_context io{1};  // last: the coroutines that end with it use the above
};

class HttpConnection {
 public:
  virtual ~HttpConnection() = default;
  virtual void close_if_idle() = 0;  // unless a request is being answered; a session, behind what is under way in it
  virtual void cut() = 0;            // whatever it does; its answer is cancelled
};

// As long as it lives, a connection is counted and may be cut.  Throws std::bad_alloc, and nothing is counted then.
class Membership {
 public:
  Membership(Transport& transport, HttpConnection& connection, const boost::asio::ip::address& address)
      : transport_(transport), connection_(connection), address_(address) {
    size_t& count = transport_.by_address[address_];
    transport_.connections.insert(&connection_);
    ++count;  // behind what can throw
  }
  ~Membership() {
    transport_.connections.erase(&connection_);
    const auto count = transport_.by_address.find(address_);
    if (--count->second == 0) transport_.by_address.erase(count);
  }
  Membership(const Membership&) = delete;
  Membership& operator=(const Membership&) = delete;

 private:
  Transport& transport_;
  HttpConnection& connection_;
  const boost::asio::ip::address address_;
};

// Serves a client until the connection is closed; the connection is in `transport.connections` for so long.  Throws
// std::bad_alloc, and nothing has then begun.
void start_connection(Transport& transport, boost::asio::ip::tcp::socket socket,
                      const boost::asio::ip::address& address);

}  // namespace syrinx::server
