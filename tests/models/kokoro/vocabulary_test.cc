#include "models/kokoro/vocabulary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace syrinx::kokoro {
namespace {

using testing::ElementsAre;

TEST(Vocabulary, HasTheSymbolsOfTheSpecification) {
  size_t used = 0;
  std::set<char32_t> symbols;
  for (int32_t id = 0; id < kVocabularySize; ++id) {
    const char32_t symbol = id_symbol(id);
    if (symbol == 0) continue;
    ++used;
    symbols.insert(symbol);
    EXPECT_EQ(symbol_id(symbol), id);
  }
  EXPECT_EQ(used, 114u);
  EXPECT_EQ(symbols.size(), 114u);
}

// Pairs picked from the table of section 2.1: the first, last and odd ones of its rows.
TEST(Vocabulary, NumbersThem) {
  const std::pair<char32_t, int32_t> known[] = {
      {U';', 1},   {U'?', 6},   {U'—', 9},   {U' ', 16},  {U'\u0303', 17}, {U'\uab67', 23}, {U'A', 24},
      {U'I', 25},  {U'O', 31},  {U'Q', 33},  {U'S', 35},  {U'T', 36},      {U'W', 39},      {U'Y', 41},
      {U'ᵊ', 42},  {U'f', 48},  {U'h', 50},  {U'z', 68},  {U'ɑ', 69},      {U'æ', 72},      {U'β', 75},
      {U'ç', 78},  {U'ə', 83},  {U'ɚ', 85},  {U'ɜ', 87},  {U'ɟ', 90},      {U'ɡ', 92},      {U'ɥ', 99},
      {U'ʝ', 103}, {U'ø', 116}, {U'œ', 120}, {U'ɹ', 123}, {U'ɾ', 125},     {U'ɻ', 126},     {U'ʁ', 128},
      {U'ʧ', 133}, {U'ʋ', 136}, {U'ɤ', 140}, {U'χ', 142}, {U'ʒ', 147},     {U'ʔ', 148},     {U'ˈ', 156},
      {U'ː', 158}, {U'ʰ', 162}, {U'ʲ', 164}, {U'↓', 169}, {U'→', 171},     {U'↘', 173},     {U'ᵻ', 177}};
  for (const auto& [symbol, id] : known) EXPECT_EQ(symbol_id(symbol), id) << static_cast<uint32_t>(symbol);
  EXPECT_EQ(symbol_id(U'g'), 0);  // the alphabet has U+0261 instead
  EXPECT_EQ(id_symbol(0), U'\0');
  EXPECT_EQ(id_symbol(178), U'\0');
  EXPECT_EQ(id_symbol(-1), U'\0');
}

TEST(Vocabulary, CountsUnknownSymbols) {
  const Tokens tokens = tokenize("hˈ7O\xff,");
  EXPECT_THAT(tokens.ids, ElementsAre(50, 156, 31, 3));
  EXPECT_THAT(tokens.offsets, ElementsAre(0u, 1u, 4u, 6u));
  EXPECT_EQ(tokens.symbols, 6u);
  EXPECT_EQ(tokens.unknown, 2u);
  EXPECT_EQ(tokenize("").symbols, 0u);
}

TEST(Vocabulary, KnowsEveryPhonemeOfTheTestVectors) {
  for (const char* phonemes :
       {"həlˈO wˈɜɹld, ðɪs ɪz ɐ tˈɛst ʌv ðə spˈiʧ ˈɛnʤən.",
        "ɪn twˈɛnti twˈɛnti fˈIv ðə pɹˈIs ɹˈOz tə θɹˈi dˈɑləɹz ænd fˈɪfti sˈɛnts, əbˈWt twˈɛlv pYnt fˈIv pəɹsˈɛnt."}) {
    const Tokens tokens = tokenize(phonemes);
    EXPECT_EQ(tokens.unknown, 0u);
    EXPECT_EQ(tokens.ids.size(), tokens.symbols);
  }
}

}  // namespace
}  // namespace syrinx::kokoro
