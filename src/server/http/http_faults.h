// The answers to requests that the transport refuses by itself, before a service has seen their bodies or because it
// throws.
#pragma once

#include <boost/system/error_code.hpp>

#include <cstddef>

#include "server/http/http_server.h"

namespace syrinx::server {

// Whether Beast's parser says by it that what came is no HTTP, or more of it than fits.
bool is_malformed(const boost::system::error_code& error);
// 431 or 400 for such an error; `buffer_bytes` is the room that header and trailer had.
HttpReply parse_fault(const boost::system::error_code& error, const HttpLimits& limits, size_t buffer_bytes);
HttpReply too_late(double time_s);
HttpReply stalled(double time_s);
HttpReply unknown_encoding();
HttpReply bad_target();
HttpReply too_long(const HttpService::Admission& admission);  // a body that it does not admit
HttpReply too_early();                                        // bytes behind a handshake that has not been answered
// The service's answer: 500 where it throws, 503 for want of memory.
HttpReply answer_of(HttpService& service, HttpRequest& request);

}  // namespace syrinx::server
