#include "server/http/http_faults.h"

#include <boost/beast/http/error.hpp>

#include <exception>
#include <new>

#include "base/log.h"

namespace syrinx::server {

namespace http = boost::beast::http;
using error_code = boost::system::error_code;

namespace {

// In the units of the settings where they are whole.
std::string size_text(size_t bytes) {
  constexpr size_t kKilobyte = 1024, kMegabyte = kKilobyte * kKilobyte;
  if (bytes % kMegabyte == 0) return fmt::format("{} MB", bytes / kMegabyte);
  if (bytes % kKilobyte == 0) return fmt::format("{} KB", bytes / kKilobyte);
  return fmt::format("{} bytes", bytes);
}

}  // namespace

bool is_malformed(const error_code& error) {
  return error.category() == http::make_error_code(http::error::bad_method).category() &&
         error != http::error::end_of_stream && error != http::error::partial_message;
}

HttpReply parse_fault(const error_code& error, const HttpLimits& limits, size_t buffer_bytes) {
  if (error == http::error::header_limit)
    return error_reply({.status = 431,
                        .message = fmt::format("the request's header has more than {}, which is what the server's "
                                               "'max_header_kb' lets in; send a shorter one",
                                               size_text(limits.max_header_bytes))});
  if (error == http::error::buffer_overflow)
    return error_reply({.status = 431,
                        .message = fmt::format("the request's header or trailer has more than {}; send a shorter one",
                                               size_text(buffer_bytes))});
  return error_reply({.status = 400, .message = fmt::format("this is not an HTTP/1.1 request: {}", error.message())});
}

HttpReply bad_target() {
  return error_reply(
      {.status = 400,
       .message = "the request's target names no plain host; send a path, or http://host:port and a path"});
}

HttpReply too_late(double time_s) {
  return error_reply(
      {.status = 408,
       .message = fmt::format("the request has not come whole within {} s; send it faster, or a shorter one", time_s)});
}

HttpReply stalled(double time_s) {
  return error_reply(
      {.status = 408,
       .message = fmt::format("nothing of the request's body has come for {} s; send it again", time_s)});
}

// The end of such a body is unknown, and a proxy in front might see another one.
HttpReply unknown_encoding() {
  return error_reply(
      {.status = 400,
       .message = "the request's Transfer-Encoding is not taken; send `chunked` by HTTP/1.1, or a Content-Length"});
}

HttpReply too_early() {
  return error_reply(
      {.status = 400, .message = "something came behind the handshake, before its answer; wait for that"});
}

HttpReply too_long(const HttpService::Admission& admission) {
  const size_t limit = admission.max_body_bytes;
  if (limit == 0) return error_reply({.status = 413, .message = "this takes no body; send the request without one"});
  return error_reply(
      {.status = 413,
       .message = fmt::format("the request's body has more than {}{}; send a shorter one", size_text(limit),
                              admission.body_setting.empty()
                                  ? ""
                                  : fmt::format(", which is what the server's '{}' lets in", admission.body_setting))});
}

HttpReply answer_of(HttpService& service, HttpRequest& request) {
  try {
    return service.answer(request);
  } catch (const std::bad_alloc&) {
    log_error("a request was refused for want of memory");
    return error_reply(
        {.status = 503, .message = "the server has no memory left; ask again later", .retry_after_s = 1});
  } catch (const std::exception& error) {
    log_error("a request was given up: {}", error.what());
    return error_reply({.status = 500, .message = "the request was given up; the server's log says why"});
  }
}

}  // namespace syrinx::server
