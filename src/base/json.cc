#include "base/json.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

namespace syrinx {
namespace {

// Builds our values from the library's events.  Every handler returns false to stop the parser.
class Builder {
 public:
  // `bytes` may be null.
  Builder(const std::string& name, const JsonLimits& limits, JsonBytes* bytes)
      : name_(name), limits_(limits), bytes_(bytes) {}

  bool null() { return add(Json()); }
  bool boolean(bool value) { return add(Json(value)); }
  bool number_integer(int64_t value) { return add(Json(value)); }
  bool number_unsigned(uint64_t value) {
    if (in_bytes_ && value <= 255) return add_byte(static_cast<char>(value));
    return add(Json(size_t{value}));
  }
  bool number_float(double value, const std::string&) { return add(Json(value)); }
  bool string(std::string& value) { return add(Json(std::move(value))); }
  bool binary(const std::vector<uint8_t>&) { return false; }
  bool key(std::string& value) {
    open_.back().keys.push_back(std::move(value));
    return true;
  }
  bool start_object(size_t) { return open(true); }
  bool start_array(size_t) {
    const bool is_bytes = bytes_ != nullptr && !in_bytes_ && open_.size() == 1 && open_.back().is_object &&
                          open_.back().keys.back() == bytes_->key;
    if (!is_bytes) return open(false);
    bytes_->bytes.emplace();
    in_bytes_ = true;
    return true;
  }
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
    if (std::exchange(in_bytes_, false)) return add(Json());
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
    if (in_bytes_) return no_byte();
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
    if (in_bytes_) return no_byte();
    if (++values_ > limits_.max_values) {
      error_ = Error{Code::kLimitExceeded, fmt::format("'{}': more than {} values of JSON", name_, limits_.max_values)};
      return false;
    }
    if (open_.empty())
      root_ = std::move(value);
    else
      open_.back().values.push_back(std::move(value));
    return true;
  }

  bool add_byte(char byte) {
    if (bytes_->bytes->size() >= bytes_->max_bytes) {
      error_ = Error{Code::kLimitExceeded,
                     fmt::format("'{}': '{}' has more than {} bytes", name_, bytes_->key, bytes_->max_bytes)};
      return false;
    }
    *bytes_->bytes += byte;
    return true;
  }
  bool no_byte() {
    error_ = Error{Code::kDataLoss, fmt::format("'{}': element {} of '{}' is not a whole number from 0 to 255", name_,
                                                bytes_->bytes->size(), bytes_->key)};
    return false;
  }

  const std::string& name_;
  const JsonLimits& limits_;
  JsonBytes* const bytes_;
  bool in_bytes_ = false;  // of the text that is being read
  size_t values_ = 0;
  std::vector<Level> open_;
  Json root_;
  Error error_;
};

// The bytes of the longest string, quotes included, and of the longest number, word or run of blanks.
struct Longest {
  size_t string = 0, bare = 0;
};

Longest longest_pieces(std::string_view text) {
  enum class Kind : uint8_t { kBlank, kMark, kWord, kString };
  const auto kind_of = [](char c) {
    if (c == '"') return Kind::kString;
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r') return Kind::kBlank;
    return std::string_view("[]{},:").find(c) != std::string_view::npos ? Kind::kMark : Kind::kWord;
  };
  Longest longest;
  for (size_t at = 0; at < text.size();) {
    const Kind kind = kind_of(text[at]);
    size_t end = at + 1;
    if (kind == Kind::kString) {
      while (end < text.size() && text[end] != '"') end += text[end] == '\\' ? 2 : 1;
      end = std::min(end + 1, text.size());
    } else {
      while (end < text.size() && kind_of(text[end]) == kind) ++end;
    }
    if (kind == Kind::kString) longest.string = std::max(longest.string, end - at);
    if (kind == Kind::kBlank || kind == Kind::kWord) longest.bare = std::max(longest.bare, end - at);
    at = end;
  }
  return longest;
}

Status check_pieces(std::string_view text, const std::string& name, const JsonLimits& limits) {
  if (std::min(limits.max_piece_bytes, limits.max_bare_bytes) >= text.size()) return {};
  const Longest longest = longest_pieces(text);
  if (std::max(longest.string, longest.bare) > limits.max_piece_bytes)
    return fail(Code::kLimitExceeded, "'{}': a text, a number or blanks of more than {} bytes in JSON", name,
                limits.max_piece_bytes);
  if (longest.bare > limits.max_bare_bytes)
    return fail(Code::kLimitExceeded, "'{}': a number or blanks of more than {} bytes in JSON", name,
                limits.max_bare_bytes);
  return {};
}

// The number of an escape of six bytes; -1: it is none.
int escaped_unit(std::string_view escape) {
  if (escape.size() < 6 || !escape.starts_with("\\u")) return -1;
  int unit = 0;
  const auto [end, error] = std::from_chars(escape.data() + 2, escape.data() + 6, unit, 16);
  return error == std::errc() && end == escape.data() + 6 ? unit : -1;
}

bool is_high(int unit) { return unit >= 0xd800 && unit <= 0xdbff; }
bool is_low(int unit) { return unit >= 0xdc00 && unit <= 0xdfff; }

// The text with `other` for each half of a pair of surrogates; nothing where there is none.
std::optional<std::string> without_lone_surrogates(std::string_view text, std::string_view other) {
  std::optional<std::string> mended;
  size_t copied = 0;
  for (size_t at = text.find('\\'); at < text.size(); at = text.find('\\', at)) {
    const int unit = escaped_unit(text.substr(at, 6));
    const bool is_pair = is_high(unit) && is_low(escaped_unit(text.substr(at + 6, 6)));
    if (!is_pair && (is_high(unit) || is_low(unit))) {
      if (!mended) mended.emplace();
      mended->append(text.substr(copied, at - copied)).append(other);
      copied = at + 6;
    }
    at += is_pair ? 12 : unit >= 0 ? 6 : 2;
  }
  if (mended) mended->append(text.substr(copied));
  return mended;
}

// U+0080 to U+009F, two bytes, only stand in texts.
std::string with_escaped_controls(std::string json) {
  std::string escaped;
  size_t copied = 0;
  for (size_t at = json.find('\xC2'); at != std::string::npos; at = json.find('\xC2', at + 2)) {
    const auto second = static_cast<unsigned char>(json[at + 1]);
    if (second > 0x9F) continue;
    escaped.append(json, copied, at - copied).append(fmt::format("\\u00{:02x}", second));
    copied = at + 2;
  }
  if (copied == 0) return json;
  return escaped.append(json, copied);
}

Result<Json> parse(std::string_view text, const std::string& name, const JsonLimits& limits, JsonBytes* bytes) {
  if (text.size() > limits.max_bytes)
    return fail(Code::kLimitExceeded, "'{}': {} bytes of JSON, the limit is {}", name, text.size(), limits.max_bytes);
  SYRINX_TRY_VOID(check_pieces(text, name, limits));
  const bool takes_halves = limits.takes_lone_surrogates || limits.drops_lone_surrogates;
  const auto mended =
      takes_halves ? without_lone_surrogates(text, limits.drops_lone_surrogates ? "" : "\\ufffd") : std::nullopt;
  Builder builder(name, limits, bytes);
  if (!nlohmann::json::sax_parse(mended ? std::string_view(*mended) : text, &builder))
    return tl::unexpected(builder.error());
  return builder.take();
}

// Our tree as the library's, for its writer.  Depth is the caller's own: values that we built or parsed within limits.
nlohmann::ordered_json to_library(const Json& value) {
  if (value.is_null()) return nullptr;
  if (const bool* b = value.boolean()) return *b;
  if (const int64_t* whole = value.whole()) return *whole;
  if (const auto natural = value.natural()) return *natural;
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
Json::Json(size_t value) : value_(static_cast<int64_t>(value)) {
  if (value > size_t{std::numeric_limits<int64_t>::max()}) value_ = Large{value, static_cast<double>(value)};
}
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
const double* Json::real() const {
  const Large* const large = std::get_if<Large>(&value_);
  return large != nullptr ? &large->real : std::get_if<double>(&value_);
}
std::optional<uint64_t> Json::natural() const {
  if (const Large* const large = std::get_if<Large>(&value_)) return large->whole;
  const int64_t* const number = whole();
  return number != nullptr && *number >= 0 ? std::optional(static_cast<uint64_t>(*number)) : std::nullopt;
}
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
  return with_escaped_controls(
      to_library(*this).dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

Result<Json> parse_json(std::string_view text, const std::string& name, const JsonLimits& limits) {
  return parse(text, name, limits, nullptr);
}

Result<Json> parse_json(std::string_view text, const std::string& name, const JsonLimits& limits, JsonBytes& bytes) {
  bytes.bytes.reset();
  return parse(text, name, limits, &bytes);
}

}  // namespace syrinx
