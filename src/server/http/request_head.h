// The head of a request as Beast has parsed it, in our own form.
#pragma once

#include <boost/beast/http/message.hpp>
#include <boost/beast/http/string_body.hpp>

#include <string>

#include "server/http/http_message.h"
#include "server/http/http_sender.h"

namespace syrinx::server {

using BeastRequest = boost::beast::http::request<boost::beast::http::string_body>;

// Fills in method, target, headers and, where the client gives one, the id.  False: the target is no plain host.
bool take_head(const BeastRequest& message, HttpRequest& request);
AnswerHead answer_head(const BeastRequest& message, const std::string& request_id);

}  // namespace syrinx::server
