#include "server/http/request_head.h"

#include <boost/beast/http/verb.hpp>

#include <string_view>

#include "server/http/request_id.h"

namespace syrinx::server {

bool take_head(const BeastRequest& message, HttpRequest& request) {
  request.method = std::string(message.method_string());
  const bool is_plain = request.take_target({message.target().data(), message.target().size()});
  for (const auto& field : message)
    request.headers.push_back({std::string(field.name_string()), std::string(field.value())});
  if (const std::string_view given = request.header("X-Request-Id"); is_request_id(given)) request.id = given;
  return is_plain;
}

AnswerHead answer_head(const BeastRequest& message, const std::string& request_id) {
  return {.request_id = request_id,
          .keep_alive = message.keep_alive(),
          .http_1_0 = message.version() < 11,
          .head_only = message.method() == boost::beast::http::verb::head};
}

}  // namespace syrinx::server
