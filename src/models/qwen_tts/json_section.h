// An object of a configuration in JSON while it is read: values by key, with types and ranges checked, and messages
// that name the file and the whole key.  Borrows the value; load time only; one thread.
#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace syrinx::qwen_tts {

// Errors of all: kDataLoss for what is missing or of another type, kUnsupported (or `code`) for what is out of range.
class JsonSection {
 public:
  // kDataLoss: `json` is no object.  `file` stands in messages.
  static Result<JsonSection> root(const Json& json, const std::string& file);

  const Json* find(std::string_view key) const { return json_->find(key); }
  bool has(std::string_view key) const;  // neither absent nor null
  Result<JsonSection> section(const std::string& key) const;
  Result<std::optional<JsonSection>> optional_section(const std::string& key) const;  // none: absent or null
  Result<size_t> whole(const std::string& key, size_t least = 0, size_t most = kAnyWhole,
                       Code code = Code::kUnsupported) const;
  Result<size_t> whole_or(const std::string& key, size_t otherwise, size_t least = 0, size_t most = kAnyWhole) const;
  Result<float> number(const std::string& key, float least, float most) const;
  Result<float> number_or(const std::string& key, float otherwise, float least, float most) const;
  Result<bool> flag_or(const std::string& key, bool otherwise) const;
  Result<std::string> word(const std::string& key) const;
  Result<std::string> word_or(const std::string& key, const std::string& otherwise) const;
  // One to `most_count` numbers from 1 to `most`.
  Result<std::vector<size_t>> wholes(const std::string& key, size_t most_count, size_t most) const;
  Result<std::vector<size_t>> wholes_or(const std::string& key, std::vector<size_t> otherwise, size_t most_count,
                                        size_t most) const;

  // Refuses another value of a field that selects a kind; where it is absent the kind is the known one.
  Status only(const std::string& key, bool value) const;
  Status only(const std::string& key, size_t value) const;
  Status only(const std::string& key, const char* value) const;

  // "'FILE': SECTION.KEY WHAT".
  tl::unexpected<Error> refuse(Code code, std::string_view key, std::string_view what) const;

 private:
  static constexpr size_t kAnyWhole = std::numeric_limits<size_t>::max();

  JsonSection(const Json& json, std::string file, std::string path)
      : json_(&json), file_(std::move(file)), path_(std::move(path)) {}
  tl::unexpected<Error> missing(std::string_view key) const;

  const Json* json_;
  std::string file_, path_;  // "talker_config." before the keys, or empty
};

}  // namespace syrinx::qwen_tts
