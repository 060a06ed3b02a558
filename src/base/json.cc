#include "base/json.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace syrinx {
namespace {

// Builds our values from the library's events.  Every handler returns false to stop the parser.
class Builder {
 public:
  Builder(const std::string& name, const JsonLimits& limits) : name_(name), limits_(limits) {}

  bool null() { return add(Json()); }
  bool boolean(bool value) { return add(Json(value)); }
  bool number_integer(int64_t value) { return add(Json(value)); }
  bool number_unsigned(uint64_t value) {
    if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
      return add(Json(static_cast<double>(value)));
    return add(Json(static_cast<int64_t>(value)));
  }
  bool number_float(double value, const std::string&) { return add(Json(value)); }
  bool string(std::string& value) { return add(Json(std::move(value))); }
  bool binary(const std::vector<uint8_t>&) { return false; }
  bool key(std::string& value) {
    open_.back().keys.push_back(std::move(value));
    return true;
  }
  bool start_object(size_t) { return open(true); }
  bool start_array(size_t) { return open(false); }
  bool end_object() {
    Level level = std::move(open_.back());
    open_.pop_back();
    std::vector<std::string_view> sorted(level.keys.begin(), level.keys.end());
    std::sort(sorted.begin(), sorted.end());
    const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
    if (twice != sorted.end()) {
      error_ = Error{Code::kDataLoss, fmt::format("'{}': the JSON key '{}' stands twice in one object", name_, *twice)};
      return false;
    }
    Json::Object object(level.keys.size());
    for (size_t i = 0; i < object.size(); ++i)
      object[i] = JsonMember{std::move(level.keys[i]), std::move(level.values[i])};
    return add(Json(std::move(object)));
  }
  bool end_array() {
    Json::Array array = std::move(open_.back().values);
    open_.pop_back();
    return add(Json(std::move(array)));
  }
  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception&) {
    error_ = Error{Code::kDataLoss, fmt::format("'{}' is not valid JSON: stopped at byte {}", name_, position)};
    return false;
  }

  Json take() { return std::move(root_); }
  const Error& error() const { return error_; }

 private:
  struct Level {
    bool is_object = false;
    std::vector<std::string> keys;
    Json::Array values;
  };
  bool open(bool is_object) {
    if (open_.size() >= limits_.max_depth) {
      error_ =
          Error{Code::kLimitExceeded, fmt::format("'{}': JSON nested deeper than {} levels", name_, limits_.max_depth)};
      return false;
    }
    open_.emplace_back();
    open_.back().is_object = is_object;
    return true;
  }
  bool add(Json value) {
    if (open_.empty())
      root_ = std::move(value);
    else
      open_.back().values.push_back(std::move(value));
    return true;
  }

  const std::string& name_;
  const JsonLimits& limits_;
  std::vector<Level> open_;
  Json root_;
  Error error_;
};

// Our tree as the library's, for its writer.  Depth is the caller's own: values that we built or parsed within limits.
nlohmann::ordered_json to_library(const Json& value) {
  if (value.is_null()) return nullptr;
  if (const bool* b = value.boolean()) return *b;
  if (const int64_t* whole = value.whole()) return *whole;
  if (const double* real = value.real()) return *real;
  if (const std::string* text = value.string()) return *text;
  if (const Json::Array* array = value.array()) {
    auto out = nlohmann::ordered_json::array();
    for (const Json& item : *array) out.push_back(to_library(item));
    return out;
  }
  auto out = nlohmann::ordered_json::object();
  for (const JsonMember& member : *value.object()) out[member.key] = to_library(member.value);
  return out;
}

}  // namespace

// Here, where a member is a complete type.
Json::Json() = default;
Json::Json(bool value) : value_(value) {}
Json::Json(int value) : value_(static_cast<int64_t>(value)) {}
Json::Json(int64_t value) : value_(value) {}
Json::Json(size_t value) : value_(static_cast<int64_t>(value)) {}
Json::Json(double value) : value_(value) {}
Json::Json(std::string value) : value_(std::move(value)) {}
Json::Json(std::string_view value) : value_(std::string(value)) {}
Json::Json(const char* value) : value_(std::string(value)) {}
Json::Json(Array value) : value_(std::move(value)) {}
Json::Json(Object value) : value_(std::move(value)) {}
Json::Json(const Json& other) = default;
Json::Json(Json&& other) noexcept = default;
Json& Json::operator=(const Json& other) = default;
Json& Json::operator=(Json&& other) noexcept = default;
Json::~Json() = default;

bool Json::is_null() const { return std::holds_alternative<std::monostate>(value_); }
const bool* Json::boolean() const { return std::get_if<bool>(&value_); }
const int64_t* Json::whole() const { return std::get_if<int64_t>(&value_); }
const double* Json::real() const { return std::get_if<double>(&value_); }
const std::string* Json::string() const { return std::get_if<std::string>(&value_); }
const Json::Array* Json::array() const { return std::get_if<Array>(&value_); }
const Json::Object* Json::object() const { return std::get_if<Object>(&value_); }
Json::Array* Json::array() { return std::get_if<Array>(&value_); }
Json::Object* Json::object() { return std::get_if<Object>(&value_); }

const Json* Json::find(std::string_view key) const {
  const Object* const members = object();
  if (members == nullptr) return nullptr;
  for (const JsonMember& member : *members)
    if (member.key == key) return &member.value;
  return nullptr;
}

Json& Json::set(std::string key, Json value) {
  if (object() == nullptr) value_ = Object{};
  object()->push_back(JsonMember{std::move(key), std::move(value)});
  return *this;
}

std::string Json::dump() const {
  return to_library(*this).dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

Result<Json> parse_json(std::string_view text, const std::string& name, const JsonLimits& limits) {
  if (text.size() > limits.max_bytes)
    return fail(Code::kLimitExceeded, "'{}': {} bytes of JSON, the limit is {}", name, text.size(), limits.max_bytes);
  Builder builder(name, limits);
  if (!nlohmann::json::sax_parse(text, &builder)) return tl::unexpected(builder.error());
  return builder.take();
}

}  // namespace syrinx
