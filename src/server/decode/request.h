// Parameters of requests of the transducer profile, /v2/decode/... (docs/server.md), and the form of its errors.  Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "server/http/http_message.h"

namespace syrinx::server::decode {

inline constexpr size_t kMaxOpaqueCharacters = 10000;

// Text of the client's that is repeated in every answer; absent: none.
using Opaque = std::optional<std::string>;

// 400 for one that is too long.
tl::expected<Opaque, HttpError> bounded_opaque(std::string opaque);
// From `opaque=TEXT` in the query, in the encoding of forms; an empty one counts as absent.
tl::expected<Opaque, HttpError> parse_opaque(std::string_view query_value);

// The model that a path names behind its last slash; what is no proper encoding stays as it came.
std::string named_model(std::string_view path);

// {"error": SENTENCE, "error_type": CODE}
std::string error_body(const HttpError& error);

}  // namespace syrinx::server::decode
