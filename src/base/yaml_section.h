// A mapping of a configuration file while it is read: values by key, with types and ranges checked, the first fault and
// the unread keys gathered.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/yaml.h"

namespace syrinx {

// Results of reading so far.  Only the first fault is kept: later ones may follow from it.
struct Findings {
  std::string file;
  std::optional<Error> fault;
  std::vector<std::string> warnings;

  void refuse(Code code, size_t line, std::string_view key, std::string_view what);
  void warn(size_t line, std::string_view key);  // of a key that nothing reads
};

// Every getter answers something usable after a fault (the smallest value of the range, "", nothing), so that callers
// read straight on and look at Findings::fault once.  A null stands for an absent key.  Borrows the node and the
// findings; one thread at a time.
class Section {
 public:
  // `path` stands before the keys in messages: "flow_lm.flow", or "" for the whole file.
  Section(const YamlNode& node, std::string path, Findings& findings);

  bool has(std::string_view key) const;  // present and not null
  bool is_null(std::string_view key) const;
  std::string full_key(std::string_view key) const;

  Section section(std::string_view key);  // a fault when there is none, or it is no mapping
  size_t whole(std::string_view key, size_t min, size_t max);
  size_t whole_or(std::string_view key, size_t fallback, size_t min, size_t max);
  double real(std::string_view key, double min, double max);
  double real_or(std::string_view key, double fallback, double min, double max);
  bool flag_or(std::string_view key, bool fallback);
  std::string word(std::string_view key);  // at most 4096 bytes, no U+0000
  std::string word_or(std::string_view key, std::string fallback);
  std::vector<size_t> wholes(std::string_view key, size_t max_count, size_t min, size_t max);  // at least one
  // The member itself, to be read by the caller; null when the key is absent or null.
  const YamlMember* member(std::string_view key);

  // A fault of `key` unless `holds`; `what` completes "KEY on line N ...".
  void require(bool holds, Code code, std::string_view key, std::string_view what);
  // To be called last: a warning for each key that no getter asked for.
  void finish() const;

 private:
  const YamlMember* required(std::string_view key);
  std::optional<std::string_view> scalar(const YamlMember* member, std::string_view wanted);
  size_t whole_of(std::string_view key, const YamlNode& node, size_t min, size_t max);
  double real_of(std::string_view key, const YamlNode& node, double min, double max);
  std::string word_of(std::string_view key, const YamlNode& node);

  const YamlNode& node_;
  std::string path_;
  Findings& findings_;
  std::vector<std::string> asked_;
};

}  // namespace syrinx
