// One client's connection over Wyoming.  Everything here runs on the transport's thread.  Inside the server alone.
#pragma once

#include <boost/asio/ip/tcp.hpp>

#include <string>

#include "server/http_connection.h"
#include "server/service.h"
#include "server/wyoming/info.h"

namespace syrinx::server::wyoming {

// Serves a client until the connection is closed; the connection is in `transport.connections` for so long.  Throws
// std::bad_alloc, and nothing has then begun.
void start_connection(Transport& transport, boost::asio::ip::tcp::socket socket,
                      const boost::asio::ip::address& address, Service& service, Description& description);
// What a client is told whom there is no room for.
std::string no_room(const std::string& why);

}  // namespace syrinx::server::wyoming
