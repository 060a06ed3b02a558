#include "models/g2p/phoneme.h"

#include <gtest/gtest.h>

#include "models/g2p/compound.h"
#include "models/g2p/tagger.h"

namespace syrinx::g2p {
namespace {

std::string utf8(PhonemesView phonemes) {
  std::string out;
  append_for_model(out, phonemes);
  return out;
}
std::string stressed(PhonemesView phonemes, float stress) { return utf8(with_stress(phonemes, stress)); }

TEST(Stress, Removes) { EXPECT_EQ(stressed(U"ˌɪntəɹˈɛst", -2), "ɪntəɹɛst"); }
TEST(Stress, Lowers) {
  EXPECT_EQ(stressed(U"ˌɪntəɹˈɛst", -1), "ɪntəɹˌɛst");
  EXPECT_EQ(stressed(U"kˈæt", -0.5), "kˌæt");
  EXPECT_EQ(stressed(U"kˈæt", 0), "kˌæt");
  EXPECT_EQ(stressed(U"kæt", -0.5), "kæt");
}
TEST(Stress, AddsAndRaises) {
  EXPECT_EQ(stressed(U"strænd", 0.5), "strˌænd");
  EXPECT_EQ(stressed(U"kˈæt", 0.5), "kˈæt");
  EXPECT_EQ(stressed(U"kˌæt", 1), "kˈæt");
  EXPECT_EQ(stressed(U"kæt", 2), "kˈæt");
  EXPECT_EQ(stressed(U"kˌæt", 0.5), "kˌæt");
  EXPECT_EQ(stressed(U"pst", 2), "pst");
}

TEST(Endings, American) {
  EXPECT_EQ(utf8(with_s(U"kˈæt", false)), "kˈæts");
  EXPECT_EQ(utf8(with_s(U"dˈɔɡ", false)), "dˈɔɡz");
  EXPECT_EQ(utf8(with_s(U"fˈɑks", false)), "fˈɑksᵻz");
  EXPECT_EQ(utf8(with_ed(U"hˈOp", false)), "hˈOpt");
  EXPECT_EQ(utf8(with_ed(U"nˈid", false)), "nˈidᵻd");
  EXPECT_EQ(utf8(with_ed(U"wˈAt", false)), "wˈATᵻd");
  EXPECT_EQ(utf8(with_ed(U"wˈɑnt", false)), "wˈɑntᵻd");
  EXPECT_EQ(utf8(with_ed(U"ɹˈʌn", false)), "ɹˈʌnd");
  EXPECT_EQ(utf8(with_ed(U"t", false)), "tɪd");
  EXPECT_EQ(utf8(with_ing(U"wˈAt", false)), "wˈATɪŋ");
  EXPECT_EQ(utf8(with_ing(U"wˈɑnt", false)), "wˈɑntɪŋ");
  for (const auto& ending : {with_s, with_ed, with_ing}) EXPECT_TRUE(ending({}, false).empty());
}

TEST(Endings, British) {
  EXPECT_EQ(utf8(with_s(U"fˈɒks", true)), "fˈɒksɪz");
  EXPECT_EQ(utf8(with_ed(U"wˈAt", true)), "wˈAtɪd");
  EXPECT_EQ(utf8(with_ed(U"nˈiːd", true)), "nˈiːdɪd");
  EXPECT_EQ(utf8(with_ing(U"wˈAt", true)), "wˈAtɪŋ");
  EXPECT_TRUE(with_ing(U"kˈɑː", true).empty());  // a linking r would be needed
}

TEST(Phonemes, TheModelHasItsOwnFlapAndGlottalStop) { EXPECT_EQ(utf8(U"bˈʌʔn sˈɪɾi"), "bˈʌtn sˈɪTi"); }

std::vector<std::string> cut(std::string_view word) {
  std::vector<std::string> out;
  for (const std::string_view part : cut_word(word)) out.emplace_back(part);
  return out;
}

TEST(Compound, Cuts) {
  using Parts = std::vector<std::string>;
  EXPECT_EQ(cut("ill-disposed"), (Parts{"ill", "-", "disposed"}));
  EXPECT_EQ(cut("iPhone"), (Parts{"i", "Phone"}));
  EXPECT_EQ(cut("HTMLFile"), (Parts{"HTML", "File"}));
  EXPECT_EQ(cut("don't"), (Parts{"don't"}));
  EXPECT_EQ(cut("'em"), (Parts{"'", "em"}));
  EXPECT_EQ(cut("boys'"), (Parts{"boys", "'"}));
  EXPECT_EQ(cut("a--b"), (Parts{"a", "--", "b"}));
  EXPECT_EQ(cut("ABc"), (Parts{"A", "Bc"}));
  EXPECT_EQ(cut(""), Parts{});
  EXPECT_TRUE(is_silent("-'."));
  EXPECT_FALSE(is_silent("-a"));
}

TEST(Compound, LowersTheWeakerHalf) {
  EXPECT_EQ(utf8(join_parts({{"ill", U"ˈɪl"}, {"disposed", U"dəspˈOzd"}})), "ˌɪldəspˈOzd");
  EXPECT_EQ(utf8(join_parts({{"i", U"ˈI"}, {"Phone", U"fˈOn"}})), "ˈIfˌOn");
  EXPECT_EQ(utf8(join_parts({{"one", U"wˈʌn"}})), "wˈʌn");
  EXPECT_EQ(utf8(join_parts({})), "");
}

TEST(Tagger, LooksAtNeighbours) {
  const auto tags = [](std::string_view text) { return tag_tokens(text::normalize(text)->tokens); };
  EXPECT_EQ(tags("to use it")[1], Tag::kVerb);
  EXPECT_EQ(tags("the use of")[1], Tag::kNoun);
  EXPECT_EQ(tags("they use it")[1], Tag::kVerb);
  EXPECT_EQ(tags("I have read it")[2], Tag::kParticiple);
  EXPECT_EQ(tags("did not read it")[2], Tag::kVerb);
  EXPECT_EQ(tags("that cup")[0], Tag::kDeterminer);
  EXPECT_EQ(tags("that he")[0], Tag::kPreposition);
  EXPECT_EQ(tags("He saw Paris.")[2], Tag::kProperNoun);
  EXPECT_EQ(tags("Yes. Paris")[2], Tag::kNoun);
  EXPECT_EQ(tags("7 cats")[0], Tag::kNumber);
}

}  // namespace
}  // namespace syrinx::g2p
