// Limits, what is dropped, where words come from, escapes, the user's own words.
#include <gtest/gtest.h>

#include "text/escape.h"
#include "text/speech/normalize.h"

namespace syrinx::text {
namespace {

TEST(NormalizeEdges, NothingToSay) {
  for (const char* text : {"", "   \n\t ", "\xEF\xBB\xBF", "* _ ~"}) {
    const auto normalized = normalize(text);
    ASSERT_TRUE(normalized) << text;
    EXPECT_TRUE(normalized->tokens.empty()) << text;
    EXPECT_EQ(normalized->dropped, 0u) << text;
  }
}

TEST(NormalizeEdges, OtherScriptsAndEmojiAreCounted) {
  const auto normalized = normalize("日本 Hi 😀 Привет!");
  ASSERT_TRUE(normalized);
  EXPECT_EQ(to_text(*normalized), "Hi!");
  EXPECT_EQ(normalized->dropped, 2u + 1u + 6u);
}

TEST(Normalize, PhonemesOfAnEscapeAreNotMissed) {
  const auto normalized = normalize("日 [Syrinx](/sˈɪɹɪŋks/) 猫 speaks [Kokoro](/kˈOkəɹO/).");
  ASSERT_TRUE(normalized);
  EXPECT_EQ(normalized->dropped, 2u);
}

TEST(NormalizeEdges, BinaryTextIsRefusedWithTheByte) {
  const auto zero = normalize(std::string_view("ab\0c", 4));
  ASSERT_FALSE(zero);
  EXPECT_EQ(zero.error().code, Code::kInvalidArgument);
  EXPECT_NE(zero.error().message.find("byte 2"), std::string::npos);
  const auto wrong = normalize("abc\xC3(");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, Code::kInvalidArgument);
  EXPECT_NE(wrong.error().message.find("byte 3"), std::string::npos);
}

TEST(NormalizeEdges, OneMegabyteIsTheLimit) {
  std::string text;
  while (text.size() + 14 <= size_t{1} << 20) text += "longer words. ";
  const auto whole = normalize(text);
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->tokens.size(), 3 * text.size() / 14);
  text.resize((size_t{1} << 20) + 1, 'x');
  const auto over = normalize(text);
  ASSERT_FALSE(over);
  EXPECT_EQ(over.error().code, Code::kLimitExceeded);
}

TEST(NormalizeEdges, WordsAndMarksAreLimited) {
  NormalizeOptions options;
  options.max_tokens = 4;
  EXPECT_EQ(normalize("One, two.", options)->tokens.size(), 4u);
  options.max_tokens = 3;
  EXPECT_EQ(normalize("One, two.", options).error().code, Code::kLimitExceeded);
  std::string roots;
  while (roots.size() < 600000) roots += "√";
  const auto over = normalize(roots);
  ASSERT_FALSE(over);
  EXPECT_EQ(over.error().code, Code::kLimitExceeded);
  EXPECT_NE(over.error().message.find("262144 words"), std::string::npos);
}

TEST(NormalizeEdges, LongRunsOfOneKindStayFast) {
  NormalizeOptions options;
  options.max_tokens = options.max_bytes;
  for (const char* unit : {"1",  "1,",     "1.", "1/",  "a.",  "[",       "[a](", "-",      "'",       "A",
                           "1-", "a@",     "$",  "(1",  "X I", "http://", "a.b",  "1-1-",   "call 1 ", "<1",
                           "&#", "1 000 ", "f(", "Na2", "a_",  "/a",      "1\"",  "May 3-", "9am-",    "(ii) "}) {
    std::string text;
    while (text.size() < 200000) text += unit;
    EXPECT_TRUE(normalize(text, options)) << unit;
  }
}

TEST(NormalizeEdges, WordsKnowTheirBytes) {
  const std::string source = "Pay $3.50 — café, OK?";
  const auto normalized = normalize(source);
  ASSERT_TRUE(normalized);
  std::vector<std::string> from;
  for (const Token& token : normalized->tokens) from.push_back(source.substr(token.source.begin, token.source.size()));
  const std::vector<std::string> expected = {"Pay", "$3.50", "$3.50", "$3.50", "$3.50", "$3.50",
                                             "—",   "café",  ",",     "OK",    "?"};
  EXPECT_EQ(from, expected);
}

TEST(NormalizeEdges, RewrittenWordsNameTheirRule) {
  const auto rules = [](std::string_view text) {
    std::string all;
    const auto normalized = normalize(text);
    if (!normalized) return normalized.error().message;
    for (const Token& token : normalized->tokens) all += token.text + "=" + std::string(token.rule) + " ";
    return all;
  };
  EXPECT_EQ(rules("on 3/4/2024."), "on= March=date fourth=date ,=date twenty=date twenty=date four=date .=sign ");
  EXPECT_EQ(rules("$2 at 5pm"), "two=money dollars=money at= five=time PM=time ");
  EXPECT_EQ(rules("3/5 1.2.3 5 kg 2-3"),
            "three=fraction fifths=fraction one=version point=version two=version point=version three=version "
            "five=unit kilograms=unit two=range to=range three=range ");
  EXPECT_EQ(rules("the 90s, 4th 7"), "the= nineties=plural ,=sign fourth=ordinal seven=number ");
  EXPECT_EQ(rules("Dr. Who of U.S. J. Bach"), "Doctor=abbreviation Who= of= U.S=initialism J=initialism Bach= ");
  EXPECT_EQ(rules("AT&T"), "AT= and=sign T= ");
  EXPECT_EQ(rules("a@b.com"), "a=address at=address b=address dot=address com=address ");
  EXPECT_EQ(rules("Henry VIII + [x](/y/)"), "Henry= the=roman eighth=roman plus=sign x= ");
}

TEST(NormalizeEdges, TheWordPointOfDecimalsIsUnstressed) {
  const auto normalized = normalize("1.5 is the point");
  ASSERT_TRUE(normalized);
  EXPECT_EQ(normalized->tokens[1].stress, -2.0f);
  EXPECT_EQ(normalized->tokens.back().stress, std::nullopt);
}

TEST(NormalizeEdges, EscapesKeepPhonemesAndStress) {
  const std::string source = "Say [Kokoro](/kˈOkəɹO/), [not so](-1) [x](y).";
  const auto normalized = normalize(source);
  ASSERT_TRUE(normalized);
  const auto& tokens = normalized->tokens;
  ASSERT_GE(tokens.size(), 6u);
  EXPECT_EQ(tokens[1].kind, TokenKind::kPhonemes);
  EXPECT_EQ(tokens[1].text, "Kokoro");
  EXPECT_EQ(tokens[1].phonemes, "kˈOkəɹO");
  EXPECT_EQ(source.substr(tokens[1].source.begin, tokens[1].source.size()), "[Kokoro](/kˈOkəɹO/)");
  EXPECT_FALSE(tokens[1].space_after);
  EXPECT_EQ(tokens[2].text, ",");
  EXPECT_EQ(tokens[3].text, "not");
  EXPECT_EQ(tokens[3].stress, -1.0f);
  EXPECT_EQ(tokens[4].text, "so");
  EXPECT_EQ(tokens[4].stress, -1.0f);
  EXPECT_EQ(tokens[5].text, "(");  // no escape: read as brackets
}

TEST(NormalizeEdges, OwnWordsAreLeftAlone) {
  NormalizeOptions options;
  options.is_own_word = [](std::string_view word) { return word == "C++" || word == "k8s" || word == "Dr."; };
  const auto normalized = normalize("C++, k8s and Dr. Who's C+", options);
  ASSERT_TRUE(normalized);
  EXPECT_EQ(to_text(*normalized), "C++, k8s and Dr. Who's C plus");
}

TEST(Escape, Parses) {
  const auto escape = parse_escape("[a b](/x y/) tail");
  ASSERT_TRUE(escape);
  EXPECT_EQ(escape->word, "a b");
  EXPECT_EQ(escape->phonemes, "x y");
  EXPECT_EQ(escape->length, 12u);
  EXPECT_EQ(parse_escape("[a](+2)")->stress, 2.0f);
  EXPECT_EQ(parse_escape("[a](-0.5)")->stress, -0.5f);
  for (const char* wrong :
       {"", "[", "[]", "[a]", "[](/x/)", "[a](", "[a]()", "[a](//)", "[a](3)", "[a](/x)", "[a\n](/x/)", "[[a](/x/)"}) {
    EXPECT_FALSE(parse_escape(wrong)) << wrong;
  }
  EXPECT_FALSE(parse_escape("[" + std::string(500, 'a') + "](/x/)"));
}

}  // namespace
}  // namespace syrinx::text
