#include "text/language.h"

#include <algorithm>
#include <string>

#include "text/unicode.h"

namespace syrinx::text {
namespace {

struct Language {
  std::string_view code, others, names, stand_ins;
};
constexpr Language kLanguages[] = {
#define LANGUAGE(code, others, names, stand_ins) {code, others, names, stand_ins},
#include "text/languages.def"
#undef LANGUAGE
};

// Takes the first member off a list.
std::string_view take_member(std::string_view& list, char separator) {
  const size_t end = std::min(list.find(separator), list.size());
  const std::string_view member = list.substr(0, end);
  list.remove_prefix(std::min(end + 1, list.size()));
  return member;
}

bool is_member(std::string_view list, char separator, std::string_view wanted) {
  while (!list.empty())
    if (take_member(list, separator) == wanted) return true;
  return false;
}

const Language* find_code(std::string_view code) {
  const auto* const found = std::find_if(std::begin(kLanguages), std::end(kLanguages), [&](const Language& each) {
    return each.code == code || is_member(each.others, ' ', code);
  });
  return found == std::end(kLanguages) ? nullptr : found;
}

const Language* find_name(std::string_view name) {
  const auto* const found = std::find_if(std::begin(kLanguages), std::end(kLanguages),
                                         [&](const Language& each) { return is_member(each.names, '|', name); });
  return found == std::end(kLanguages) ? nullptr : found;
}

// In lower case, without blanks around it and what may follow: "de_AT.UTF-8@euro", "Norwegian (Nynorsk)".
std::string plain(std::string_view language) {
  language = language.substr(0, language.find_first_of(".@("));
  const size_t begin = std::min(language.find_first_not_of(" \t\r\n"), language.size());
  language = language.substr(begin, language.find_last_not_of(" \t\r\n") + 1 - begin);
  return ascii_lower(language);
}

bool ends_at(const std::string& code, size_t size) { return code.size() == size || code[size] == '-'; }

// Both are canonical.
bool is_part(const std::string& a, const std::string& b) {
  if (a.empty() || b.empty()) return false;
  const size_t common = std::min(a.size(), b.size());
  return a.compare(0, common, b, 0, common) == 0 && ends_at(a, common) && ends_at(b, common);
}

// `wanted` is canonical.
const std::string* find_closest(std::span<const std::string> known, const std::string& wanted) {
  const std::string *closer = nullptr, *wider = nullptr;
  for (const std::string& each : known) {
    const std::string code = canonical_language(each);
    if (!is_part(code, wanted)) continue;
    if (code == wanted) return &each;
    const std::string*& found = code.size() > wanted.size() ? closer : wider;
    if (found == nullptr) found = &each;
  }
  return closer != nullptr ? closer : wider;
}

}  // namespace

std::string canonical_language(std::string_view language) {
  std::string name = plain(language);
  std::string code = name;
  std::replace(name.begin(), name.end(), '_', ' ');
  std::replace(code.begin(), code.end(), '_', '-');
  if (const Language* const named = find_name(name)) return std::string(named->code);
  for (size_t end = code.size(); end != std::string::npos && end > 0; end = code.rfind('-', end - 1))
    if (const Language* const found = find_code(std::string_view(code).substr(0, end)))
      return std::string(found->code) + code.substr(end);
  return code;
}

bool is_any_language(std::string_view language) {
  const std::string code = plain(language);
  return code.empty() || code == "auto" || code == "und" || code == "mul";
}

bool is_same_language(std::string_view a, std::string_view b) {
  return is_part(canonical_language(a), canonical_language(b));
}

const std::string* closest_language(std::span<const std::string> known, std::string_view wanted) {
  const std::string code = canonical_language(wanted);
  if (const std::string* const found = find_closest(known, code)) return found;
  const Language* const language = find_code(std::string_view(code).substr(0, code.find('-')));
  for (std::string_view rest = language == nullptr ? "" : language->stand_ins; !rest.empty();)
    if (const std::string* const found = find_closest(known, std::string(take_member(rest, ' ')))) return found;
  return nullptr;
}

std::string language_expected(std::span<const std::string> languages) {
  return languages.size() == 1 ? languages.front() : std::string();
}

}  // namespace syrinx::text
