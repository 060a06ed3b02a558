#include "models/kokoro/vocabulary.h"

#include <array>
#include <string_view>
#include <unordered_map>

#include "text/unicode.h"

namespace syrinx::kokoro {
namespace {

struct Run {
  int32_t first;  // id of the first symbol; the others follow without a gap
  std::u32string_view symbols;
};

// U+0303 is the combining tilde, U+AB67 the small capital turned-t digraph; both are written by number to be visible.
constexpr std::array<Run, 34> kRuns{{
    {1, U";:,.!?"},
    {9, U"—…\"()“” "},
    {17, U"\u0303ʣʥʦʨᵝ\uab67"},
    {24, U"AI"},
    {31, U"O"},
    {33, U"Q"},
    {35, U"ST"},
    {39, U"W"},
    {41, U"Yᵊ"},
    {43, U"abcdef"},
    {50, U"hijklmnopqrstuvwxyz"},
    {69, U"ɑɐɒæ"},
    {75, U"βɔɕç"},
    {80, U"ɖðʤə"},
    {85, U"ɚɛɜ"},
    {90, U"ɟ"},
    {92, U"\u0261"},
    {99, U"ɥ"},
    {101, U"ɨɪʝ"},
    {110, U"ɯɰŋɳɲɴø"},
    {118, U"ɸθœ"},
    {123, U"ɹ"},
    {125, U"ɾɻ"},
    {128, U"ʁɽʂʃʈʧ"},
    {135, U"ʊʋ"},
    {138, U"ʌɣɤ"},
    {142, U"χʎ"},
    {147, U"ʒʔ"},
    {156, U"ˈˌː"},
    {162, U"ʰ"},
    {164, U"ʲ"},
    {169, U"↓"},
    {171, U"→↗↘"},
    {177, U"ᵻ"},
}};

struct Tables {
  std::array<char32_t, kVocabularySize> symbols{};
  std::unordered_map<char32_t, int32_t> ids;
};

Tables make_tables() {
  Tables tables;
  for (const Run& run : kRuns) {
    int32_t id = run.first;
    for (const char32_t symbol : run.symbols) {
      tables.symbols[static_cast<size_t>(id)] = symbol;
      tables.ids.emplace(symbol, id++);
    }
  }
  return tables;
}

const Tables& tables() {
  static const Tables made = make_tables();
  return made;
}

}  // namespace

int32_t symbol_id(char32_t symbol) {
  const auto found = tables().ids.find(symbol);
  return found == tables().ids.end() ? 0 : found->second;
}

char32_t id_symbol(int32_t id) {
  return id > 0 && id < kVocabularySize ? tables().symbols[static_cast<size_t>(id)] : U'\0';
}

Tokens tokenize(std::string_view phonemes) {
  Tokens tokens;
  for (size_t offset = 0; offset < phonemes.size();) {
    const size_t begin = offset;
    const int32_t id = symbol_id(text::decode(phonemes, offset));
    ++tokens.symbols;
    if (id == 0) {
      ++tokens.unknown;
      continue;
    }
    tokens.ids.push_back(id);
    tokens.offsets.push_back(static_cast<uint32_t>(begin));
  }
  return tokens;
}

}  // namespace syrinx::kokoro
