#include "base/yaml.h"

#include <yaml.h>

#include <algorithm>
#include <utility>

#include "base/in_quotes.h"

namespace syrinx {
namespace {

size_t line_of(const yaml_mark_t& mark) { return mark.line + 1; }

std::string_view text_of(const yaml_char_t* text, size_t size) { return {reinterpret_cast<const char*>(text), size}; }

class Reader {
 public:
  Reader(std::string_view text, const std::string& name, const YamlLimits& limits) : name_(name), limits_(limits) {
    ready_ = yaml_parser_initialize(&parser_) == 1;
    if (!ready_) return;
    yaml_parser_set_encoding(&parser_, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser_, reinterpret_cast<const unsigned char*>(text.data()), text.size());
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  ~Reader() {
    yaml_event_delete(&event_);
    if (ready_) yaml_parser_delete(&parser_);
  }

  Result<YamlNode> document() {
    if (!ready_) return fail(Code::kUnavailable, "'{}': no memory to read YAML", name_);
    SYRINX_TRY_VOID(next());  // start of the stream
    SYRINX_TRY_VOID(next());
    if (event_.type == YAML_STREAM_END_EVENT) return YamlNode{};
    SYRINX_TRY_VOID(next());  // behind the start of the document
    SYRINX_TRY(YamlNode root, node(0));
    SYRINX_TRY_VOID(next());  // end of the document
    SYRINX_TRY_VOID(next());
    if (event_.type != YAML_STREAM_END_EVENT)
      return fail(Code::kUnsupported, "'{}' has a second YAML document on line {}; one is read", name_,
                  line_of(event_.start_mark));
    return root;
  }

 private:
  // Replaces event_ with the next one.
  Status next() {
    yaml_event_delete(&event_);
    if (yaml_parser_parse(&parser_, &event_) == 1) return {};
    event_ = {};
    const char* const problem = parser_.problem == nullptr ? "no memory" : parser_.problem;
    if (parser_.error == YAML_READER_ERROR)
      return fail(Code::kDataLoss, "'{}' is not UTF-8 text: {} at byte {}", name_, problem, parser_.problem_offset);
    return fail(Code::kDataLoss, "'{}' is not valid YAML: {} on line {}", name_, problem,
                line_of(parser_.problem_mark));
  }

  // The node that event_ begins; event_ is its last one afterwards.  `depth`: collections around it.
  Result<YamlNode> node(size_t depth) {  // NOLINT(misc-no-recursion): bounded by max_depth
    YamlNode out;
    out.line = line_of(event_.start_mark);
    if (++nodes_ > limits_.max_nodes)
      return fail(Code::kLimitExceeded, "'{}' has more than {} keys and values, reached on line {}", name_,
                  limits_.max_nodes, out.line);
    if (event_.type == YAML_SCALAR_EVENT) {
      const auto& scalar = event_.data.scalar;
      if (scalar.tag != nullptr) return refuse("a tag");
      out.quoted = scalar.style != YAML_PLAIN_SCALAR_STYLE;
      out.text = text_of(scalar.value, scalar.length);
      return out;
    }
    if (event_.type == YAML_ALIAS_EVENT) return refuse("an alias");
    if (depth == limits_.max_depth)
      return fail(Code::kLimitExceeded, "'{}' is nested deeper than {} levels on line {}", name_, limits_.max_depth,
                  out.line);
    if (event_.type == YAML_SEQUENCE_START_EVENT) {
      if (event_.data.sequence_start.tag != nullptr) return refuse("a tag");
      out.kind = YamlNode::Kind::kSequence;
      SYRINX_TRY_VOID(next());
      while (event_.type != YAML_SEQUENCE_END_EVENT) {
        SYRINX_TRY(YamlNode item, node(depth + 1));
        out.items.push_back(std::move(item));
        SYRINX_TRY_VOID(next());
      }
      return out;
    }
    if (event_.data.mapping_start.tag != nullptr) return refuse("a tag");
    out.kind = YamlNode::Kind::kMapping;
    SYRINX_TRY_VOID(next());
    while (event_.type != YAML_MAPPING_END_EVENT) {
      if (event_.type != YAML_SCALAR_EVENT && event_.type != YAML_ALIAS_EVENT)
        return refuse("a key that is not a scalar");
      SYRINX_TRY(YamlNode key, node(depth + 1));
      SYRINX_TRY_VOID(next());
      SYRINX_TRY(YamlNode value, node(depth + 1));
      SYRINX_TRY_VOID(next());
      out.members.push_back({std::move(key.text), key.line, std::move(value)});
    }
    SYRINX_TRY_VOID(check_unique(out.members));
    return out;
  }

  Status check_unique(const std::vector<YamlMember>& members) const {
    std::vector<const YamlMember*> sorted;
    sorted.reserve(members.size());
    for (const YamlMember& member : members) sorted.push_back(&member);
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const YamlMember* a, const YamlMember* b) { return a->key < b->key; });
    const auto twice = std::adjacent_find(sorted.begin(), sorted.end(),
                                          [](const YamlMember* a, const YamlMember* b) { return a->key == b->key; });
    if (twice == sorted.end()) return {};
    return fail(Code::kDataLoss, "'{}': the key {} on line {} stands again on line {}", name_, in_quotes((*twice)->key),
                (*twice)->line, twice[1]->line);
  }

  tl::unexpected<Error> refuse(const char* what) const {
    return fail(Code::kUnsupported, "'{}' has {} on line {}, which is not read; write the value out", name_, what,
                line_of(event_.start_mark));
  }

  const std::string& name_;
  const YamlLimits& limits_;
  yaml_parser_t parser_{};
  yaml_event_t event_{};
  bool ready_ = false;
  size_t nodes_ = 0;
};

}  // namespace

bool YamlNode::is_null() const {
  return kind == Kind::kScalar && !quoted &&
         (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL");
}

const YamlMember* YamlNode::find(std::string_view key) const {
  const auto at = std::find_if(members.begin(), members.end(), [&](const YamlMember& m) { return m.key == key; });
  return at == members.end() ? nullptr : &*at;
}

Result<YamlNode> parse_yaml(std::string_view text, const std::string& name, const YamlLimits& limits) {
  if (text.size() > limits.max_bytes)
    return fail(Code::kLimitExceeded, "'{}' has {} bytes of YAML, at most {} are read", name, text.size(),
                limits.max_bytes);
  return Reader(text, name, limits).document();
}

}  // namespace syrinx
