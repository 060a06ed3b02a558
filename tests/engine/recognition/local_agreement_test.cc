// The common beginning of two hypotheses is committed, once and in order; with hypotheses as Whisper base gives them
// while a sentence grows.
#include "engine/recognition/local_agreement.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "base/json.h"

namespace syrinx {
namespace {

using Words = std::vector<TranscriptWord>;

// Words 0.3 s apart from `begin_s`, each 0.25 s long.
Words heard(std::string_view text, double begin_s = 0) {
  Words words;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    words.push_back({.text = std::string(text.substr(at, end - at)), .start_s = begin_s, .end_s = begin_s + 0.25});
    begin_s += 0.3;
    at = end + 1;
  }
  return words;
}

std::string joined(const Words& words) {
  std::string text;
  for (const TranscriptWord& word : words) text += (text.empty() ? "" : " ") + word.text;
  return text;
}

std::string push(LocalAgreement& agreement, const Words& words, std::vector<double> segment_ends = {}) {
  return joined(agreement.push(words, segment_ends));
}

TEST(LocalAgreement, CommitsTheCommonBeginning) {
  LocalAgreement agreement;
  EXPECT_EQ(push(agreement, heard("He was")), "");
  EXPECT_EQ(push(agreement, heard("He was not and")), "He was");
  EXPECT_EQ(joined(agreement.unstable()), "not and");
  EXPECT_EQ(push(agreement, heard("He was not an ill")), "not");
  EXPECT_EQ(push(agreement, heard("he was, not an ill disposed young men.")), "an ill");
  EXPECT_EQ(push(agreement, heard("He was not an ill-disposed young man")), "");
  EXPECT_EQ(push(agreement, heard("He was not an ill disposed young man")), "");
  EXPECT_EQ(joined(agreement.unstable()), "disposed young man");
  EXPECT_EQ(joined(agreement.finish()), "disposed young man");
  EXPECT_TRUE(agreement.unstable().empty());
  EXPECT_TRUE(agreement.finish().empty());
}

double seconds(const Json& number) {
  return number.whole() == nullptr ? *number.real() : static_cast<double>(*number.whole());
}

// Hypotheses of faster-whisper every 0.7 s of a sentence that is read aloud (tools/reference/whisper_hypotheses.py):
// what two in a row begin with is committed at once, never changes, and is what the whole recording says in the end.
TEST(LocalAgreement, RecordedHypothesesGrowIntoTheWholeText) {
  std::ifstream file(SYRINX_TEST_DATA "/whisper/hypotheses.json");
  const auto json = parse_json(std::string(std::istreambuf_iterator<char>(file), {}), "hypotheses.json");
  ASSERT_TRUE(json) << json.error().message;
  struct Clip {
    LocalAgreement agreement;
    Words committed, last;
  };
  std::map<std::string, Clip> clips;
  for (const Json& step : *json->array()) {
    Clip& clip = clips[*step.find("clip")->string()];
    Words words;
    for (const Json& word : *step.find("words")->array()) {
      const Json::Array& fields = *word.array();
      words.push_back({.text = *fields[0].string(), .start_s = seconds(fields[1]), .end_s = seconds(fields[2])});
    }
    std::vector<double> ends;
    for (const Json& end : *step.find("ends")->array()) ends.push_back(seconds(end));
    for (const TranscriptWord& word : clip.agreement.push(words, ends)) clip.committed.push_back(word);
    // The common beginning of this and the last hypothesis is committed.
    size_t common = 0;
    while (common < std::min(words.size(), clip.last.size()) && same_word(words[common].text, clip.last[common].text))
      ++common;
    EXPECT_GE(clip.committed.size(), common) << joined(words);
    clip.last = words;
  }
  ASSERT_EQ(clips.size(), 3u);
  for (auto& [name, clip] : clips) {
    for (const TranscriptWord& word : clip.agreement.finish()) clip.committed.push_back(word);
    ASSERT_EQ(clip.committed.size(), clip.last.size()) << name << ": " << joined(clip.committed);
    for (size_t i = 0; i < clip.last.size(); ++i)
      EXPECT_TRUE(same_word(clip.committed[i].text, clip.last[i].text)) << i;
  }
}

TEST(LocalAgreement, ComparesWithoutCaseAndPunctuation) {
  EXPECT_TRUE(same_word("Hello,", "hello"));
  EXPECT_TRUE(same_word("\u00c9T\u00c9!", "\u00e9t\u00e9"));
  EXPECT_TRUE(same_word("it's", "its"));
  EXPECT_TRUE(same_word("...", "\u2014"));
  EXPECT_FALSE(same_word("hello", "hallo"));
  EXPECT_FALSE(same_word("5", "6"));
  EXPECT_FALSE(same_word("$5", "5"));
  LocalAgreement agreement;
  push(agreement, heard("well done"));
  EXPECT_EQ(push(agreement, heard("Well, done! he")), "Well, done!");  // as the newer one writes them
}

// "The quick brown." with little behind it, then "the quick brown fox".
TEST(LocalAgreement, TheFirstWordKeepsItsCapital) {
  LocalAgreement agreement;
  push(agreement, heard("The quick Brown."));
  EXPECT_EQ(push(agreement, heard("the quick brown fox")), "The quick brown") << "only the first";
  EXPECT_EQ(push(agreement, heard("the quick brown Fox jumps")), "Fox");
  LocalAgreement other;
  push(other, heard("she said"));
  EXPECT_EQ(push(other, heard("She said")), "She said");
  LocalAgreement late;  // the sound of what was committed has gone, its utterance goes on
  push(late, heard("And so"));
  EXPECT_EQ(push(late, heard("and so on")), "And so");
  late.trim(0.65);
  EXPECT_EQ(push(late, heard("on But then", 0.6)), "on");
  EXPECT_EQ(push(late, heard("on but then", 0.6)), "but then");

  std::string word = "\u201e\u00fcber";
  keep_capital(word, "\u00dcber,");
  EXPECT_EQ(word, "\u201e\u00dcber") << "marks are its own";
  for (const char* const that_is_other : {"uber", "\u00fcBER", "", "...", "\u00dfber", "Aber"}) {
    std::string same = "\u00fcber";
    keep_capital(same, that_is_other);
    EXPECT_EQ(same, "\u00fcber") << that_is_other;
  }
  std::string capital = "The", number = "5";
  keep_capital(capital, "the");
  keep_capital(number, "Five");
  EXPECT_EQ(capital + number, "The5");
}

TEST(LocalAgreement, TextThatChangesIsNotSaidTwice) {
  LocalAgreement agreement;
  push(agreement, heard("recognise speech with"));
  EXPECT_EQ(push(agreement, heard("recognise speech with it")), "recognise speech with");
  // The model now writes two words for one that is committed: its times tell what is new.
  Words other = heard("wreck a nice beach it", 0);
  for (size_t i = 0; i < 4; ++i)
    other[i] = {
        .text = other[i].text, .start_s = 0.2 * static_cast<double>(i), .end_s = 0.2 * static_cast<double>(i) + 0.2};
  other[4] = {.text = "it", .start_s = 0.92, .end_s = 1.1};
  EXPECT_EQ(push(agreement, other), "it");
  // The last committed word comes a little later than before, so its time does not tell; its text does.
  Words shifted = heard("wreck a nice beach it today");
  for (TranscriptWord& word : shifted) word.start_s = word.end_s = 0;
  shifted[4] = {.text = "It", .start_s = 1.05, .end_s = 1.2};
  shifted[5] = {.text = "today", .start_s = 1.3, .end_s = 1.5};
  EXPECT_EQ(push(agreement, shifted), "");
  EXPECT_EQ(joined(agreement.unstable()), "today");
}

TEST(LocalAgreement, WordsThatAreReallyRepeatedStay) {
  LocalAgreement agreement;
  push(agreement, heard("no no"));
  EXPECT_EQ(push(agreement, heard("no no no")), "no no");
  EXPECT_EQ(push(agreement, heard("no no no no yes")), "no");
  EXPECT_EQ(push(agreement, heard("no no no no yes")), "no yes");
}

TEST(LocalAgreement, AnEmptyHypothesisCommitsNothing) {
  LocalAgreement agreement;
  EXPECT_EQ(push(agreement, {}), "");
  push(agreement, heard("one two"));
  EXPECT_EQ(push(agreement, {}), "");
  EXPECT_EQ(push(agreement, heard("one two")), "");
  EXPECT_EQ(push(agreement, heard("one two")), "one two");
}

TEST(LocalAgreement, TheBufferIsCutAtTheEndOfACommittedSegment) {
  LocalAgreement agreement({.trim_after_s = 3, .max_buffer_s = 6, .prompt_characters = 20});
  const Words first = heard("One sentence ends here. Another one goes on");
  push(agreement, first, {1.2, 2.4});
  EXPECT_FALSE(agreement.trim_point(0, 4));  // nothing is committed yet
  EXPECT_EQ(push(agreement, first, {1.2, 2.4}), "One sentence ends here. Another one goes on");
  EXPECT_FALSE(agreement.trim_point(0, 2.9));
  EXPECT_EQ(agreement.trim_point(0, 3.1), 2.4);
  EXPECT_TRUE(agreement.trim(1.2).empty());
  EXPECT_EQ(agreement.prompt(), "sentence ends here.");  // 20 characters, whole words
  // Committed words are skipped in hypotheses of the shorter buffer.
  EXPECT_EQ(push(agreement, heard("Another one goes on and on", 1.2)), "");
  EXPECT_EQ(push(agreement, heard("Another one goes on and on", 1.2)), "and on");
  EXPECT_EQ(joined(agreement.trim(3.1)), "");
  EXPECT_EQ(agreement.prompt(), "one goes on and on");
}

TEST(LocalAgreement, ABufferWithoutSegmentsIsCutBeforeItOutgrowsTheWindow) {
  LocalAgreement agreement({.trim_after_s = 3, .max_buffer_s = 6});
  const Words words = heard("on and on");
  push(agreement, words);
  push(agreement, words);
  EXPECT_FALSE(agreement.trim_point(0, 5.9));
  EXPECT_EQ(agreement.trim_point(0, 6.1), words.back().end_s);
  // Nothing at all is agreed on: the newest seconds stay, and what goes is committed as it is.
  LocalAgreement none({.trim_after_s = 3, .max_buffer_s = 6});
  push(none, heard("a b c d e f g h i j k l m n o p q r s t"));
  EXPECT_EQ(none.trim_point(0, 6.1), 6.1 - 3);
  EXPECT_EQ(joined(none.trim(3.1)), "a b c d e f g h i j");
  EXPECT_EQ(joined(none.unstable()), "k l m n o p q r s t");
  EXPECT_EQ(none.prompt(), "a b c d e f g h i j");
}

TEST(LocalAgreement, ThePromptIsBoundedInCharactersNotBytes) {
  LocalAgreement agreement({.prompt_characters = 9});
  push(agreement, heard("\u00e9\u00e9\u00e9\u00e9 \u00e9\u00e9\u00e9\u00e9 waytoolongforit \u00e9\u00e9\u00e9\u00e9 "
                        "\u00e9\u00e9\u00e9\u00e9"));
  agreement.finish();
  agreement.trim(100);
  EXPECT_EQ(agreement.prompt(), "\u00e9\u00e9\u00e9\u00e9 \u00e9\u00e9\u00e9\u00e9");
}

// The beginning of the buffer is a whole sample, so a little before the end at which it was cut: that is no place to
// cut again.
TEST(LocalAgreement, ABufferIsNotCutWhereItBegins) {
  LocalAgreement agreement({.trim_after_s = 3, .max_buffer_s = 6});
  const Words words = heard("on and on");
  push(agreement, words, {0.85});
  push(agreement, words, {0.85});
  const double begin_s = 0.8499;
  agreement.trim(begin_s);
  EXPECT_FALSE(agreement.trim_point(begin_s, 5));
  EXPECT_EQ(agreement.trim_point(begin_s, 7), 7.0 - 3);
}

// Words that the model writes without a blank before them stay so.
TEST(LocalAgreement, ThePromptHasNoOtherBlanksThanTheText) {
  LocalAgreement agreement({.prompt_characters = 22});
  Words words = heard("a cold -hearted 3 .5 \u4f60 \u597d world");
  for (const size_t i : {2, 4, 6}) words[i].spaced = false;
  push(agreement, words);
  agreement.finish();
  agreement.trim(100);
  EXPECT_EQ(agreement.prompt(), "-hearted 3.5 \u4f60\u597d world");
}

}  // namespace
}  // namespace syrinx
