#include "models/qwen_tts/json_section.h"

#include <utility>

#include "base/in_quotes.h"

namespace syrinx::qwen_tts {

Result<JsonSection> JsonSection::root(const Json& json, const std::string& file) {
  if (json.object() == nullptr) return fail(Code::kDataLoss, "'{}' is not a JSON object", file);
  return JsonSection(json, file, "");
}

bool JsonSection::has(std::string_view key) const {
  const Json* const value = find(key);
  return value != nullptr && !value->is_null();
}

tl::unexpected<Error> JsonSection::refuse(Code code, std::string_view key, std::string_view what) const {
  return fail(code, "'{}': {}{} {}", file_, path_, key, what);
}

tl::unexpected<Error> JsonSection::missing(std::string_view key) const {
  return refuse(Code::kDataLoss, key, "is missing; download the file again");
}

Result<JsonSection> JsonSection::section(const std::string& key) const {
  SYRINX_TRY(const auto found, optional_section(key));
  if (!found) return missing(key);
  return *found;
}

Result<std::optional<JsonSection>> JsonSection::optional_section(const std::string& key) const {
  if (!has(key)) return std::optional<JsonSection>();
  const Json& value = *find(key);
  if (value.object() == nullptr) return refuse(Code::kDataLoss, key, "is not an object");
  return std::optional(JsonSection(value, file_, path_ + key + "."));
}

Result<size_t> JsonSection::whole(const std::string& key, size_t least, size_t most, Code code) const {
  if (!has(key)) return missing(key);
  const auto value = find(key)->natural();
  if (!value) return refuse(Code::kDataLoss, key, "is not a whole number from 0 on");
  if (*value < least || *value > most)
    return refuse(code, key, fmt::format("is {}; it must be from {} to {}", *value, least, most));
  return static_cast<size_t>(*value);
}

Result<size_t> JsonSection::whole_or(const std::string& key, size_t otherwise, size_t least, size_t most) const {
  if (!has(key)) return otherwise;
  return whole(key, least, most);
}

Result<float> JsonSection::number(const std::string& key, float least, float most) const {
  if (!has(key)) return missing(key);
  const Json& value = *find(key);
  if (value.whole() == nullptr && value.real() == nullptr) return refuse(Code::kDataLoss, key, "is not a number");
  const double number = value.whole() != nullptr ? static_cast<double>(*value.whole()) : *value.real();
  const auto single = static_cast<float>(number);
  if (!(single >= least && single <= most))
    return refuse(Code::kUnsupported, key, fmt::format("is {}; it must be from {} to {}", number, least, most));
  return single;
}

Result<float> JsonSection::number_or(const std::string& key, float otherwise, float least, float most) const {
  if (!has(key)) return otherwise;
  return number(key, least, most);
}

Result<bool> JsonSection::flag_or(const std::string& key, bool otherwise) const {
  if (!has(key)) return otherwise;
  const bool* const value = find(key)->boolean();
  if (value == nullptr) return refuse(Code::kDataLoss, key, "is not true or false");
  return *value;
}

Result<std::string> JsonSection::word(const std::string& key) const {
  if (!has(key)) return missing(key);
  const std::string* const value = find(key)->string();
  if (value == nullptr) return refuse(Code::kDataLoss, key, "is not a string");
  return *value;
}

Result<std::string> JsonSection::word_or(const std::string& key, const std::string& otherwise) const {
  if (!has(key)) return otherwise;
  return word(key);
}

Result<std::vector<size_t>> JsonSection::wholes(const std::string& key, size_t most_count, size_t most) const {
  if (!has(key)) return missing(key);
  const Json::Array* const list = find(key)->array();
  if (list == nullptr || list->empty())
    return refuse(Code::kDataLoss, key, fmt::format("is not a list of 1 to {} numbers", most_count));
  if (list->size() > most_count)
    return refuse(Code::kUnsupported, key, fmt::format("has {} numbers, not 1 to {}", list->size(), most_count));
  std::vector<size_t> values;
  for (const Json& value : *list) {
    const auto number = value.natural();
    if (!number || *number < 1 || *number > most)
      return refuse(Code::kUnsupported, key, fmt::format("has an element that is no whole number from 1 to {}", most));
    values.push_back(static_cast<size_t>(*number));
  }
  return values;
}

Result<std::vector<size_t>> JsonSection::wholes_or(const std::string& key, std::vector<size_t> otherwise,
                                                   size_t most_count, size_t most) const {
  if (!has(key)) return otherwise;
  return wholes(key, most_count, most);
}

Status JsonSection::only(const std::string& key, bool value) const {
  SYRINX_TRY(const bool found, flag_or(key, value));
  if (found != value) return refuse(Code::kUnsupported, key, fmt::format("must be {}", value));
  return {};
}

Status JsonSection::only(const std::string& key, size_t value) const {
  SYRINX_TRY(const size_t found, whole_or(key, value));
  if (found != value) return refuse(Code::kUnsupported, key, fmt::format("is {}, only {} can be run", found, value));
  return {};
}

Status JsonSection::only(const std::string& key, const char* value) const {
  SYRINX_TRY(const std::string found, word_or(key, value));
  if (found != value)
    return refuse(Code::kUnsupported, key, fmt::format("is {}, only {} can be run", in_quotes(found), value));
  return {};
}

}  // namespace syrinx::qwen_tts
