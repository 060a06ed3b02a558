#include "server/wyoming/event.h"

#include <algorithm>
#include <utility>

#include "base/in_quotes.h"

namespace syrinx::server::wyoming {
namespace {

constexpr size_t kMaxTypeBytes = 64;

Result<Json> parse_object(std::string_view text, const char* name, const EventLimits& limits) {
  SYRINX_TRY(Json json, parse_json(text, name,
                                   {.max_bytes = text.size(),
                                    .max_depth = limits.kMaxDepth,
                                    .max_values = limits.kMaxValues,
                                    .max_bare_bytes = limits.kMaxBareBytes,
                                    .takes_lone_surrogates = true}));
  if (json.object() == nullptr) return fail(Code::kDataLoss, "{} is not a JSON object; give one", name);
  if (json.object()->size() > limits.kMaxFields)
    return fail(Code::kLimitExceeded, "{} has {} fields; give at most {}", name, json.object()->size(),
                limits.kMaxFields);
  return json;
}

Result<size_t> length_of(const Json& line, const char* field, size_t limit) {
  const Json* const value = line.find(field);
  if (value == nullptr || value->is_null()) return size_t{0};
  if (value->whole() == nullptr || *value->whole() < 0)
    return fail(Code::kDataLoss, "'{}' must be a number of bytes", field);
  if (*value->whole() > static_cast<int64_t>(limit))
    return fail(Code::kLimitExceeded, "'{}' is {}; send at most {} bytes at a time", field, *value->whole(), limit);
  return static_cast<size_t>(*value->whole());
}

}  // namespace

const std::string* Event::text(std::string_view name) const {
  const Json* const value = data.find(name);
  return value != nullptr ? value->string() : nullptr;
}

const int64_t* Event::whole(std::string_view name) const {
  const Json* const value = data.find(name);
  return value != nullptr ? value->whole() : nullptr;
}

std::string written(const Event& event) {
  Json line;
  line.set("type", event.type);
  std::string data;
  if (event.data.object() != nullptr && !event.data.object()->empty()) {
    data = event.data.dump();
    line.set("data_length", data.size());
  }
  if (!event.payload.empty()) line.set("payload_length", event.payload.size());
  return line.dump() + '\n' + data + event.payload;
}

Result<std::optional<Event>> EventReader::next() {
  if (!event_) {
    const size_t end = bytes_.find('\n', std::exchange(searched_, bytes_.size()));
    if (std::min(end, bytes_.size()) > limits_.max_json_bytes)
      return fail(Code::kLimitExceeded, "the event's line has more than {} bytes; send a shorter one",
                  limits_.max_json_bytes);
    if (end == std::string::npos) return std::nullopt;
    SYRINX_TRY_VOID(read_line(std::string_view(bytes_).substr(0, end)));
    bytes_.erase(0, end + 1);
    searched_ = 0;
  }
  if (bytes_.size() < data_bytes_ + payload_bytes_) return std::nullopt;
  if (data_bytes_ > 0) SYRINX_TRY_VOID(add_data(std::string_view(bytes_).substr(0, data_bytes_)));
  event_->payload = bytes_.substr(data_bytes_, payload_bytes_);
  bytes_.erase(0, data_bytes_ + payload_bytes_);
  return std::exchange(event_, std::nullopt);
}

Status EventReader::read_line(std::string_view line) {
  SYRINX_TRY(Json json, parse_object(line, "the event's line", limits_));
  const Json* const type = json.find("type");
  if (type == nullptr || type->string() == nullptr || type->string()->size() > kMaxTypeBytes)
    return fail(Code::kDataLoss, "the event's 'type' must be a text of at most {} bytes", kMaxTypeBytes);
  SYRINX_TRY(data_bytes_, length_of(json, "data_length", limits_.max_json_bytes));
  SYRINX_TRY(payload_bytes_, length_of(json, "payload_length", limits_.max_payload_bytes));
  Event event{.type = *type->string()};
  if (const Json* const data = json.find("data"); data != nullptr && !data->is_null()) {
    if (data->object() == nullptr || data->object()->size() > limits_.kMaxFields)
      return fail(Code::kDataLoss, "the 'data' of the event {} must be an object of at most {} fields",
                  in_quotes(event.type), limits_.kMaxFields);
    event.data = *data;
  }
  event_ = std::move(event);
  return {};
}

Status EventReader::add_data(std::string_view text) {
  SYRINX_TRY(Json json, parse_object(text, "the event's data", limits_));
  for (JsonMember& member : *json.object()) {
    Json::Object& known = *event_->data.object();
    const auto same = std::find_if(known.begin(), known.end(), [&](const auto& m) { return m.key == member.key; });
    if (same == known.end())
      known.push_back(std::move(member));
    else
      same->value = std::move(member.value);
  }
  return {};
}

}  // namespace syrinx::server::wyoming
