// Capitals, acronyms, names, accents, contractions and Roman numerals as the installed lexicon reads them.
#include <gtest/gtest.h>

#include "real.h"

namespace syrinx::g2p {
namespace {

class RealForms : public testing::Test {
 protected:
  static void SetUpTestSuite() { g2p_ = load_real(false); }
  static void TearDownTestSuite() { g2p_.reset(); }
  void SetUp() override { ASSERT_NE(g2p_, nullptr); }
  static std::string words(std::string_view text) {
    std::vector<ReadWord> read;
    if (!g2p_->phonemize(text, 0, &read)) return "error";
    std::string all;
    for (const ReadWord& word : read) all += (all.empty() ? "" : " ") + word.word;
    return all;
  }
  static std::string say(std::string_view text) { return g2p_->phonemize(text)->phonemes; }
  static std::shared_ptr<const EnglishG2p> g2p_;
};
std::shared_ptr<const EnglishG2p> RealForms::g2p_;

struct Case {
  std::string_view text;
  std::string_view expected;
};

TEST_F(RealForms, Capitals) {
  constexpr Case kCases[] = {
      {"THREE HURT IN BLAZE", "three hurt in blaze"},
      {"SHE WALKED AND TALKED FOR HOURS.", "she walked and talked for hours"},
      {"CLOSED ROADS AND FLOODED CELLARS", "closed roads and flooded cellars"},
      {"CIA PROBES LEAKED LETTERS", "C I A probes leaked letters"},
      {"Please do NOT touch the WIRES.", "please do not touch the wires"},
      {"He said GO AWAY, then left.", "he said go away then left"},
      {"DON'T PANIC, IT'S ONLY A DRILL", "don't panic it's only a drill"},
      {"CEOS MEET AT NATO", "C E Os meet at nato"},
  };
  for (const Case& c : kCases) EXPECT_EQ(words(c.text), c.expected);
}

TEST_F(RealForms, AcronymsByTheirNeighbours) {
  constexpr Case kCases[] = {
      {"The US navy sailed.", "the U S navy sailed"},
      {"He told us of the US.", "he told us of the U S"},
      {"GIVE US A BREAK.", "give us a break"},
      {"US-built cars", "U S built cars"},
      {"The US's share", "the U S's share"},
      {"Ask the IT desk.", "ask the I T desk"},
      {"IS IT TRUE?", "is it true"},
      {"A WHO study", "a W H O study"},
      {"WHO DID THAT?", "who did that"},
      {"I AM HERE.", "i am here"},
      {"an AM station", "an A M station"},
      {"Bring your ID and two other IDs.", "bring your I D and two other I Ds"},
      {"Her PhD and his MA", "her P H D and his M A"},
      {"three PhDs, two MDs", "three P H Ds two M Ds"},
      {"The MPs' votes", "the M Ps votes"},
      {"the USS Cole, HMS Hood", "the U S S cole H M S hood"},
      {"Salem, OR, is small OR large", "salem O R is small or large"},
      {"The U.K.'s vote and the Q&As", "the U K's vote and the Q and As"},
      {"JSON, YAML, a JPEG, NASA", "json yaml a jpeg nasa"},
      {"It ends at 5 PM EST.", "it ends at five P M E S T"},
      {"data.json, ci.yaml", "data dot json ci dot yaml"},
      {"macOS, watchOS and SwiftUI", "mac O S watch O S and swift U I"},
      {"iOS on an iPhone", "I O S on an I phone"},
      {"See ibm.com or ebay.com.", "see I B M dot com or ebay dot com"},
  };
  for (const Case& c : kCases) EXPECT_EQ(words(c.text), c.expected);
  constexpr Case kWords[] = {
      {"The LAPD treats COPD.", "the L A P D treats C O P D"},
      {"Two AAA batteries", "two A A A batteries"},
      {"It was for HIM, ME, and US.", "it was for him me and us"},
      {"IT was the best of times.", "it was the best of times"},
      {"The IT was outsourced.", "the I T was outsourced"},
      {"She LED the way and SAT down.", "she led the way and sat down"},
  };
  for (const Case& c : kWords) EXPECT_EQ(words(c.text), c.expected);
  EXPECT_EQ(say("JSON and YAML"), "ʤˈAsən ænd jˈæmᵊl");
  EXPECT_EQ(say("a.json"), "ˈA dˈɑt ʤˈAsən");
}

TEST_F(RealForms, RomanNumeralsAndLetters) {
  constexpr Case kCases[] = {
      {"Malcolm X and Henry VIII", "malcolm X and henry the eighth"},
      {"type II and phase III", "type two and phase three"},
      {"a type I error; the type I like", "a type one error the type i like"},
      {"Act IV, Scene iii", "act four scene three"},
      {"(i) One; (ii) two; (iv) four.", "one one two two four four"},
      {"(a) One; (i) two", "A one one two"},
      {"An IV drip", "an I V drip"},
      {"She got an A in art.", "she got an A in art"},
      {"Once Upon A Time", "once upon a time"},
      {"'Twas A Dark Night", "twas a dark night"},
      {"Dot your i's.", "dot your I's"},
  };
  for (const Case& c : kCases) EXPECT_EQ(words(c.text), c.expected);
}

TEST_F(RealForms, NamesAreSaidAsTheirBearersDo) {
  constexpr Case kCases[] = {
      {"Siobhan", "ʃəvˈɔn"},
      {"Zhang's", "ʤˈɑŋz"},
      {"José", "hOzˈA"},
      {"O'Malley's", "Omˈæliz"},
      {"Los Angeles", "lˌɔs ˈænʤələs"},
      {"Reading, England", "ɹˈɛdɪŋ, ˈɪŋɡlənd"},
      {"lima beans", "lˈImə bˈinz"},
      {"Beyoncé’s", "biˈɑnsAz"},
      {"crème brûlée", "kɹˌɛm bɹulˈA"},
      {"jalapeños", "hˌɑləpˈAnjOz"},
      {"my resume, my résumé", "mI ɹˈɛzəmˌA, mI ɹˈɛzəmˌA"},
  };
  for (const Case& c : kCases) EXPECT_EQ(say(c.text), c.expected) << c.text;
  EXPECT_EQ(words("Reading is fun."), "reading is fun");
  EXPECT_EQ(say("Reading is fun."), "ɹˈidɪŋ ɪz fˈʌn.");
}

TEST_F(RealForms, ContractionsAndLengthenedWords) {
  constexpr Case kCases[] = {
      {"You couldn't've known.", "you couldn't have known"},
      {"We'd’ve won.", "we'd have won"},
      {"That'll do, this'd be it.", "that'll do this'd be it"},
      {"Nooooo! Sooo goood, yesss, whaaat?", "no so good yes what"},
      {"Ooops, heyyy, pleeease.", "oops hey please"},
  };
  for (const Case& c : kCases) EXPECT_EQ(words(c.text), c.expected);
  EXPECT_EQ(say("shouldn't've"), "ʃˈʊdᵊnt əv");
}

TEST_F(RealForms, LetterBeginsASentence) {
  constexpr Case kCases[] = {
      {"A: Me.", "ˈA: mˌi."},
      {"A) Yes.", "ˈA) jˈɛs."},
      {"Is it an A? A?", "ˌɪz ɪt ɐn ˈA? ˈA?"},
      {"A dog barked.", "ɐ dˈɔɡ bˈɑɹkt."},
  };
  for (const Case& c : kCases) EXPECT_EQ(say(c.text), c.expected) << c.text;
  for (const std::string_view text : {"“A” is good.", "A, B, and C are fine."})
    EXPECT_NE(say(text).find("ˈA"), std::string::npos) << text;
}

// Each text holds a word that is said as expected.
TEST_F(RealForms, GrammarDecidesHomographs) {
  constexpr Case kCases[] = {
      {"I've read all his books.", "ɹˈɛd"},
      {"I haven't read the email.", "ɹˈɛd"},
      {"He hasn't read it.", "ɹˈɛd"},
      {"Having read the report, she left.", "ɹˈɛd"},
      {"She has already read everything.", "ɹˈɛd"},
      {"Have you read it?", "ɹˈɛd"},
      {"What have they actually read so far?", "ɹˈɛd"},
      {"The letter was read aloud in court.", "ɹˈɛd"},
      {"It must be read by Monday.", "ɹˈɛd"},
      {"They should have read the contract.", "ɹˈɛd"},
      {"You have to read it.", "ɹˈid"},
      {"Users have read access to the folder.", "ɹˈid"},
      {"I'll have you read it twice.", "ɹˈid"},
      {"Reading is my favorite hobby.", "ɹˈidɪŋ"},
      {"Reading helps children learn.", "ɹˈidɪŋ"},
      {"Reading glasses cost little.", "ɹˈidɪŋ"},
      {"Reading is a town in Berkshire.", "ɹˈɛdɪŋ"},
      {"He moved to Reading last year.", "ɹˈɛdɪŋ"},
      {"She drew it with a lead pencil.", "lˈɛd"},
      {"The lead pipes were replaced.", "lˈɛd"},
      {"They lead the league.", "lˈid"},
      {"He tears up the letter.", "tˈɛɹz"},
      {"I am content.", "kəntˈɛnt"},
      {"They were quite content with the room.", "kəntˈɛnt"},
      {"The content is new.", "kˈɑntɛnt"},
      {"We ordered the bass for dinner.", "bˈæs"},
      {"He plays bass in a band.", "bˈAs"},
      {"They got their just deserts.", "dɪzˈɜɹts"},
      {"Live and let live.", "lˈɪv"},
  };
  for (const Case& c : kCases) {
    const Phonemized said = *g2p_->phonemize(c.text);
    EXPECT_NE(said.phonemes.find(c.expected), std::string::npos) << c.text << "  " << said.phonemes;
  }
}

TEST_F(RealForms, VerbInSFollowsItsPronoun) {
  EXPECT_EQ(say("She tears it in tears."), "ʃˌi tˈɛɹz ɪt ɪn tˈɪɹz.");
  EXPECT_EQ(say("It records two records."), "ˌɪt ɹəkˈɔɹdz tˈu ɹˈɛkəɹdz.");
}

TEST(RealBritishForms, ZIsZed) {
  const auto g2p = load_real(true);
  ASSERT_NE(g2p, nullptr);
  EXPECT_EQ(g2p->phonemize("Z")->phonemes, "zˈɛd");
  EXPECT_EQ(g2p->phonemize("NZ")->phonemes, "ˌɛnzˈɛd");
}

TEST(RealBritishForms, NamesAreOfTheOtherAlphabet) {
  const auto g2p = load_real(true);
  ASSERT_NE(g2p, nullptr);
  EXPECT_EQ(g2p->phonemize("José")->phonemes, "hQzˈA");
  EXPECT_EQ(g2p->phonemize("Marquez")->phonemes.find("ɹ"), std::string::npos);
}

}  // namespace
}  // namespace syrinx::g2p
