// Lists of acronyms and names, and the rules on the tiny lexicon.
#include <gtest/gtest.h>

#include <algorithm>

#include "models/g2p/acronyms.h"
#include "models/g2p/british.h"
#include "models/g2p/english.h"
#include "models/g2p/known_words.h"
#include "models/g2p/names.h"
#include "models/g2p/phoneme.h"
#include "tiny.h"

namespace syrinx::g2p {
namespace {

constexpr PhonemesView kAlphabet = U"AIOWYbdfhijklmnpstuvwzæðŋɑɔəɛɜɡɪɹɾʃʊʌʒʔʤʧˈˌθᵊᵻ";

bool is_sound(std::string_view phonemes) {
  const Phonemes all = from_utf8(phonemes);
  return std::all_of(all.begin(), all.end(), [](char32_t c) { return kAlphabet.find(c) != PhonemesView::npos; });
}

bool is_list(std::string_view words) { return words.empty() || (words.starts_with(' ') && words.ends_with(' ')); }

TEST(Acronyms, ListIsSortedAndSound) {
  const auto all = all_acronyms();
  EXPECT_GT(all.size(), 200u);
  for (size_t i = 0; i < all.size(); ++i) {
    const Acronym& acronym = all[i];
    EXPECT_TRUE(i == 0 || all[i - 1].written < acronym.written) << acronym.written;
    EXPECT_EQ(find_acronym(acronym.written), &acronym);
    EXPECT_TRUE(is_sound(acronym.phonemes)) << acronym.written;
    EXPECT_TRUE(acronym.reading != AcronymReading::kSaid || !acronym.phonemes.empty()) << acronym.written;
    for (const std::string_view list :
         {acronym.letters_behind, acronym.letters_before, acronym.word_behind, acronym.word_before}) {
      EXPECT_TRUE(is_list(list)) << acronym.written;
    }
  }
  EXPECT_EQ(find_acronym("us"), nullptr);
  EXPECT_EQ(find_acronym(""), nullptr);
}

struct NeighbourCase {
  std::string_view written, behind, before;
  bool in_capitals;
  bool spelled;
};

TEST(Acronyms, NeighboursDecide) {
  constexpr NeighbourCase kCases[] = {
      {"US", "a", "citizen", false, true},   {"US", "told", "the", true, false},
      {"US", "the", "economy", true, true},  {"US", "", "paused", true, true},
      {"IT", "call", "support", true, true}, {"IT", "do", "", false, false},
      {"IT", "in", "", false, true},         {"WHO", "the", "report", true, true},
      {"WHO", "", "is", false, false},       {"WHO", "", "officials", false, true},
      {"AM", "i", "not", true, false},       {"AM", "nine", "", true, true},
      {"AM", "likes", "radio", false, true}, {"OR", "this", "that", false, false},
      {"SAT", "the", "", true, true},        {"SAT", "he", "down", true, false},
      {"EST", "pm", "", true, true},
  };
  for (const NeighbourCase& c : kCases) {
    Neighbours neighbours;
    neighbours.behind = c.behind;
    neighbours.before = c.before;
    neighbours.in_capitals = c.in_capitals;
    bool by_neighbours = false;
    ASSERT_NE(find_acronym(c.written), nullptr) << c.written;
    EXPECT_EQ(is_spelled(*find_acronym(c.written), neighbours, &by_neighbours), c.spelled)
        << c.behind << " " << c.written << " " << c.before;
  }
}

TEST(Acronyms, StateBehindTown) {
  Neighbours neighbours;
  neighbours.behind = ", ";
  bool by_neighbours = false;
  EXPECT_FALSE(is_spelled(*find_acronym("OR"), neighbours, &by_neighbours));
  neighbours.behind_place = true;
  EXPECT_TRUE(is_spelled(*find_acronym("OR"), neighbours, &by_neighbours));
  EXPECT_TRUE(by_neighbours);
}

TEST(Names, ListIsSortedAndSound) {
  const auto all = all_names();
  EXPECT_GT(all.size(), 1500u);
  size_t bytes = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    const Name& name = all[i];
    bytes += name.written.size() + name.phonemes.size();
    EXPECT_TRUE(i == 0 || all[i - 1].written < name.written) << name.written;
    EXPECT_EQ(find_name(name.written), &name);
    EXPECT_EQ(name.written, fold_case(name.written));
    EXPECT_EQ(std::count(name.written.begin(), name.written.end(), ' '),
              std::count(name.phonemes.begin(), name.phonemes.end(), ' '))
        << name.written;
    std::string sounds(name.phonemes);
    sounds.erase(std::remove(sounds.begin(), sounds.end(), ' '), sounds.end());
    EXPECT_TRUE(is_sound(sounds)) << name.written;
  }
  EXPECT_LT(bytes, 200000u);
  for (const Place& place : all_places()) {
    EXPECT_TRUE(is_sound(place.phonemes) && is_list(place.near)) << place.written;
    EXPECT_EQ(find_place(place.written), &place);
  }
  EXPECT_TRUE(names_beginning("no such name").empty());
  EXPECT_GE(names_beginning("san ").size(), 2u);
}

TEST(Names, CaseIsFoldedWithAccents) {
  EXPECT_EQ(fold_case("RÉSUMÉ’S"), "résumé's");
  EXPECT_EQ(fold_case("e\xCC\x81t\xCC\x81"), "ét\xCC\x81");
  EXPECT_EQ(fold_case("ŁÓDŹ Ÿ Ž Ő Ễ"), "łódź ÿ ž ő ễ");
  EXPECT_EQ(fold_case("Straße Ж 日 ×"), "straße Ж 日 ×");
  EXPECT_EQ(fold_case("\xFF\xC3"), "\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_EQ(fold_case(""), "");
}

TEST(Names, BritishSoundsOfAmericanOnes) {
  const auto british = [](PhonemesView american) { return to_utf8(to_british(american)); };
  EXPECT_EQ(british(U"hOzˈA"), "hQzˈA");
  EXPECT_EQ(british(U"mɑɹtˈinɛz"), "mɑːtˈiːnɛz");
  EXPECT_EQ(british(U"piˈɛɹ"), "piˈɛː");
  EXPECT_EQ(british(U"ˈæɹəɡɔɹn"), "ˈæɹəɡɔːn");
  EXPECT_EQ(british(U"hɛɹˈɑɹdO"), "hɛːɹˈɑːdQ");
  EXPECT_EQ(british(U"ˈmIəɹ"), "ˈmIə");
  EXPECT_EQ(british(U"ˈWɾə"), "ˈWtə");
  EXPECT_EQ(british(U""), "");
}

TEST(KnownWords, LettersThatMayBeAWord) {
  EXPECT_TRUE(is_pronounceable("zelensky"));
  EXPECT_TRUE(is_pronounceable("ebitda"));
  EXPECT_TRUE(is_pronounceable("strata"));
  EXPECT_FALSE(is_pronounceable("gbpuat"));
  EXPECT_FALSE(is_pronounceable("unhcr"));
  EXPECT_FALSE(is_pronounceable("msnbc"));
  EXPECT_FALSE(is_pronounceable(""));
  EXPECT_TRUE(is_in_capitals("DON'T"));
  EXPECT_TRUE(is_in_capitals("X-RAY"));
  EXPECT_FALSE(is_in_capitals("A"));
  EXPECT_FALSE(is_in_capitals("PhD"));
  EXPECT_FALSE(is_in_capitals("É"));
}

class TinyForms : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    G2pFiles files;
    files.gold = tiny_gold();
    files.silver = tiny_silver();
    auto loaded = EnglishG2p::load(files);
    ASSERT_TRUE(loaded) << loaded.error().message;
    g2p_ = *loaded;
  }
  static void TearDownTestSuite() { g2p_.reset(); }
  // "word=rule" of each word, "/sound" where it is another.
  static std::string read(std::string_view text) {
    std::vector<ReadWord> words;
    const auto said = g2p_->phonemize(text, 0, &words);
    if (!said) return said.error().message;
    std::string all;
    for (const ReadWord& word : words) {
      all += (all.empty() ? "" : ", ") + word.word + "=" + std::string(word.rule);
      if (word.sound != word.rule) all += "/" + std::string(word.sound);
      EXPECT_LE(word.source.end, text.size());
    }
    return all;
  }
  static std::shared_ptr<const EnglishG2p> g2p_;
};
std::shared_ptr<const EnglishG2p> TinyForms::g2p_;

TEST_F(TinyForms, CapitalsOfKnownWordsAreWords) {
  EXPECT_EQ(read("TWO CATS RUN"), "two=capitals/lexicon, cats=capitals/lexicon-stem, run=capitals/lexicon");
  EXPECT_EQ(read("he was NOT a CAT"),
            "he=lexicon, was=lexicon, not=capitals/lexicon, a=function-word, cat=capitals/lexicon");
  EXPECT_EQ(read("A MAN AND A DOG").substr(0, 31), "a=capitals/function-word, man=c");
  EXPECT_EQ(read("NUT"), "N U T=spelled");
}

TEST_F(TinyForms, AcronymsAreSpelledOrSaid) {
  EXPECT_EQ(read("the US man"), "the=function-word, U S=acronym-neighbours/spelled, man=lexicon");
  EXPECT_EQ(read("he is NATO"), "he=lexicon, is=lexicon, nato=acronym/table");
  EXPECT_EQ(read("two UFAs"), "two=lexicon, U F As=spelled-stem");
  EXPECT_EQ(read("the U.S.'s man"), "the=function-word, U S's=initialism/spelled, man=lexicon");
  EXPECT_EQ(read("a US-cat"), "a=function-word, U S=acronym/spelled, cat=lexicon");
}

TEST_F(TinyForms, NamesAndAccents) {
  EXPECT_EQ(read("José's cat"), "jose's=accent/table, cat=lexicon");
  EXPECT_EQ(read("Jose and Paris"), "jose=name/table, and=lexicon, paris=lexicon");
  EXPECT_EQ(read("déjà vu"), "deja=phrase/table, vu=phrase/table");
  EXPECT_EQ(read("Des Moines"), "des=phrase/table, moines=phrase/table");
}

TEST_F(TinyForms, ContractionsAndLengthenedWords) {
  EXPECT_EQ(read("he'd've run"), "he'd=contraction/table, have=contraction/table, run=lexicon");
  EXPECT_EQ(read("he’d’ve"), "he'd=contraction/table, have=contraction/table");
  EXPECT_EQ(read("runnnn caaat"), "run=lengthened/lexicon, cat=lengthened/lexicon");
  EXPECT_EQ(read("b's and V's"), "B's=letter/spelled, and=lexicon, V's=letter/spelled");
}

TEST_F(TinyForms, AcronymsInSmallLettersAreSpelled) {
  EXPECT_EQ(read("tv tvs Tv"), "T V=acronym/spelled, T Vs=acronym/spelled, T V=acronym/spelled");
  EXPECT_EQ(read("a tv's json"), "a=function-word, T V's=acronym/spelled, json=acronym/table");
  EXPECT_EQ(read("tvt Tvt"), "T V T=acronym/spelled, T V T=spelled");
  EXPECT_EQ(read("runs tv-cat"), "runs=lexicon-stem, T V=acronym/spelled, cat=lexicon");
}

TEST_F(TinyForms, HostileTextsStayBounded) {
  for (const std::string part :
       {"A'", "A-", "SSS", "US ", "d'd've ", "san ", "é", "(i)", "(II) ", "'s ", "A.'s ", "X'S-"}) {
    std::string text;
    while (text.size() < 20000) text += part;
    std::vector<ReadWord> words;
    const auto said = g2p_->phonemize(text, 0, &words);
    ASSERT_TRUE(said) << part;
    for (const ReadWord& word : words) ASSERT_LE(word.source.end, text.size()) << part;
  }
}

}  // namespace
}  // namespace syrinx::g2p
