// The named texts of a catalogue's family: "{key}" in any text of the file stands for a value, which may hold further
// keys.  Bounded: no circle and no growth beyond kMaxExpandedBytes.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "base/result.h"

namespace syrinx {

inline constexpr size_t kMaxExpandedBytes = 64 << 10;

class CatalogueValues {
 public:
  void set(const std::string& key, std::string value) { values_.insert_or_assign(key, std::move(value)); }
  bool empty() const { return values_.empty(); }
  // `text` with every key replaced; "{name}", which stands for a file's name, stays.  kInvalidArgument, in words that
  // go behind a place in the file: an unknown key, a brace without its fellow, too many levels, too long a result.
  // `substitutions` becomes how many values that took, which grow no text where they are empty.
  Result<std::string> expand(std::string_view text, size_t& substitutions) const;

 private:
  Status append(std::string_view text, size_t depth, size_t& substitutions, std::string& out) const;

  std::map<std::string, std::string, std::less<>> values_;
};

// Lower-case letters, digits and '_', at most 64.
bool is_value_key(std::string_view key);

}  // namespace syrinx
