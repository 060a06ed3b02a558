// YAML as a small tree, read from libyaml's events within limits.  The parsing library stays behind yaml.cc.
//
// One document of mappings with scalar keys, sequences and scalars, in block or flow style, all quoting styles,
// comments.  Scalars stay text: the reader of a file knows what it expects, and YAML's guesses ("no" is false, "1:30"
// is ninety) surprise.  Anchors without a use are harmless; aliases, tags and further documents are refused, so that
// the tree is never larger than the text.  A node owns everything below it; pure functions, thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace syrinx {

struct YamlMember;

struct YamlNode {
  enum class Kind : uint8_t { kScalar, kSequence, kMapping };

  Kind kind = Kind::kScalar;
  size_t line = 1;      // where it begins, from 1
  bool quoted = false;  // a scalar in quotes or a block scalar: always a string
  std::string text;     // of a scalar, UTF-8; may hold U+0000
  std::vector<YamlNode> items;
  std::vector<YamlMember> members;  // in the file's order, no key twice

  bool is_null() const;  // an empty plain scalar, ~ or null
  // The member of a mapping, or null when there is none or this is no mapping.  Linear in the number of members.
  const YamlMember* find(std::string_view key) const;
};

struct YamlMember {
  std::string key;
  size_t line = 1;  // of the key
  YamlNode value;
};

struct YamlLimits {
  size_t max_bytes = size_t{1} << 20;
  size_t max_depth = 16;
  size_t max_nodes = 10000;  // keys and values
};

// `name` stands in messages, which name the line.  An empty file is one null.  kDataLoss: malformed, not UTF-8, a key
// that stands twice; kUnsupported: alias, tag, second document, key that is no scalar; kLimitExceeded.
Result<YamlNode> parse_yaml(std::string_view text, const std::string& name, const YamlLimits& limits = {});

}  // namespace syrinx
