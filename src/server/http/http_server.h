// HTTP/1.1 over TCP: sockets, parsing, limits and deadlines.  It moves bytes between clients and an HttpService on one
// thread of its own and never waits for anything but sockets and clocks.
//
// A connection serves one request after another (keep-alive).  A client whose request has not come whole in time is
// told so (408), one that takes nothing of its answer for too long is cut; one that closes its connection, or its
// sending half, while an answer is made has that answer cancelled.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "server/http/http_message.h"

namespace syrinx::server {

struct HttpLimits {
  static constexpr size_t kMaxHeaderBytes = size_t{60} << 10;
  std::string host = "127.0.0.1";
  int port = 0;                     // 0: any free one
  size_t max_header_bytes = 16384;  // at most kMaxHeaderBytes
  size_t max_connections = 1024, max_connections_per_address = 256;
  size_t max_message_bytes = size_t{1} << 20;  // of a WebSocket's message
  double idle_timeout_s = 75, request_timeout_s = 30, stalled_reader_s = 30;
  // For a WebSocket's message that holds room, which must also bring something within each stalled_reader_s.
  double message_timeout_s = 300;
  // For clients that were refused before they had sent all, or are to close: longer than a machine may pause.
  double linger_s = 10;
  double leaving_s = 2;  // for what is on its way to a WebSocket's client when its session leaves it
};

// Interface from the transport to the routes.  On the transport's thread: must not wait.
class HttpService {
 public:
  virtual ~HttpService() = default;

  struct Admission {
    size_t max_body_bytes = 0;           // 0: none is taken
    std::string_view body_setting = {};  // the setting behind it, for the refusal of more; empty: none
    // From now on; 0: the limits' request_timeout_s, from the first byte on.  One that has a time of its own must also
    // bring something within each stalled_reader_s.
    double body_timeout_s = 0;
    // Called as the body arrives, with how many bytes of it there are; the answer where they find no room.  May be
    // empty.
    std::function<std::unique_ptr<HttpReply>(size_t bytes)> grow = {};
    std::shared_ptr<const void> hold = {};    // for the request, HttpRequest::hold
    std::vector<HttpHeader> headers = {};     // for whatever the answer will be
    ErrorForm error_form = error_body;        // of the answer, if it is one
    std::unique_ptr<HttpReply> refusal = {};  // the answer already, before any body is read
  };
  // When the header is there.
  virtual Admission admit(const HttpRequest& head) = 0;
  // When the body is, which may be taken out of the request unless the reply has `until`.  What it throws is answered
  // with 500, or 503 for want of memory.
  virtual HttpReply answer(HttpRequest& request) = 0;

  struct Answered {
    int status = 0;      // 499: the client has gone
    uint64_t bytes = 0;  // of the answer's body
  };
  // Once for each request whose header has come, and for each refused without (`request` is then all but empty).
  virtual void answered(const HttpRequest& request, const Answered& answered) = 0;
  // A connection was refused for want of room.
  virtual void refused() = 0;
  // One has ended before TLS was agreed upon.
  virtual void handshake_failed() = 0;
};

class ConnectionStarter;
class TlsIdentity;

// Another protocol at a port of its own, on the same thread and within the same limits (connection_starter.h).
struct ProtocolPort {
  int port = 0;           // 0: any free one
  const char* flag = "";  // the flag that chooses it, for messages
  std::shared_ptr<ConnectionStarter> protocol;
};

class HttpServer {
 public:
  // kInvalidArgument: it is neither an address nor localhost.  Whether it is one of this machine's listen() finds out.
  static Status check_host(const std::string& host);
  // Listens and serves at once, HTTP over TLS where there is an identity.  The services must outlive it.  kUnavailable:
  // the address is taken or is not this machine's, or no thread can be made; kInvalidArgument: it is no address.
  static Result<std::unique_ptr<HttpServer>> listen(const HttpLimits& limits, HttpService& service,
                                                    std::optional<ProtocolPort> other = {},
                                                    std::shared_ptr<const TlsIdentity> identity = {});
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  int port() const;
  int protocol_port() const;  // of the other protocol; 0: there is none
  // Any thread.  For connections that begin from now on, over TLS as before.
  void renew(std::shared_ptr<const TlsIdentity> identity);
  // Any thread.  Takes no connections any more, closes idle ones, and each other behind its answer.
  void drain();
  size_t answering() const;  // requests whose header has come and that are not answered
  // Cuts all connections and cancels their answers; none is touched any more when this returns.  ReplyStreams may
  // still be written to by others until this is destroyed.
  void stop();

 private:
  HttpServer();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace syrinx::server
