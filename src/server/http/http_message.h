// A request and its answer, as everything but the transport sees them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace syrinx::server {

class MessageStream;
class ReplyStream;
struct HttpError;

struct HttpHeader {
  std::string name, value;
};

struct HttpRequest {
  std::string method;  // "GET"
  std::string path;    // "/v1/models", its letters, digits and "-._~" decoded
  std::string query;   // what stands behind the '?'
  std::vector<HttpHeader> headers;
  std::string body;
  std::shared_ptr<const void> hold;  // of the room that the body takes; who takes the body takes this, too
  std::string address;               // of the client, as it is counted (counted_address.h)
  std::string id;                    // ours, or the client's X-Request-Id
  int64_t arrived_ns = 0;            // of the first byte
  double waited_s = 0;               // by HttpReply::until
  std::shared_ptr<const void> kept;  // by the service while it waits, part of what it waits for

  // Path and query, of "/path?query" or "http://host/path?query"; host and port of the latter are a header Host in
  // front of all others (RFC 9112, section 3.2.2).  False: that is no plain host.
  bool take_target(std::string_view target);
  // The first header of that name, in any case; empty where there is none.
  std::string_view header(std::string_view name) const;
  // Nothing is left, memory included: of the body and its room, which a long answer would keep, or of all.
  void free_body();
  void clear();
  // The value of `name=value` in the query; nothing is decoded (percent_decoded()).
  std::string_view query_value(std::string_view name) const;
};

// Whole: status, headers and body.  With a stream, all three come from there (reply_stream.h).  With messages, the
// connection becomes a WebSocket (message_stream.h), whose handshake is answered with the headers.  With `until`, there
// is no answer yet: the service is asked for it again when that stream has ended, which never begins.
struct HttpReply {
  int status = 200;
  std::string type = "application/json";
  std::vector<HttpHeader> headers = {};
  std::string body = {};
  std::shared_ptr<ReplyStream> stream = {};
  std::shared_ptr<MessageStream> messages = {};
  std::shared_ptr<ReplyStream> until = {};
  // The error behind the answer, for routes that write it in another form (ErrorForm).
  std::shared_ptr<const HttpError> error = {};
};

// An error in a request, in the form of OpenAI's interface.
struct HttpError {
  int status = 400;
  std::string message;
  std::string param = {};  // the field; empty: null
  std::string code = {};   // "model_not_found"; empty: null
  int retry_after_s = 0;   // 0: not said
};

// 400 for a field of a request: what is wrong with it, its limit and the remedy.
template <class... Args>
tl::unexpected<HttpError> refuse(const char* field, fmt::format_string<Args...> format, Args&&... args) {
  return tl::unexpected(
      HttpError{.status = 400, .message = fmt::format(format, std::forward<Args>(args)...), .param = field});
}

// Decodes a part of an address, in which %XX stands for a byte and, in a query, + for a blank.  Nothing where a `%` is
// followed by anything but two hexadecimal digits.
std::optional<std::string> percent_decoded(std::string_view coded, bool plus_is_blank);

bool same_name(std::string_view a, std::string_view b);  // of headers: whatever the case of their letters

const char* status_phrase(int status);  // "Not Found"; also of our 499
const char* error_type(int status);     // "invalid_request_error", ...
std::string error_body(const HttpError& error);
using ErrorForm = std::string (*)(const HttpError& error);  // as error_body()
HttpReply error_reply(const HttpError& error);
// An engine's error: its code decides the status.  What is the server's own fault is told without the engine's
// sentence, which may name its files.
HttpError http_error(const Error& error, std::string param = {});

}  // namespace syrinx::server
