#include "server/host/language.h"

#include <algorithm>
#include <string>

#include "text/unicode.h"

namespace syrinx::server {
namespace {

std::string plain(std::string_view language) {
  std::string code = text::ascii_lower(language);
  std::replace(code.begin(), code.end(), '_', '-');
  return code;
}

}  // namespace

bool is_same_language(std::string_view a, std::string_view b) {
  const std::string first = plain(a), second = plain(b);
  if (first.empty() || second.empty()) return false;
  const size_t common = std::min(first.size(), second.size());
  const auto ends = [&](const std::string& code) { return code.size() == common || code[common] == '-'; };
  return first.compare(0, common, second, 0, common) == 0 && ends(first) && ends(second);
}

const std::string* closest_language(std::span<const std::string> known, std::string_view wanted) {
  const std::string *closer = nullptr, *wider = nullptr;
  for (const std::string& each : known) {
    if (!is_same_language(each, wanted)) continue;
    if (each.size() == wanted.size()) return &each;
    const std::string*& found = each.size() > wanted.size() ? closer : wider;
    if (found == nullptr) found = &each;
  }
  return closer != nullptr ? closer : wider;
}

std::string language_expected(std::span<const std::string> languages) {
  return languages.size() == 1 ? languages.front() : std::string();
}

}  // namespace syrinx::server
