#include "store/catalogue_values.h"

#include <algorithm>

namespace syrinx {
namespace {

constexpr size_t kMaxDepth = 8;
constexpr size_t kMaxSubstitutions = 4096;  // of one text: values of nothing but keys grow no text, and take time

}  // namespace

bool is_value_key(std::string_view key) {
  return !key.empty() && key.size() <= 64 && std::all_of(key.begin(), key.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
}

Status CatalogueValues::append(std::string_view text, size_t depth, size_t& substitutions, std::string& out) const {
  if (depth > kMaxDepth)
    return fail(Code::kInvalidArgument, "values lead to values more than {} levels deep", kMaxDepth);
  while (!text.empty()) {
    const size_t brace = std::min(text.find_first_of("{}"), text.size());
    if (out.size() + brace > kMaxExpandedBytes)
      return fail(Code::kInvalidArgument, "a text becomes longer than {} bytes", kMaxExpandedBytes);
    out += text.substr(0, brace);
    text.remove_prefix(brace);
    if (text.empty()) break;
    const size_t end = text.find('}');
    const std::string_view key = end == std::string_view::npos ? std::string_view() : text.substr(1, end - 1);
    if (text.front() == '}' || !is_value_key(key))
      return fail(Code::kInvalidArgument, "a brace that is not part of a {{key}}");
    const auto found = values_.find(key);
    if (key == "name") {
      out += "{name}";
    } else if (found == values_.end()) {
      return fail(Code::kInvalidArgument, "there is no value '{}'", key);
    } else {
      if (++substitutions > kMaxSubstitutions)
        return fail(Code::kInvalidArgument, "a text takes more than {} values", kMaxSubstitutions);
      SYRINX_TRY_VOID(append(found->second, depth + 1, substitutions, out));
    }
    text.remove_prefix(end + 1);
  }
  return {};
}

Result<std::string> CatalogueValues::expand(std::string_view text, size_t& substitutions) const {
  std::string out;
  substitutions = 0;
  SYRINX_TRY_VOID(append(text, 0, substitutions, out));
  return out;
}

}  // namespace syrinx
