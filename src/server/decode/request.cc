#include "server/decode/request.h"

#include <utility>

#include "base/json.h"
#include "text/unicode.h"

namespace syrinx::server::decode {

tl::expected<Opaque, HttpError> bounded_opaque(std::string opaque) {
  const size_t characters = text::count_code_points(opaque);
  if (characters > kMaxOpaqueCharacters)
    return refuse("opaque", "'opaque' has {} characters; give at most {}", characters, kMaxOpaqueCharacters);
  return Opaque(std::move(opaque));
}

tl::expected<Opaque, HttpError> parse_opaque(std::string_view query_value) {
  if (query_value.empty()) return Opaque();
  auto plain = percent_decoded(query_value, /*plus_is_blank=*/true);
  if (!plain || text::find_invalid(*plain))
    return refuse("opaque", "'opaque' of the query must be UTF-8, with %XX for what an address cannot hold");
  return bounded_opaque(std::move(*plain));
}

std::string named_model(std::string_view path) {
  const std::string_view coded = path.substr(path.rfind('/') + 1);
  auto plain = percent_decoded(coded, /*plus_is_blank=*/false);
  return plain ? std::move(*plain) : std::string(coded);
}

std::string error_body(const HttpError& error) {
  Json body;
  body.set("error", error.message);
  body.set("error_type", error.code.empty() ? error_type(error.status) : error.code.c_str());
  return body.dump();
}

}  // namespace syrinx::server::decode
