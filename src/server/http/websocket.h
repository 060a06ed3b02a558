// One WebSocket (RFC 6455) from its handshake to its end, between a socket and a MessageStream.  On the transport's
// thread; inside the server alone.
//
// A client that has sent nothing for half of idle_timeout_s is pinged and, when nothing comes of that either, cut; one
// that takes nothing of a message for stalled_reader_s is cut too, and so is, leaving_s after MessageStream::leave(),
// one that has not taken what was on its way.  A frame or message that is too long ends the connection with 1009, a
// long one that finds no room with 1013, text that is no UTF-8 with 1007, other violations with 1002.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/string_body.hpp>

#include <memory>
#include <vector>

#include "server/http/client_stream.h"
#include "server/http/http_server.h"
#include "server/http/message_stream.h"

namespace syrinx::server {

// Parts of one connection.
struct WebSocketOrder {
  ClientStream& stream;
  std::shared_ptr<void> owner;  // of the stream; kept until nothing uses it any more
  std::shared_ptr<MessageStream> messages;
  std::vector<HttpHeader> headers;  // of the handshake's answer
};

// Answers the handshake, carries messages both ways until either side ends the connection, and closes it.  With status
// 101, or 400 for a handshake that makes no sense, which has been answered so, or 499 when its client has gone.  The
// session hears of every end, of an exception's too.
boost::asio::awaitable<HttpService::Answered> serve_web_socket(
    WebSocketOrder order, boost::beast::http::request<boost::beast::http::string_body> handshake,
    const HttpLimits& limits);

}  // namespace syrinx::server
