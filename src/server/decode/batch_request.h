// The body of POST /v2/decode/batch/MODEL (docs/server.md).  Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/decode/request.h"

namespace syrinx::server::decode {

inline constexpr size_t kMaxBatchBytes = size_t{100} << 20;  // of a body, whatever the settings say
inline constexpr size_t kSampleBytes = 2;

// Why a body of that Content-Type is not taken; nothing: it is.
std::optional<HttpError> batch_type_fault(std::string_view type);
// Limit of a body of that type: for plain samples, the longest recording.
size_t max_body_bytes(std::string_view type, double max_s);

struct BatchRequest {
  std::string sound = {};  // s16 little endian, 16 kHz, one channel: whole samples, and one at least
  Opaque opaque = {};
};

// Parses a body of a known type: JSON with the samples as numbers, or the samples themselves.  400 names the field, its
// limit and the remedy.  Memory: beside a body of JSON its samples, and no more for it than for so many bytes.
tl::expected<BatchRequest, HttpError> parse_batch_request(std::string_view type, std::string body, double max_s);
// The names of all fields of that JSON that it knows.
std::vector<std::string> batch_fields();

}  // namespace syrinx::server::decode
