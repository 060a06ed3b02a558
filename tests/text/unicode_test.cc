#include "text/unicode.h"

#include <gtest/gtest.h>

namespace syrinx::text {
namespace {

TEST(Unicode, RoundTripsEveryLength) {
  for (const char32_t c : {U'a', U'é', U'ˈ', U'€', U'😀', char32_t{0x10FFFF}, char32_t{0x7FF}, char32_t{0x800}}) {
    std::string bytes;
    append_utf8(bytes, c);
    size_t offset = 0;
    EXPECT_EQ(decode(bytes, offset), c);
    EXPECT_EQ(offset, bytes.size());
    EXPECT_FALSE(find_invalid(bytes));
    for (size_t cut = 1; cut < bytes.size(); ++cut) EXPECT_EQ(unfinished_tail(bytes.substr(0, cut)), cut);
    EXPECT_EQ(unfinished_tail(bytes), 0u);
  }
}

TEST(Unicode, FindsMalformedUtf8) {
  EXPECT_EQ(find_invalid("ab\xFF"), 2u);
  EXPECT_EQ(find_invalid("\xC0\xAF"), 0u);          // overlong
  EXPECT_EQ(find_invalid("a\xED\xA0\x80"), 1u);     // a surrogate
  EXPECT_EQ(find_invalid("\xF4\x90\x80\x80"), 0u);  // above the last character
  EXPECT_EQ(find_invalid("\xE0\x80\x80"), 0u);      // overlong
  EXPECT_EQ(find_invalid("ok \xE2\x82"), 3u);       // cut off
  EXPECT_EQ(find_invalid(""), std::nullopt);
  EXPECT_EQ(unfinished_tail("\x80\x80"), 0u);  // wrong, not unfinished
}

TEST(Unicode, MalformedBytesDecodeToTheReplacementOneByOne) {
  size_t offset = 0;
  EXPECT_EQ(decode("\xFFz", offset), 0xFFFDu);
  EXPECT_EQ(offset, 1u);
}

TEST(Unicode, CountsCodePoints) { EXPECT_EQ(count_code_points("həlˈO"), 5u); }

TEST(Unicode, Classes) {
  EXPECT_EQ(classify(U'É'), Class::kUpper);
  EXPECT_EQ(classify(U'ß'), Class::kLower);
  EXPECT_EQ(classify(U'日'), Class::kOtherLetter);
  EXPECT_EQ(classify(0x301), Class::kMark);
  EXPECT_EQ(classify(U'٣'), Class::kDigit);
  EXPECT_EQ(classify(U'½'), Class::kOtherNumber);
  EXPECT_EQ(classify(U'—'), Class::kPunctuation);
  EXPECT_EQ(classify(U'€'), Class::kSymbol);
  EXPECT_EQ(classify(0xA0), Class::kSpace);
  EXPECT_EQ(classify('\n'), Class::kSpace);
  EXPECT_EQ(classify(1), Class::kControl);
  EXPECT_TRUE(is_letter(U'я'));
  EXPECT_FALSE(is_letter('1'));
  EXPECT_TRUE(is_space(0x2003));
}

TEST(Unicode, CompatibilityForms) {
  EXPECT_EQ(nfkc(U"ﬁ"), U"fi");
  EXPECT_EQ(nfkc(U"Ａ"), U"A");
  EXPECT_EQ(nfkc(U"e\u0301"), U"é");
  EXPECT_EQ(nfkc(U"½"), U"1⁄2");
}

// As Python's unicodedata.normalize("NFC", ...).
TEST(Unicode, NfcComposesInOrder) {
  EXPECT_EQ(nfc(""), "");
  EXPECT_EQ(nfc("plain \u00E9 \u02FF"), "plain \u00E9 \u02FF");
  EXPECT_EQ(nfc("cafe\u0301 \u212B \uFB01"), "caf\u00E9 \u00C5 \uFB01");
  EXPECT_EQ(nfc("q\u0307\u0323"), "q\u0323\u0307");
  EXPECT_EQ(nfc("\u1E9B\u0323"), "\u1E9B\u0323");
  EXPECT_EQ(nfc("\u0958"), "\u0915\u093C");
  EXPECT_EQ(nfc("\u1112\u1161\u11AB"), "\uD55C");
  EXPECT_EQ(nfc("\uAE34\u11A7 \u11A7"), "\uAE34\u11A7 \u11A7");
  EXPECT_EQ(nfc("e\xFF\u0301 e\xCC"), "e\xFF\u0301 e\xCC");
  EXPECT_EQ(nfc("\uFFFDe\u0301"), "\uFFFD\u00E9");
}

TEST(Unicode, NfcOfManyMarksIsLinear) {
  std::string text = "a", ordered = "\u1EA1";
  for (int i = 0; i < 300000; ++i) text += "\u0307\u0323";
  for (int i = 0; i < 299999; ++i) ordered += "\u0323";
  for (int i = 0; i < 300000; ++i) ordered += "\u0307";
  EXPECT_EQ(nfc(text), ordered);
}

TEST(Unicode, LatinLettersWithoutMarks) {
  EXPECT_EQ(ascii_letters(U'é'), "e");
  EXPECT_EQ(ascii_letters(U'Ç'), "C");
  EXPECT_EQ(ascii_letters(U'ø'), "o");
  EXPECT_EQ(ascii_letters(U'ß'), "ss");
  EXPECT_EQ(ascii_letters('q'), "q");
  EXPECT_EQ(ascii_letters(U'я'), "");
  EXPECT_EQ(ascii_letters('3'), "");
}

TEST(Unicode, DigitsOfAllScripts) {
  EXPECT_EQ(digit_value('7'), 7);
  EXPECT_EQ(digit_value(U'٣'), 3);
  EXPECT_EQ(digit_value(U'९'), 9);
  EXPECT_EQ(digit_value('x'), -1);
  EXPECT_EQ(digit_value(U'Ⅷ'), -1);
}

TEST(Unicode, GraphemesEndBetweenCharactersThatAreSeenApart) {
  const auto ends = [](std::u32string_view text) {
    std::vector<bool> all;
    int state = 0;
    for (size_t i = 1; i < text.size(); ++i) all.push_back(ends_grapheme(text[i - 1], text[i], state));
    return all;
  };
  EXPECT_EQ(ends(U"ab"), std::vector<bool>{true});
  EXPECT_EQ(ends(U"e\u0301b"), (std::vector<bool>{false, true}));
  EXPECT_EQ(ends(U"\r\n"), std::vector<bool>{false});
  EXPECT_EQ(ends(U"🇩🇪🇫🇷"), (std::vector<bool>{false, true, false}));
  EXPECT_EQ(ends(U"👩\u200d👧"), (std::vector<bool>{false, false}));
}

TEST(Unicode, CaseOfAsciiOnly) {
  EXPECT_EQ(ascii_lower("ABc É"), "abc É");
  EXPECT_EQ(ascii_upper("abC é"), "ABC é");
}

}  // namespace
}  // namespace syrinx::text
