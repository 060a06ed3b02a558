#include "models/g2p/names.h"

#include <algorithm>

#include "text/unicode.h"

namespace syrinx::g2p {
namespace {

constexpr Name kNames[] = {
#define NAME(written, phonemes) {NameKind::kName, written, phonemes},
#define WORD(written, phonemes) {NameKind::kWord, written, phonemes},
#define PHRASE(written, phonemes) {NameKind::kPhrase, written, phonemes},
#define PLACE(written, phonemes, near)
#include "models/g2p/names.def"
#undef NAME
#undef WORD
#undef PHRASE
#undef PLACE
};

constexpr Place kPlaces[] = {
#define NAME(written, phonemes)
#define WORD(written, phonemes)
#define PHRASE(written, phonemes)
#define PLACE(written, phonemes, near) {written, phonemes, near},
#include "models/g2p/names.def"
#undef NAME
#undef WORD
#undef PHRASE
#undef PLACE
};

struct ByWritten {
  template <typename Entry>
  bool operator()(const Entry& entry, std::string_view word) const {
    return entry.written < word;
  }
};

template <typename Table>
auto find(const Table& table, std::string_view word) -> decltype(std::begin(table)) {
  const auto found = std::lower_bound(std::begin(table), std::end(table), word, ByWritten());
  return found != std::end(table) && found->written == word ? found : nullptr;
}

// Capitals of Latin-1, Latin Extended-A and the Vietnamese ones; others stay.
char32_t lower(char32_t c) {
  if (c < 0x80) return static_cast<unsigned char>(text::ascii_lower(static_cast<char>(c)));
  if (c >= 0xC0 && c <= 0xDE && c != 0xD7) return c + 0x20;
  if (c == 0x178) return 0xFF;
  const bool even = c % 2 == 0;
  const bool even_is_capital = (c >= 0x100 && c <= 0x137 && c != 0x130) || (c >= 0x14A && c <= 0x177) ||
                               (c >= 0x1E00 && c <= 0x1E95) || (c >= 0x1EA0 && c <= 0x1EF9);
  const bool odd_is_capital = (c >= 0x139 && c <= 0x148) || (c >= 0x179 && c <= 0x17E);
  return (even && even_is_capital) || (!even && odd_is_capital) ? c + 1 : c;
}

}  // namespace

std::span<const Name> all_names() { return kNames; }
std::span<const Place> all_places() { return kPlaces; }

const Name* find_name(std::string_view lower) { return find(kNames, lower); }
const Place* find_place(std::string_view lower) { return find(kPlaces, lower); }

std::span<const Name> names_beginning(std::string_view lower) {
  const auto* begin = std::lower_bound(std::begin(kNames), std::end(kNames), lower, ByWritten());
  const auto* end = begin;
  while (end != std::end(kNames) && end->written.starts_with(lower)) ++end;
  return {begin, end};
}

std::string fold_case(std::string_view source) {
  std::string out;
  std::u32string cluster;
  for (size_t i = 0; i < source.size();) {
    cluster.assign(1, text::decode(source, i));
    while (i < source.size() && cluster.size() < 4) {
      size_t next = i;
      const char32_t mark = text::decode(source, next);
      if (mark < 0x300 || text::classify(mark) != text::Class::kMark) break;
      cluster += mark;
      i = next;
    }
    const char32_t first = cluster.front();
    if (first == U'’' || first == U'ʼ' || first == U'‘') {
      out += '\'';
    } else if (first == 0xAD) {
      continue;  // a soft hyphen
    } else {
      for (const char32_t c : cluster.size() > 1 ? text::nfkc(cluster) : cluster) text::append_utf8(out, lower(c));
    }
  }
  return out;
}

}  // namespace syrinx::g2p
