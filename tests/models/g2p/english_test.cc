// The order of work for a word, on the tiny lexicon.
#include "models/g2p/english.h"
#include "../../base/temp_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "models/g2p/user_dictionary.h"
#include "tiny.h"

namespace syrinx::g2p {
namespace {

std::shared_ptr<const EnglishG2p> tiny(bool british = false, const std::string& user = "") {
  G2pFiles files;
  files.gold = tiny_gold();
  files.silver = tiny_silver();
  files.british = british;
  files.user_dictionary = user;
  auto loaded = EnglishG2p::load(files);
  EXPECT_TRUE(loaded) << loaded.error().message;
  return loaded ? *loaded : nullptr;
}

std::string say(std::string_view text, bool british = false) {
  const auto said = tiny(british)->phonemize(text);
  return said ? said->phonemes : said.error().message;
}

std::string kinds(const Phonemized& said) {
  std::string out;
  for (const PhonemizedWord& word : said.words) out += std::string(out.empty() ? "" : " ") + word_kind_name(word.kind);
  return out;
}

TEST(EnglishG2p, WordsAndPunctuation) {
  EXPECT_EQ(say("Hello world, this is \"not\" (her)."), "həlˈO wˈɜɹld, ðɪs ɪz “nˌɑt” (hɜɹ).");
  EXPECT_EQ(say("He was not an ill-disposed young man."), "hˌi wʌz nˌɑt ɐn ˌɪldəspˈOzd jˈʌŋ mˈæn.");
}

TEST(EnglishG2p, TheNextSoundDecides) {
  EXPECT_EQ(say("the apple"), "ði ˈæpᵊl");
  EXPECT_EQ(say("the cat"), "ðə kˈæt");
  EXPECT_EQ(say("to apple"), "tʊ ˈæpᵊl");
  EXPECT_EQ(say("to run"), "tə ɹˈʌn");
  EXPECT_EQ(say("to"), "tˈu");
  EXPECT_EQ(say("to, run"), "tˈu, ɹˈʌn");
  EXPECT_EQ(say("in apple"), "ɪn ˈæpᵊl");
  EXPECT_EQ(say("run in."), "ɹˈʌn ˈɪn.");
  EXPECT_EQ(say("be cat"), "bi kˈæt");
  EXPECT_EQ(say("to be."), "tə bˈi.");
  EXPECT_EQ(say("I am not"), "ˌI ɐm nˌɑt");
  EXPECT_EQ(say("I am."), "ˌI ˈæm.");
  EXPECT_EQ(say("the “apple”"), "ði “ˈæpᵊl”");
}

TEST(EnglishG2p, SmallWords) {
  EXPECT_EQ(say("a cat and an apple"), "ɐ kˈæt ænd ɐn ˈæpᵊl");
  EXPECT_EQ(say("used to run"), "jˈust tə ɹˈʌn");
  EXPECT_EQ(say("cat used"), "kˈæt jˈuzd");
}

TEST(EnglishG2p, Homographs) {
  EXPECT_EQ(say("to read"), "tə ɹˈid");
  EXPECT_EQ(say("he was read"), "hˌi wʌz ɹˈɛd");
  EXPECT_EQ(say("the use"), "ðə jˈus");
  EXPECT_EQ(say("that cat"), "ðˈæt kˈæt");
  EXPECT_EQ(say("that he"), "ðæt hˌi");
}

TEST(EnglishG2p, Endings) {
  EXPECT_EQ(say("cats dogs foxes churches cities"), "kˈæts dˈɔɡz fˈɑksᵻz ʧˈɜɹʧᵻz sˈɪTiz");
  EXPECT_EQ(say("the cat's boys' dog's"), "ðə kˈæts bˈYz dˈɔɡz");
  EXPECT_EQ(say("hoped waited needed wanted"), "hˈOpt wˈATᵻd nˈidᵻd wˈɑntᵻd");
  EXPECT_EQ(say("making stopping panicking writing waiting"), "mˈAkɪŋ stˈɑpɪŋ pˈænɪkɪŋ ɹˈITɪŋ wˈATɪŋ");
  const auto said = tiny()->phonemize("cats hello NATO bzz!");
  ASSERT_TRUE(said);
  EXPECT_EQ(kinds(*said).substr(0, 15), "suffix lexicon ");
}

TEST(EnglishG2p, CapitalsAndSpelling) {
  EXPECT_EQ(say("HELLO"), "həlˈO");
  EXPECT_EQ(say("the FBI"), "ði ˌɛfbˌiˈI");
  EXPECT_EQ(say("NUT"), "ˌɛnjˌutˈi");
  EXPECT_EQ(say("the U.S. man"), "ðə jˌuˈɛs mˈæn");
  EXPECT_EQ(say("Apples"), "ˈæpᵊlz");
  EXPECT_EQ(say("he is V"), "hˌi ɪz vˈi");
  EXPECT_EQ(say("quokka Quokkas"), "kwˈɑkə kwˈɑkəz");
}

TEST(EnglishG2p, NumbersAndEscapes) {
  EXPECT_EQ(say("2.5"), "tˈu pYnt fˈIv");
  EXPECT_EQ(say("$1"), "wˈʌn dˈɑləɹ");
  EXPECT_EQ(say("the [apple](/zˈuɾ/) is [not](2)."), "ðə zˈuT ɪz nˈɑt.");
  const auto said = tiny()->phonemize("[x](/y/) 2 cats");
  ASSERT_TRUE(said);
  EXPECT_EQ(kinds(*said), "escape number suffix");
}

TEST(EnglishG2p, British) { EXPECT_EQ(say("foxes needed", true), "fˈɑksɪz nˈidɪd"); }

TEST(EnglishG2p, WordsPointIntoSourceAndPhonemes) {
  const std::string text = "Hello, $2 cats!";
  const auto said = tiny()->phonemize(text, 100);
  ASSERT_TRUE(said);
  std::vector<std::string> pairs;
  for (const PhonemizedWord& word : said->words) {
    pairs.push_back(text.substr(word.source.begin - 100, word.source.size()) + "=" +
                    said->phonemes.substr(word.phonemes.begin, word.phonemes.size()));
  }
  EXPECT_EQ(pairs, (std::vector<std::string>{"Hello=həlˈO", ",=,", "$2=tˈu", "$2=dˈɑləɹz", "cats=kˈæts", "!=!"}));
  EXPECT_EQ(said->id_count(), text::count_code_points(said->phonemes));
}

TEST(EnglishG2p, NothingToSayIsNotAnError) {
  for (const char* text : {"", "  ", "😀", "...", "日本"}) {
    const auto said = tiny()->phonemize(text);
    ASSERT_TRUE(said) << text;
    EXPECT_FALSE(said->speaks()) << text;
  }
  EXPECT_EQ(tiny()->phonemize("日本 cat 😀")->dropped, 3u);
  EXPECT_FALSE(tiny()->phonemize("\xFF"));
  EXPECT_FALSE(tiny()->phonemize(std::string((size_t{1} << 20) + 1, 'a')));
}

// "word=rule" or, where another rule decided the sound, "word=rule/sound".
std::string read(std::string_view text, const EnglishG2p& g2p) {
  std::vector<ReadWord> words;
  const auto said = g2p.phonemize(text, 10, &words);
  if (!said) return said.error().message;
  EXPECT_EQ(said->phonemes, g2p.phonemize(text)->phonemes);
  std::string all;
  size_t place = 0;
  for (const ReadWord& word : words) {
    while (place < said->words.size() && said->words[place].kind == WordKind::kPunctuation) ++place;
    EXPECT_EQ(word.phonemes.begin, said->words[place].phonemes.begin);
    EXPECT_EQ(word.source.begin, said->words[place++].source.begin);
    EXPECT_GE(word.source.begin, 10u);
    all += (all.empty() ? "" : ", ") + word.word + "=" + std::string(word.rule);
    if (word.sound != word.rule) all += "/" + std::string(word.sound);
  }
  return all;
}

TEST(EnglishG2p, WordsTellTheRuleThatDecided) {
  const auto g2p = tiny();
  EXPECT_EQ(read("The cat, quokkas and cats!", *g2p),
            "the=function-word, cat=lexicon, quokkas=lexicon-stem, and=lexicon, cats=lexicon-stem");
  EXPECT_EQ(read("zebra", *g2p), "zebra=lexicon-silver");
  EXPECT_EQ(read("to use it", *g2p), "to=function-word, use=homograph, I T=spelled");
  EXPECT_EQ(read("dog-wind", *g2p), "dog wind=compound");
  EXPECT_EQ(read("to be.", *g2p), "to=function-word, be=heteronym-end");
  EXPECT_EQ(read("the wind is", *g2p), "the=function-word, wind=homograph, is=lexicon");
  EXPECT_EQ(read("that cat", *g2p), "that=heteronym-tag, cat=lexicon");
  EXPECT_EQ(read("winds", *g2p), "winds=heteronym-stem");
  EXPECT_EQ(read("[Cats](/kˈæts/) run", *g2p), "cats=phonemes, run=lexicon");
  EXPECT_EQ(read("$2", *g2p), "two=money/lexicon, dollars=money/lexicon-stem");
}

TEST(EnglishG2p, SpelledLettersAreReadAsCapitals) {
  const auto g2p = tiny();
  EXPECT_EQ(read("U.S. is", *g2p), "U S=initialism/spelled, is=lexicon");
  EXPECT_EQ(read("TV's TVs", *g2p), "T V's=spelled-stem, T Vs=spelled-stem");
  EXPECT_EQ(read("sat-TV cat-dog", *g2p), "S A T T V=compound, cat dog=compound");
  EXPECT_EQ(read("b a", *g2p), "B=spelled, a=function-word");
  EXPECT_EQ(read("CatDog 'cat'", *g2p), "catdog=compound, cat=lexicon");
}

TEST(EnglishG2p, ServesManyThreads) {
  const auto g2p = tiny();
  const std::string expected = g2p->phonemize("Hello world, the apple.")->phonemes;
  std::vector<std::thread> threads;
  std::vector<int> wrong(4, 0);
  for (size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) wrong[t] += g2p->phonemize("Hello world, the apple.")->phonemes != expected;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

TEST(UserDictionary, OverridesTheLexicon) {
  const TempFolder folder;
  write_text(folder.file("mine.txt"),
             "# mine\ncat\t/mjˈW/\nSyrinx hello world  # respelled\nC++ /sˈiplˈʌs/\nk8s the cat\n");
  const auto g2p = tiny(false, folder.file("mine.txt"));
  ASSERT_TRUE(g2p);
  EXPECT_EQ(g2p->phonemize("the cat's Cat")->phonemes, "ðə mjˈWz mjˈW");
  EXPECT_EQ(g2p->phonemize("Syrinx!")->phonemes, "həlˈO wˈɜɹld!");
  EXPECT_EQ(g2p->phonemize("C++, k8s.")->phonemes, "sˈiplˈʌs, ðə kˈæt.");
  EXPECT_EQ(kinds(*g2p->phonemize("C++ dog")), "user lexicon");
  EXPECT_EQ(read("C++ cats", *g2p), "c++=dictionary, cats=lexicon-stem");
}

TEST(UserDictionary, NamesTheLineThatIsWrong) {
  for (const char* wrong : {"a /b/\nlonely\n", "a /b/\nc /d\n", "a /b/\nc //\n"}) {
    const auto parsed = UserDictionary::parse(wrong, "my.txt");
    ASSERT_FALSE(parsed) << wrong;
    EXPECT_EQ(parsed.error().code, Code::kInvalidArgument);
    EXPECT_NE(parsed.error().message.find("'my.txt', line 2"), std::string::npos) << parsed.error().message;
  }
  EXPECT_FALSE(UserDictionary::parse(std::string(65, 'a') + " /b/", "x"));
  EXPECT_FALSE(UserDictionary::parse("a \xFF", "x"));
  EXPECT_FALSE(UserDictionary::parse(std::string(UserDictionary::kMaxBytes + 1, '#'), "x"));
  EXPECT_FALSE(UserDictionary::load("/no/such/dictionary"));
  const auto empty = UserDictionary::parse("\xEF\xBB\xBF# only a comment\r\n\n", "x");
  ASSERT_TRUE(empty);
  EXPECT_TRUE(empty->empty());
}

TEST(EnglishG2p, MissingFilesAreNamed) {
  G2pFiles files;
  files.gold = "/no/gold.json";
  const auto none = EnglishG2p::load(files);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Code::kNotFound);
  EXPECT_NE(none.error().message.find("/no/gold.json"), std::string::npos);
  files.gold = tiny_gold();
  files.fallback = tiny_silver();  // no archive
  EXPECT_FALSE(EnglishG2p::load(files));
}

}  // namespace
}  // namespace syrinx::g2p
