#include "base/yaml_section.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <system_error>

#include "base/in_quotes.h"

namespace syrinx {
namespace {

constexpr size_t kMaxWordBytes = 4096;
constexpr size_t kMaxWarnings = 20;  // and one that there are more

// So long may a value be that a message repeats.
std::string shown(const YamlNode& node) {
  if (node.kind == YamlNode::Kind::kMapping) return "a mapping";
  if (node.kind == YamlNode::Kind::kSequence) return "a list";
  return node.text.size() <= 40 ? in_quotes(node.text) : fmt::format("a text of {} bytes", node.text.size());
}

template <class Number>
bool parse_number(std::string_view text, Number& number) {
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

const YamlNode kEmptyMapping{
    .kind = YamlNode::Kind::kMapping, .line = 1, .quoted = false, .text = {}, .items = {}, .members = {}};

}  // namespace

void Findings::refuse(Code code, size_t line, std::string_view key, std::string_view what) {
  if (!fault) fault = Error{code, fmt::format("'{}': {} on line {} {}", file, key, line, what)};
}

void Findings::warn(size_t line, std::string_view key) {
  if (warnings.size() < kMaxWarnings)
    warnings.push_back(fmt::format("'{}': {} on line {} is not known and has no effect", file, key, line));
  else if (warnings.size() == kMaxWarnings)
    warnings.push_back(fmt::format("'{}' has more keys that are not known, from line {} on", file, line));
}

Section::Section(const YamlNode& node, std::string path, Findings& findings)
    : node_(node), path_(std::move(path)), findings_(findings) {}

bool Section::has(std::string_view key) const {
  const YamlMember* const found = node_.find(key);
  return found != nullptr && !found->value.is_null();
}

bool Section::is_null(std::string_view key) const {
  const YamlMember* const found = node_.find(key);
  return found != nullptr && found->value.is_null();
}

std::string Section::full_key(std::string_view key) const {
  return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
}

const YamlMember* Section::member(std::string_view key) {
  asked_.emplace_back(key);
  const YamlMember* const found = node_.find(key);
  return found == nullptr || found->value.is_null() ? nullptr : found;
}

const YamlMember* Section::required(std::string_view key) {
  const YamlMember* const found = member(key);
  if (found == nullptr && !findings_.fault)
    findings_.fault = Error{Code::kDataLoss, fmt::format("'{}' lacks {}, which belongs to the mapping on line {}",
                                                         findings_.file, full_key(key), node_.line)};
  return found;
}

Section Section::section(std::string_view key) {
  const YamlMember* const found = required(key);
  if (found == nullptr) return {kEmptyMapping, full_key(key), findings_};
  if (found->value.kind != YamlNode::Kind::kMapping) {
    findings_.refuse(Code::kDataLoss, found->line, full_key(key),
                     fmt::format("is {}, not a mapping", shown(found->value)));
    return {kEmptyMapping, full_key(key), findings_};
  }
  return {found->value, full_key(key), findings_};
}

size_t Section::whole_of(std::string_view key, const YamlNode& node, size_t min, size_t max) {
  uint64_t number = 0;
  const bool digits = node.kind == YamlNode::Kind::kScalar && !node.text.empty() &&
                      std::all_of(node.text.begin(), node.text.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (!digits) {
    findings_.refuse(Code::kDataLoss, node.line, key, fmt::format("is {}, not a whole number", shown(node)));
    return min;
  }
  if (!parse_number(node.text, number) || number < min || number > max) {
    findings_.refuse(Code::kLimitExceeded, node.line, key,
                     fmt::format("is {}; {} to {} are read", shown(node), min, max));
    return min;
  }
  return static_cast<size_t>(number);
}

size_t Section::whole(std::string_view key, size_t min, size_t max) {
  const YamlMember* const found = required(key);
  return found == nullptr ? min : whole_of(full_key(key), found->value, min, max);
}

size_t Section::whole_or(std::string_view key, size_t fallback, size_t min, size_t max) {
  const YamlMember* const found = member(key);
  return found == nullptr ? fallback : whole_of(full_key(key), found->value, min, max);
}

double Section::real_of(std::string_view key, const YamlNode& node, double min, double max) {
  double number = 0;
  if (node.kind != YamlNode::Kind::kScalar || !parse_number(node.text, number) || !std::isfinite(number)) {
    findings_.refuse(Code::kDataLoss, node.line, key, fmt::format("is {}, not a number", shown(node)));
    return min;
  }
  if (number < min || number > max) {
    findings_.refuse(Code::kLimitExceeded, node.line, key, fmt::format("is {}; {} to {} are read", number, min, max));
    return min;
  }
  return number;
}

double Section::real(std::string_view key, double min, double max) {
  const YamlMember* const found = required(key);
  return found == nullptr ? min : real_of(full_key(key), found->value, min, max);
}

double Section::real_or(std::string_view key, double fallback, double min, double max) {
  const YamlMember* const found = member(key);
  return found == nullptr ? fallback : real_of(full_key(key), found->value, min, max);
}

// YAML 1.1's words, as the maker's reader takes them.
bool Section::flag_or(std::string_view key, bool fallback) {
  constexpr std::array<std::string_view, 3> kTrue = {"true", "yes", "on"}, kFalse = {"false", "no", "off"};
  const YamlMember* const found = member(key);
  if (found == nullptr) return fallback;
  std::string word = found->value.text;
  for (char& c : word) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  if (std::find(kTrue.begin(), kTrue.end(), word) != kTrue.end()) return true;
  if (std::find(kFalse.begin(), kFalse.end(), word) != kFalse.end()) return false;
  findings_.refuse(Code::kDataLoss, found->line, full_key(key),
                   fmt::format("is {}, neither true nor false", shown(found->value)));
  return fallback;
}

std::string Section::word_of(std::string_view key, const YamlNode& node) {
  if (node.kind != YamlNode::Kind::kScalar || node.text.find('\0') != std::string::npos) {
    findings_.refuse(Code::kDataLoss, node.line, key,
                     node.kind == YamlNode::Kind::kScalar ? "holds a character U+0000"
                                                          : fmt::format("is {}, not a text", shown(node)));
    return {};
  }
  if (node.text.size() > kMaxWordBytes) {
    findings_.refuse(Code::kLimitExceeded, node.line, key,
                     fmt::format("is {}; at most {} are read", shown(node), kMaxWordBytes));
    return {};
  }
  return node.text;
}

std::string Section::word(std::string_view key) {
  const YamlMember* const found = required(key);
  return found == nullptr ? std::string() : word_of(full_key(key), found->value);
}

std::string Section::word_or(std::string_view key, std::string fallback) {
  const YamlMember* const found = member(key);
  return found == nullptr ? std::move(fallback) : word_of(full_key(key), found->value);
}

std::vector<size_t> Section::wholes(std::string_view key, size_t max_count, size_t min, size_t max) {
  const YamlMember* const found = required(key);
  if (found == nullptr) return {min};
  const std::vector<YamlNode>& items = found->value.items;
  if (found->value.kind != YamlNode::Kind::kSequence || items.empty()) {
    findings_.refuse(Code::kDataLoss, found->line, full_key(key), "is not a list of whole numbers");
    return {min};
  }
  if (items.size() > max_count) {
    findings_.refuse(Code::kLimitExceeded, found->line, full_key(key),
                     fmt::format("has {} numbers; at most {} are read", items.size(), max_count));
    return {min};
  }
  std::vector<size_t> out;
  out.reserve(items.size());
  for (const YamlNode& item : items) out.push_back(whole_of(full_key(key), item, min, max));
  return out;
}

void Section::require(bool holds, Code code, std::string_view key, std::string_view what) {
  if (holds) return;
  const YamlMember* const found = node_.find(key);
  findings_.refuse(code, found == nullptr ? node_.line : found->line, full_key(key), what);
}

void Section::finish() const {
  for (const YamlMember& member : node_.members)
    if (std::find(asked_.begin(), asked_.end(), member.key) == asked_.end())
      findings_.warn(member.line, full_key(shortened(member.key)));
}

}  // namespace syrinx
