#include "server/http/json_fields.h"

#include <cmath>
#include <string_view>

namespace syrinx::server {

Checked take_text(const Json& value, const char* field, std::string& text, size_t max_bytes) {
  if (value.is_null()) return {};
  if (value.string() == nullptr) return refuse(field, "'{}' must be a text", field);
  if (value.string()->size() > max_bytes)
    return refuse(field, "'{}' has {} bytes; give at most {}", field, value.string()->size(), max_bytes);
  text = *value.string();
  return {};
}

Checked take_number(const Json& value, const char* field, double min, double max, double& number) {
  if (value.is_null()) return {};
  const double given = value.whole() != nullptr  ? static_cast<double>(*value.whole())
                       : value.real() != nullptr ? *value.real()
                                                 : std::nan("");
  if (!(given >= min && given <= max)) return refuse(field, "'{}' must be a number from {} to {}", field, min, max);
  number = given;
  return {};
}

Checked take_flag(const Json& value, const char* field, bool& flag) {
  if (value.is_null()) return {};
  if (value.boolean() == nullptr) return refuse(field, "'{}' must be true or false", field);
  flag = *value.boolean();
  return {};
}

std::string without_half_characters(const std::string& text) {
  constexpr std::string_view kHalf = "\xEF\xBF\xBD";
  std::string whole;
  size_t at = 0;
  for (size_t found = text.find(kHalf); found != std::string::npos; found = text.find(kHalf, at)) {
    whole.append(text, at, found - at);
    at = found + kHalf.size();
  }
  whole.append(text, at);
  return whole.find_first_not_of(" \t\r\n") == std::string::npos ? text : whole;
}

Checked take_voice(const Json& value, const char* field, std::string& voice) {
  if (value.object() == nullptr) return take_text(value, field, voice);
  const Json* const id = value.find("id");
  if (id == nullptr || value.object()->size() != 1)
    return refuse(field, "'{}' must be a name, or an object with an 'id' and nothing else", field);
  return take_text(*id, field, voice);
}

}  // namespace syrinx::server
