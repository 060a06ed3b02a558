#include "server/decode/request.h"

#include <utility>

#include "base/json.h"
#include "text/unicode.h"

namespace syrinx::server::decode {
namespace {

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char letter = text::ascii_lower(c);
  return letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
}

// Nothing where a `%` is followed by anything but two hexadecimal digits.
std::optional<std::string> percent_decoded(std::string_view coded, bool plus_is_blank) {
  std::string plain;
  for (size_t at = 0; at < coded.size(); ++at) {
    if (coded[at] != '%') {
      plain += plus_is_blank && coded[at] == '+' ? ' ' : coded[at];
      continue;
    }
    if (at + 2 >= coded.size()) return std::nullopt;
    const int high = hex_value(coded[at + 1]), low = hex_value(coded[at + 2]);
    if (high < 0 || low < 0) return std::nullopt;
    plain += static_cast<char>(16 * high + low);
    at += 2;
  }
  return plain;
}

}  // namespace

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
