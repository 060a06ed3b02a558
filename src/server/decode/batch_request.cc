#include "server/decode/batch_request.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/in_quotes.h"
#include "base/json.h"
#include "engine/recognition/recogniser.h"
#include "text/unicode.h"

namespace syrinx::server::decode {
namespace {

constexpr std::string_view kJsonType = "application/json", kSamplesType = "application/octet-stream";
constexpr size_t kMaxMembers = 16;                    // of the body, of which five mean something
constexpr size_t kMaxPieceBytes = size_t{128} << 10;  // more than an 'opaque' with a name for each of its characters

size_t max_bytes_of(double max_s) { return static_cast<size_t>(max_s * kRecognitionRateHz) * kSampleBytes; }

// Without what stands behind a semicolon.
std::string media_type(std::string_view type) {
  type = type.substr(0, type.find(';'));
  while (type.ends_with(' ')) type.remove_suffix(1);
  return text::ascii_lower(type);
}

constexpr std::array<std::string_view, 5> kFields = {"audio_buffer", "opaque", "_description", "_incremental",
                                                     "_model"};

// Fields of the original server that have no use here.
bool is_passed_over(std::string_view field) { return field.starts_with('_'); }

bool is_known(std::string_view field) { return std::find(kFields.begin(), kFields.end(), field) != kFields.end(); }

tl::unexpected<HttpError> no_json(const std::string& why) {
  return tl::unexpected(
      HttpError{.status = 400, .message = why + "; give a JSON object with 'audio_buffer'", .code = "invalid_json"});
}

tl::expected<void, HttpError> take_member(const JsonMember& member, BatchRequest& request) {
  const auto& [key, value] = member;
  if (!is_known(key))
    return tl::unexpected(HttpError{.status = 400,
                                    .message = fmt::format("there is no field {}; a request may have audio_buffer, "
                                                           "opaque, _description, _incremental and _model",
                                                           in_quotes(key)),
                                    .param = shortened(key),
                                    .code = "unknown_parameter"});
  if (key == "audio_buffer" || is_passed_over(key) || value.is_null()) return {};
  if (value.string() == nullptr) return refuse("opaque", "'opaque' must be a text");
  auto opaque = bounded_opaque(*value.string());
  if (!opaque) return tl::unexpected(std::move(opaque).error());
  request.opaque = std::move(*opaque);
  return {};
}

tl::expected<BatchRequest, HttpError> parse_json_body(std::string_view body, double max_s) {
  // A byte more than is taken, so that what is too long is told apart.
  JsonBytes sound{.key = "audio_buffer", .max_bytes = max_bytes_of(max_s) + 1};
  const JsonLimits limits{.max_bytes = body.size(),
                          .max_depth = 1,
                          .max_values = kMaxMembers,
                          .max_piece_bytes = kMaxPieceBytes,
                          .takes_lone_surrogates = true};
  const auto json = parse_json(body, "the body", limits, sound);
  const bool is_too_long = sound.bytes && sound.bytes->size() == sound.max_bytes;
  if (!json && !is_too_long) return no_json(json.error().message);
  if (json && json->object() == nullptr) return no_json("the body is not an object");
  BatchRequest request;
  if (json)
    for (const JsonMember& member : *json->object())
      if (auto taken = take_member(member, request); !taken) return tl::unexpected(std::move(taken).error());
  if (!sound.bytes) return refuse("audio_buffer", "'audio_buffer' must be a list of bytes, numbers from 0 to 255");
  request.sound = std::move(*sound.bytes);
  return request;
}

}  // namespace

std::vector<std::string> batch_fields() { return {kFields.begin(), kFields.end()}; }

std::optional<HttpError> batch_type_fault(std::string_view type) {
  const std::string media = media_type(type);
  if (media == kJsonType || media == kSamplesType) return std::nullopt;
  return HttpError{.status = 415,
                   .message = fmt::format("the body is {}; send application/json, or application/octet-stream with the "
                                          "samples themselves",
                                          type.empty() ? "of no type" : in_quotes(type))};
}

size_t max_body_bytes(std::string_view type, double max_s) {
  return media_type(type) == kSamplesType ? std::min(kMaxBatchBytes, max_bytes_of(max_s)) : kMaxBatchBytes;
}

tl::expected<BatchRequest, HttpError> parse_batch_request(std::string_view type, std::string body, double max_s) {
  tl::expected<BatchRequest, HttpError> request = BatchRequest();
  if (media_type(type) == kJsonType)
    request = parse_json_body(body, max_s);
  else
    request->sound = std::move(body);
  if (!request) return request;
  const size_t bytes = request->sound.size();
  if (bytes == 0) return refuse("audio_buffer", "there is no sound in the request; send samples of 16 bits");
  if (bytes > max_bytes_of(max_s))
    return refuse("audio_buffer", "the sound is longer than {} s, which are {} bytes; send less at once, or a stream",
                  max_s, max_bytes_of(max_s));
  if (bytes % kSampleBytes != 0)
    return refuse("audio_buffer", "the sound has {} bytes, and a sample has {}; send whole ones", bytes, kSampleBytes);
  return request;
}

}  // namespace syrinx::server::decode
