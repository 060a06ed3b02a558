// A protocol beside HTTP, as the transport sees it.  Inside the server alone: ProtocolPort (http_server.h) carries it.
#pragma once

#include <boost/asio/ip/tcp.hpp>

#include <string>

#include "server/http/http_connection.h"

namespace syrinx::server {

// Everything is called on the transport's thread.
class ConnectionStarter {
 public:
  virtual ~ConnectionStarter() = default;
  // Serves a client until the connection is closed; the connection is in `transport.connections` for so long.  Throws
  // std::bad_alloc, and nothing has then begun.
  virtual void start(Transport& transport, boost::asio::ip::tcp::socket socket,
                     const boost::asio::ip::address& address) = 0;
  // Answer to a client for whom there is no room.
  virtual std::string no_room(const std::string& why) const = 0;
};

}  // namespace syrinx::server
