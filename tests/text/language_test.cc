#include "text/language.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace syrinx::text {
namespace {

TEST(Language, CodesAndNamesBecomeOneCode) {
  const std::pair<const char*, const char*> cases[] = {{"en", "en"},
                                                       {"eng", "en"},
                                                       {"English", "en"},
                                                       {"ENGLISH ", "en"},
                                                       {"en_US", "en-us"},
                                                       {"en_US.UTF-8", "en-us"},
                                                       {"eng-GB", "en-gb"},
                                                       {"iw", "he"},
                                                       {"in", "id"},
                                                       {"ji", "yi"},
                                                       {"ji-001", "yi-001"},
                                                       {"jw", "jv"},
                                                       {"deu", "de"},
                                                       {"ger", "de"},
                                                       {"de_DE@euro", "de-de"},
                                                       {"zho", "zh"},
                                                       {"chi", "zh"},
                                                       {"cmn-Hans-CN", "zh-hans-cn"},
                                                       {"zh-cmn-Hans", "zh-hans"},
                                                       {"zh-yue-HK", "yue-hk"},
                                                       {"Cantonese", "yue"},
                                                       {"nb-NO", "nb-no"},
                                                       {"no-NYN", "nn"},
                                                       {"Norwegian Bokm\xc3\xa5l", "nb"},
                                                       {"haitian_creole", "ht"},
                                                       {"Chinese (Simplified)", "zh"},
                                                       {"Brazilian Portuguese", "pt-br"},
                                                       {"fil", "tl"},
                                                       {"mol", "ro"},
                                                       {"tlh", "tlh"},
                                                       {"Klingon", "klingon"},
                                                       {"", ""},
                                                       {" ", ""},
                                                       {"e", "e"},
                                                       {"-", "-"},
                                                       {"en-", "en-"},
                                                       {"auto", "auto"}};
  for (const auto& [given, code] : cases) EXPECT_EQ(canonical_language(given), code) << given;
}

TEST(Language, NoneMeansAny) {
  for (const char* const any : {"", " ", "auto", "AUTO", "und", "mul"}) EXPECT_TRUE(is_any_language(any)) << any;
  for (const char* const one : {"en", "automatic", "xx"}) EXPECT_FALSE(is_any_language(one)) << one;
}

// Another member of a prompt's dictionary writes other words.
TEST(Language, ClosestOneIsTaken) {
  for (const std::vector<std::string>& known :
       {std::vector<std::string>{"pt", "pt-BR", "pt-PT", "en"}, {"en", "pt-PT", "pt-BR", "pt"}})
    for (const char* each : {"pt", "pt-BR", "pt-PT"}) EXPECT_EQ(*closest_language(known, each), each);
  const std::vector<std::string> known = {"en-GB", "en", "de-AT", "de-DE"};
  EXPECT_EQ(*closest_language(known, "EN_gb"), "en-GB");
  EXPECT_EQ(*closest_language(known, "en-US"), "en");
  EXPECT_EQ(*closest_language(known, "de"), "de-AT");
  EXPECT_EQ(*closest_language(known, "German"), "de-AT");
  EXPECT_EQ(closest_language(known, "fr"), nullptr);
  EXPECT_EQ(closest_language(known, "auto"), nullptr);
}

TEST(Language, StandInsServeWhereTheyMust) {
  const std::vector<std::string> whisper = {"en", "he", "id", "no", "nn", "jw", "yi"};
  for (const auto& [given, code] : std::vector<std::pair<std::string, std::string>>{{"nb", "no"},
                                                                                    {"nb-NO", "no"},
                                                                                    {"nob", "no"},
                                                                                    {"nn", "nn"},
                                                                                    {"nno", "nn"},
                                                                                    {"no", "no"},
                                                                                    {"nor-NO", "no"},
                                                                                    {"iw", "he"},
                                                                                    {"iw-IL", "he"},
                                                                                    {"in", "id"},
                                                                                    {"ji", "yi"},
                                                                                    {"jv", "jw"},
                                                                                    {"Javanese", "jw"}}) {
    const std::string* const found = closest_language(whisper, given);
    ASSERT_NE(found, nullptr) << given;
    EXPECT_EQ(*found, code) << given;
  }
  const std::vector<std::string> without = {"nb", "sv"};
  EXPECT_EQ(*closest_language(without, "no"), "nb");
  EXPECT_EQ(*closest_language(without, "nn"), "nb");
  EXPECT_EQ(closest_language(without, "da"), nullptr);
}

TEST(Language, IsTheSameOrPartOfTheOther) {
  EXPECT_TRUE(is_same_language("en_US", "en-us"));
  EXPECT_TRUE(is_same_language("en", "en-GB"));
  EXPECT_TRUE(is_same_language("eng", "English"));
  EXPECT_TRUE(is_same_language("zh-Hans-CN", "zh"));
  EXPECT_FALSE(is_same_language("en-US", "en-GB"));
  EXPECT_FALSE(is_same_language("nb", "no"));
  EXPECT_FALSE(is_same_language("e", "en"));
  EXPECT_FALSE(is_same_language("", ""));
}

}  // namespace
}  // namespace syrinx::text
