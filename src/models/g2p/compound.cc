#include "models/g2p/compound.h"

#include <algorithm>
#include <tuple>

#include "text/unicode.h"

namespace syrinx::g2p {
namespace {

bool upper(std::string_view s, size_t i) {
  return i < s.size() && text::is_ascii_upper(static_cast<unsigned char>(s[i]));
}
bool lower(std::string_view s, size_t i) {
  return i < s.size() && text::is_ascii_lower(static_cast<unsigned char>(s[i]));
}
bool letter(std::string_view s, size_t i) { return upper(s, i) || lower(s, i); }
bool apostrophe(std::string_view s, size_t i) { return i < s.size() && s[i] == '\''; }

// End of the part that begins at `begin`.
size_t part_end(std::string_view word, size_t begin) {
  size_t i = begin;
  if (!letter(word, i)) {
    while (i < word.size() && !letter(word, i) && word[i] == word[begin]) ++i;
    return i;
  }
  while (i < word.size()) {
    if (apostrophe(word, i) && letter(word, i + 1)) {
      ++i;
      continue;
    }
    if (!letter(word, i)) break;
    if (lower(word, i) && upper(word, i + 1)) return i + 1;
    if (upper(word, i) && upper(word, i + 1) && lower(word, i + 2)) return i + 1;
    ++i;
  }
  return i;
}

}  // namespace

std::vector<std::string_view> cut_word(std::string_view word) {
  std::vector<std::string_view> parts;
  for (size_t begin = 0; begin < word.size();) {
    const size_t end = part_end(word, begin);
    parts.push_back(word.substr(begin, end - begin));
    begin = end;
  }
  return parts;
}

bool is_silent(std::string_view part) { return part.find_first_not_of("'-._/") == std::string_view::npos; }

Phonemes join_parts(std::vector<SaidPart> parts) {
  std::vector<std::tuple<bool, int, size_t>> order;  // weakest first
  int stressed = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].phonemes.empty()) continue;
    const bool primary = contains(parts[i].phonemes, kPrimary);
    stressed += primary ? 1 : 0;
    order.emplace_back(primary, weight(parts[i].phonemes), i);
  }
  const auto reduce = [&](size_t i) { parts[i].phonemes = with_stress(parts[i].phonemes, -0.5f); };
  if (order.size() == 2 && parts[std::get<2>(order[0])].written.size() == 1) {
    reduce(std::get<2>(order[1]));
  } else if (order.size() >= 2 && stressed > static_cast<int>(order.size() + 1) / 2) {
    std::sort(order.begin(), order.end());
    for (size_t k = 0; k < order.size() / 2; ++k) reduce(std::get<2>(order[k]));
  }
  Phonemes joined;
  for (const SaidPart& part : parts) joined += part.phonemes;
  return joined;
}

}  // namespace syrinx::g2p
