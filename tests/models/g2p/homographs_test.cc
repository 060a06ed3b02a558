#include "models/g2p/homographs.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "models/g2p/homograph_rules.h"
#include "models/g2p/homograph_weights.h"

namespace syrinx::g2p {
namespace {

struct Found {
  std::vector<text::Token> tokens;
  size_t i = 0;
  std::string_view part;  // of tokens[i].text
};

// The word in [brackets].
Found find(std::string sentence) {
  const size_t begin = sentence.find('[');
  const size_t bytes = sentence.find(']') - begin - 1;
  sentence.erase(begin + 1 + bytes, 1).erase(begin, 1);
  Found found;
  const auto normalized = text::normalize(sentence);
  EXPECT_TRUE(normalized) << sentence;
  if (!normalized) return found;
  found.tokens = normalized->tokens;
  while (found.i + 1 < found.tokens.size() && found.tokens[found.i].source.end <= begin) ++found.i;
  const text::Token& token = found.tokens[found.i];
  EXPECT_LE(begin + bytes, token.source.begin + token.text.size()) << sentence;
  found.part = std::string_view(token.text).substr(begin - token.source.begin, bytes);
  return found;
}

std::string reading(const std::string& sentence) {
  const Found found = find(sentence);
  const HomographReading* const chosen = Homographs::builtin().choose(found.tokens, found.i, found.part);
  return chosen == nullptr ? "" : chosen->name;
}

TEST(Homographs, ScoresAreThoseOfTheTrainer) {
  std::ifstream file(SYRINX_TEST_DATA "/g2p/homographs.tsv");
  ASSERT_TRUE(file);
  std::string line;
  std::getline(file, line);
  size_t sentences = 0;
  for (; std::getline(file, line); ++sentences) {
    std::istringstream fields(line);
    std::string name, scores, sentence;
    std::getline(fields, name, '\t');
    std::getline(fields, scores, '\t');
    std::getline(fields, sentence, '\t');
    EXPECT_EQ(reading(sentence), name) << sentence;
    const Found found = find(sentence);
    if (found.part.size() != found.tokens[found.i].text.size()) continue;  // scores() takes whole words
    std::string ours;
    for (const int32_t score : Homographs::builtin().scores(found.tokens, found.i))
      ours += (ours.empty() ? "" : " ") + std::to_string(score);
    EXPECT_EQ(ours, scores) << sentence;
  }
  EXPECT_GT(sentences, 80u);
}

TEST(Homographs, CommandsAreVerbs) {
  EXPECT_EQ(reading("[Use] a spoon."), "use_vrb");
  EXPECT_EQ(reading("[Record] the meeting."), "record_vrb");
  EXPECT_EQ(reading("[Present] your findings on Monday."), "present_vrb");
  EXPECT_EQ(reading("[Separate] the eggs."), "separate_vrb");
  EXPECT_EQ(reading("[Excuse] me."), "excuse_vrb");
  EXPECT_EQ(reading("[Use] of force is a crime."), "use_nou");
  EXPECT_EQ(reading("[Record] sales surprised the company."), "record_nou");
}

TEST(Homographs, TenseDecidesRead) {
  EXPECT_EQ(reading("She [read] the letter yesterday."), "read_past");
  EXPECT_EQ(reading("I have [read] that book."), "read_past");
  EXPECT_EQ(reading("The book was [read] by millions."), "read_past");
  EXPECT_EQ(reading("I like to [read] in bed."), "read_present");
  EXPECT_EQ(reading("Please [read] the instructions."), "read_present");
  EXPECT_EQ(reading("Did you [read] it?"), "read_present");
}

TEST(Homographs, NeighboursDecideTheSense) {
  EXPECT_EQ(reading("The old [lead] pipe must be replaced."), "lead_nou");
  EXPECT_EQ(reading("She will [lead] the team."), "lead_nou-vrb");
  EXPECT_EQ(reading("He plays the [bass] guitar."), "bass");
  EXPECT_EQ(reading("They caught a large [bass] in the lake."), "bass_corp");
  EXPECT_EQ(reading("That was a [close] call."), "close_adj-nou");
  EXPECT_EQ(reading("[Close] the door."), "close_vrb");
  EXPECT_EQ(reading("Look at the [minute] details."), "minute_adj");
  EXPECT_EQ(reading("Wait a [minute]."), "minute");
  EXPECT_EQ(reading("The actor took a [bow]."), "bow_nou-ship");
  EXPECT_EQ(reading("She shot an arrow from her [bow]."), "bow_nou-knot");
  EXPECT_EQ(reading("I sent my [resume] to the company."), "resume_nou");
  EXPECT_EQ(reading("We will [resume] after lunch."), "resume_vrb");
}

TEST(Homographs, PartsBetweenHyphensCount) {
  EXPECT_EQ(reading("It was a last-[minute] change."), "minute");
  EXPECT_EQ(reading("The [lead]-lined box is heavy."), "lead_nou");
  EXPECT_EQ(reading("It is a [present]-day city."), "present_adj-nou");
  EXPECT_EQ(reading("She will '[record]' the meeting."), "record_vrb");
}

TEST(Homographs, OtherWordsHaveNoReadings) {
  EXPECT_EQ(reading("The [cat] sat."), "");
  EXPECT_EQ(reading("The [records] are old."), "");
  EXPECT_EQ(reading("A Mc[Read] book."), "");
}

std::string ruled(const std::string& sentence) {
  const Found found = find(sentence);
  return std::string(reading_by_rule(found.tokens, found.i));
}

TEST(HomographRules, AuxiliaryDecidesRead) {
  EXPECT_EQ(ruled("They haven't even [read] it."), "read_past");
  EXPECT_EQ(ruled("Had she ever [read] it?"), "read_past");
  EXPECT_EQ(ruled("It was never [read] aloud."), "read_past");
  EXPECT_EQ(ruled("They have [read] access."), "read_present");
  EXPECT_EQ(ruled("You have to [read] it."), "");
  EXPECT_EQ(ruled("I'll have you [read] it."), "read_present");
  EXPECT_EQ(ruled("I have. [Read] it."), "");
  EXPECT_EQ(ruled("He will [read] it tonight."), "read_present");
  EXPECT_EQ(ruled("She doesn't always [read] it."), "read_present");
  EXPECT_EQ(ruled("Did they [read] it?"), "read_present");
  EXPECT_EQ(ruled("They'll [read] it."), "read_present");
  EXPECT_EQ(ruled("Why didn't she [read] it?"), "read_present");
  EXPECT_EQ(ruled("Will you [read] it?"), "read_present");
  EXPECT_EQ(ruled("The will [read] as follows."), "");
  EXPECT_EQ(ruled("Grandma's will [read] as follows."), "");
  EXPECT_EQ(ruled("Aunt May [read] to us."), "");
  EXPECT_EQ(ruled("Then Will [read] it out."), "");
  EXPECT_EQ(ruled("The beer can [read] stout."), "");
  EXPECT_EQ(ruled("You should have [read] it."), "read_past");
}

TEST(HomographRules, PlacesNeedANeighbour) {
  EXPECT_EQ(ruled("[Reading] is fun."), "reading_en");
  EXPECT_EQ(ruled("[Reading] is a town in Berkshire."), "reading_geo");
  EXPECT_EQ(ruled("We like [Reading]."), "");
}

TEST(HomographRules, NeighboursDecideSenses) {
  EXPECT_EQ(ruled("She is quite [content] with it."), "content_adj-nou-vrb");
  EXPECT_EQ(ruled("She is a [content] writer."), "");
  EXPECT_EQ(ruled("a [lead] pencil"), "lead_nou");
  EXPECT_EQ(ruled("We ate [bass] for dinner."), "bass_corp");
  EXPECT_EQ(ruled("He plays [bass] at dinner."), "");
}

TEST(Homographs, DamagedFilesAreRefused) {
  const std::string whole(reinterpret_cast<const char*>(homograph_weights), homograph_weights_bytes);
  EXPECT_TRUE(Homographs::parse(whole, "x"));
  const size_t tables = whole.find("\n\n") + 2;
  std::string text = whole.substr(0, tables);
  for (const std::string& damaged :
       {std::string(), std::string("syrinx homographs 2 1 1\n\n\n"), std::string("syrinx homographs 1 x 1\nn\n\n"),
        text, text.substr(0, text.size() - 1), whole.substr(0, whole.size() - 1), whole + "x",
        std::string("syrinx homographs 1 0 0\nn\nword\treading\tkey\n\n"),
        std::string("syrinx homographs 1 1 0\nn\n\n\x01\x01", 29),
        std::string("syrinx homographs 1 1 0\nn\n\n\xFF\xFF\xFF\xFF\x7F", 32)}) {
    const auto parsed = Homographs::parse(damaged, "x.bin");
    ASSERT_FALSE(parsed) << damaged.substr(0, 60);
    EXPECT_EQ(parsed.error().code, Code::kDataLoss);
    EXPECT_NE(parsed.error().message.find("x.bin"), std::string::npos);
  }
  EXPECT_FALSE(Homographs::parse("syrinx homographs 1 18446744073709551615 1\nn\n\n", "x"));
}

}  // namespace
}  // namespace syrinx::g2p
