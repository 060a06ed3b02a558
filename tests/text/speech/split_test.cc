#include "text/speech/split.h"

#include <gtest/gtest.h>

#include <random>

#include "text/speech/abbreviations.h"

namespace syrinx::text {
namespace {

std::vector<std::string> sentences(std::string_view text) {
  std::vector<std::string> out;
  for (const Range range : split_sentences(text)) out.emplace_back(text.substr(range.begin, range.size()));
  return out;
}

using Lines = std::vector<std::string>;

TEST(Split, PlainSentences) {
  EXPECT_EQ(sentences("One. Two! Three? Four… Five"), (Lines{"One.", "Two!", "Three?", "Four…", "Five"}));
  EXPECT_EQ(sentences("  \n "), Lines{});
  EXPECT_EQ(sentences(""), Lines{});
  EXPECT_EQ(sentences("No end"), Lines{"No end"});
  EXPECT_EQ(sentences("What?! Really... Yes"), (Lines{"What?!", "Really...", "Yes"}));
}

TEST(Split, AbbreviationsInitialsNumbersAndAddressesGoOn) {
  for (const char* whole :
       {"Dr. Smith met Mrs. Jones.", "It cost 3.50 dollars.", "J. R. R. Tolkien wrote it.",
        "See www.example.com. it said.", "Cats, dogs, etc. are pets.", "The U.S. Army came.",
        "See p. 12 and No. 5 of it.", "On Jan. 5 we left.", "It was 5 p.m. when he left.", "Use e.g. Paris as a name.",
        "1. Do this first.", "Wait... what is it?", "Brown vs. Board of it.", "They cite Roe v. Wade often.",
        "In Bell Inc. v. Watts it held.", "See Art. 5 of it.", "Under cl. 7 and para. 12 it may."}) {
    EXPECT_EQ(sentences(whole), Lines{whole});
  }
}

TEST(Split, AbbreviationsMayEndASentence) {
  EXPECT_EQ(sentences("He lives in the U.S. The rest is gone."), (Lines{"He lives in the U.S.", "The rest is gone."}));
  EXPECT_EQ(sentences("We sell tea etc. Come in."), (Lines{"We sell tea etc.", "Come in."}));
  EXPECT_EQ(sentences("He said no. Then he left."), (Lines{"He said no.", "Then he left."}));
  EXPECT_EQ(sentences("So do I. He knows."), (Lines{"So do I.", "He knows."}));
  EXPECT_EQ(sentences("The vector is v. Then we stop."), (Lines{"The vector is v.", "Then we stop."}));
  EXPECT_EQ(sentences("She studies art. 20 people came."), (Lines{"She studies art.", "20 people came."}));
}

TEST(Split, QuotesAndBracketsBelongToTheSentence) {
  EXPECT_EQ(sentences("“Go!” he said. “Now.” She went."), (Lines{"“Go!” he said.", "“Now.”", "She went."}));
  EXPECT_EQ(sentences("He left (at last.) She stayed."), (Lines{"He left (at last.)", "She stayed."}));
  EXPECT_EQ(sentences("\"Is it 'done?'\" she asked. Yes."), (Lines{"\"Is it 'done?'\" she asked.", "Yes."}));
}

TEST(Split, LineBreaks) {
  EXPECT_EQ(sentences("A title\n\nThe text"), (Lines{"A title", "The text"}));
  EXPECT_EQ(sentences("one\nTwo\nThree"), (Lines{"one", "Two", "Three"}));
  EXPECT_EQ(sentences("a line\nthat goes on"), (Lines{"a line\nthat goes on"}));
  const std::string wrapped = "This is a long line of text that was wrapped by somebody at\nAlice's house.";
  EXPECT_EQ(sentences(wrapped), Lines{wrapped});
  EXPECT_EQ(sentences("He met Dr.\nSmith today."), Lines{"He met Dr.\nSmith today."});
}

TEST(Split, MarksOfScriptsWithoutBlanksEndSentences) {
  EXPECT_EQ(sentences("你好。今天好吗？很好！再见"), (Lines{"你好。", "今天好吗？", "很好！", "再见"}));
  EXPECT_EQ(sentences("「はい。」と言った。次の日！？晴れ｡"), (Lines{"「はい。」と言った。", "次の日！？", "晴れ｡"}));
  EXPECT_EQ(sentences("（你好。）“再见。”\nOK。Fine."), (Lines{"（你好。）", "“再见。”", "OK。", "Fine."}));
  EXPECT_EQ(sentences("天……。地!？人…！so"), (Lines{"天……。", "地!？", "人…！", "so"}));
  EXPECT_EQ(sentences("版本是３．５，很好。"), Lines{"版本是３．５，很好。"});
}

TEST(Split, EscapesAreNotCut) {
  const std::string text = "Say [a. B](/x. Y! Z/) now. Then [b](-1) stop.";
  EXPECT_EQ(sentences(text), (Lines{"Say [a. B](/x. Y! Z/) now.", "Then [b](-1) stop."}));
}

TEST(Split, ClausesCoverTheSentence) {
  const std::string sentence = "When it rains, we stay in (at home); otherwise: [a, b](/x, y/) 1,000 walks — or runs.";
  std::string joined;
  Lines clauses;
  for (const Range range : split_clauses(sentence)) {
    clauses.emplace_back(sentence.substr(range.begin, range.size()));
    joined += clauses.back();
  }
  EXPECT_EQ(joined, sentence);
  EXPECT_EQ(clauses, (Lines{"When it rains,", " we stay in (at home);", " otherwise:", " [a, b](/x, y/) 1,000 walks —",
                            " or runs."}));
  EXPECT_TRUE(split_clauses("").empty());
  const std::string wide = "今天，我们（一起、）去；好。再见";
  clauses.clear();
  for (const Range range : split_clauses(wide)) clauses.emplace_back(wide.substr(range.begin, range.size()));
  EXPECT_EQ(clauses, (Lines{"今天，", "我们（一起、）", "去；", "好。", "再见"}));
}

const char* const kStory =
    "“Dr. Smith,” she said, “it's 3.50!” He paid... and left. See www.example.com/a.b for more etc. The U.S. The end\n"
    "A heading\n\nIn 1999 (or so.) J. R. R. T. wrote [x. Y](/a. B/) it. Café “naïve”. Was it no. 5? No. I. Yes\nand "
    "on. 「はい。」と言った。次の日！？“再见。”（好。）\n OK。Fine. 天…。地!？」so. ";

Lines stream(const std::string& text, const std::vector<size_t>& cuts) {
  SentenceStream stream;
  Lines out;
  size_t begin = 0;
  const auto drain = [&] {
    while (auto sentence = stream.next()) {
      EXPECT_EQ(text.substr(stream.sentence_offset(), sentence->size()), *sentence);
      out.push_back(std::move(*sentence));
    }
  };
  for (const size_t cut : cuts) {
    EXPECT_TRUE(stream.feed(std::string_view(text).substr(begin, cut - begin)));
    begin = cut;
    drain();
  }
  EXPECT_TRUE(stream.feed(std::string_view(text).substr(begin)));
  EXPECT_TRUE(stream.finish());
  drain();
  return out;
}

TEST(SentenceStream, EqualsTheWholeHoweverItIsCut) {
  const std::string text = std::string(kStory) + kStory + kStory;
  const Lines whole = sentences(text);
  EXPECT_GT(whole.size(), 15u);
  EXPECT_EQ(stream(text, {}), whole);
  std::vector<size_t> every;
  for (size_t i = 1; i < text.size(); ++i) every.push_back(i);
  EXPECT_EQ(stream(text, every), whole);
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<size_t> cuts;
    for (size_t at = random() % 40; at < text.size(); at += 1 + random() % 60) cuts.push_back(at);
    EXPECT_EQ(stream(text, cuts), whole);
  }
}

// However long the run of marks, blanks or quotation marks is, a text that comes in pieces is looked at from near by.
TEST(SentenceStream, LooksForNoEndFarAhead) {
  const std::string blanks(300, ' '), quotes(300, '"');
  for (const std::string& text : {"One." + blanks, "One." + blanks + "two", "One\n" + blanks, "One. " + quotes}) {
    SentenceStream stream;
    ASSERT_TRUE(stream.feed(text));
    const auto first = stream.next();
    ASSERT_TRUE(first) << text;
    EXPECT_EQ(first->substr(0, 3), "One");
    EXPECT_LE(first->size(), 4u);
  }
}

TEST(SentenceStream, LongRunsEqualTheWholeHoweverTheyAreCut) {
  for (const std::string unit : {".", "!", " ", "\n ", "\"", ")", "A", "! ", ".)", "U.S. "})
    for (const char* const begin : {"One", "One. ", "One! ", "Mr.", "U.S. ", "One\n", "etc. "})
      for (const char* const end : {"", " two.", " Two.", "\n\nTwo"}) {
        std::string text = begin;
        while (text.size() < 700) text += unit;
        text += end;
        for (const size_t step : {size_t{1}, size_t{7}, size_t{300}}) {
          Lines streamed;
          SentenceStream stream;
          for (size_t i = 0; i < text.size(); i += step) {
            ASSERT_TRUE(stream.feed(std::string_view(text).substr(i, step)));
            while (const auto sentence = stream.next()) streamed.push_back(*sentence);
          }
          ASSERT_TRUE(stream.finish());
          while (const auto sentence = stream.next()) streamed.push_back(*sentence);
          EXPECT_EQ(streamed, sentences(text)) << begin << " " << unit << " " << end << " " << step;
        }
      }
}

TEST(SentenceStream, SentencesBeginAsWasCertain) {
  const std::string text = std::string(kStory) + kStory;
  SentenceStream stream;
  std::string begun;
  size_t offset = 0, longest = 0;
  const auto drain = [&] {
    while (const auto sentence = stream.next()) {
      EXPECT_EQ(stream.sentence_offset(), begun.empty() ? stream.sentence_offset() : offset);
      EXPECT_TRUE((*sentence + "\n\n ").starts_with(begun)) << *sentence << " / " << begun;
      longest = std::max(longest, begun.size());
      begun.clear();
    }
  };
  for (size_t i = 0; i < text.size(); ++i) {
    ASSERT_TRUE(stream.feed(std::string_view(text).substr(i, 1)));
    drain();
    EXPECT_TRUE(stream.begun().starts_with(begun)) << stream.begun() << " / " << begun;
    begun = stream.begun();
    offset = stream.begun_offset();
  }
  ASSERT_TRUE(stream.finish());
  drain();
  EXPECT_TRUE(stream.begun().empty());
  EXPECT_GT(longest, 30u);
}

TEST(SentenceStream, GivesASentenceAsSoonAsItIsCertain) {
  SentenceStream stream;
  ASSERT_TRUE(stream.feed("Hello there. "));
  EXPECT_EQ(stream.next(), std::nullopt);  // "there." may still be followed by a small letter
  ASSERT_TRUE(stream.feed("N"));
  EXPECT_EQ(stream.next(), "Hello there.");
  ASSERT_TRUE(stream.feed("ext line.\n"));
  EXPECT_EQ(stream.next(), "Next line.");  // the line break settles it
  ASSERT_TRUE(stream.finish());
  EXPECT_EQ(stream.next(), std::nullopt);
}

// Text that a stream gives out at a pause behind `text`.
std::optional<std::string> at_pause(std::string_view text) {
  SentenceStream stream;
  EXPECT_TRUE(stream.feed(text));
  while (stream.next()) {
  }
  return stream.next_at_pause();
}

TEST(SentenceStream, PauseGivesOutCompleteSentences) {
  EXPECT_EQ(at_pause("Hello there."), "Hello there.");
  EXPECT_EQ(at_pause("Hello there. "), "Hello there.");
  EXPECT_EQ(at_pause("First. Then a second?  "), "Then a second?");
  EXPECT_EQ(at_pause("“Go now!” "), "“Go now!”");
  EXPECT_EQ(at_pause("(He left...)"), "(He left...)");
  EXPECT_EQ(at_pause("No. "), "No.");
  EXPECT_EQ(at_pause("It is I."), "It is I.");
  EXPECT_EQ(at_pause("We sell tea etc. "), "We sell tea etc.");
  EXPECT_EQ(at_pause("He lives in the U.S. "), "He lives in the U.S.");
  EXPECT_EQ(at_pause("It costs 3.50."), "It costs 3.50.");
  EXPECT_EQ(at_pause("a line without a point\n"), "a line without a point");
  EXPECT_EQ(at_pause("Plan B."), "Plan B.");
  EXPECT_EQ(at_pause("Hello. It is full of vitamin  C. "), "It is full of vitamin  C.");
  EXPECT_EQ(at_pause("It was J.\n"), "It was J.");  // a line that ends
  EXPECT_EQ(at_pause("你好。今天好吗？"), "今天好吗？");
}

TEST(SentenceStream, PauseKeepsIncompleteSentences) {
  for (const char* text : {"", "  ", "Hello there", "Hello there, ", "Dr. ", "He met Mrs.", "He met Dr.\n", "As e.g. ",
                           "As e.", "It was J. ", "Plan. B. ", "John F.", "plan b.", "1. ", "Hello. Th", "Hello. (",
                           "Say [a. B](/x. ", "Hello.\xE2\x80"})
    EXPECT_EQ(at_pause(text), std::nullopt) << text;
}

TEST(SentenceStream, GoesOnAfterAPause) {
  SentenceStream stream;
  ASSERT_TRUE(stream.feed("One is here. Two, "));
  EXPECT_EQ(stream.next(), "One is here.");
  EXPECT_EQ(stream.next_at_pause(), std::nullopt);
  ASSERT_TRUE(stream.feed("is here. "));
  EXPECT_EQ(stream.next(), std::nullopt);
  EXPECT_EQ(stream.next_at_pause(), "Two, is here.");
  EXPECT_EQ(stream.sentence_offset(), 13u);
  EXPECT_EQ(stream.next_at_pause(), std::nullopt);
  ASSERT_TRUE(stream.feed("and three. Four."));
  EXPECT_EQ(stream.next(), "and three.");
  EXPECT_EQ(stream.sentence_offset(), 27u);
  ASSERT_TRUE(stream.finish());
  EXPECT_EQ(stream.next(), "Four.");
  EXPECT_EQ(stream.next(), std::nullopt);
}

TEST(SentenceStream, PausesLoseNothing) {
  const std::string text = std::string(kStory) + kStory;
  std::mt19937 random(2);
  for (int round = 0; round < 100; ++round) {
    SentenceStream stream;
    std::string said;
    for (size_t at = 0; at < text.size();) {
      const size_t step = 1 + random() % 20;
      ASSERT_TRUE(stream.feed(std::string_view(text).substr(at, step)));
      at += step;
      while (const auto sentence = stream.next()) said += *sentence;
      if (const auto sentence = stream.next_at_pause()) said += *sentence;
    }
    ASSERT_TRUE(stream.finish());
    while (const auto sentence = stream.next()) said += *sentence;
    const auto spaces = [](std::string s) {
      std::erase_if(s, [](char c) { return c == ' ' || c == '\n'; });
      return s;
    };
    EXPECT_EQ(spaces(said), spaces(text));
  }
}

TEST(SentenceStream, RefusesInvalidUtf8) {
  SentenceStream stream;
  ASSERT_TRUE(stream.feed("ok \xC3"));
  ASSERT_TRUE(stream.feed("\xA9"));
  const Status wrong = stream.feed("x\xFF");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, Code::kInvalidArgument);
  EXPECT_NE(wrong.error().message.find("byte 6"), std::string::npos) << wrong.error().message;
  SentenceStream cut;
  ASSERT_TRUE(cut.feed("a\xE2\x82"));
  EXPECT_FALSE(cut.finish());
  EXPECT_FALSE(cut.feed("more"));
}

TEST(SentenceStream, BoundsItsMemory) {
  SentenceStream stream;
  const std::string part(100000, 'a');
  Status status;
  for (int i = 0; i < 12 && status; ++i) status = stream.feed(part);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kLimitExceeded);
}

TEST(Abbreviations, AreSortedAndFoundInAnyCase) {
  for (const char* known : {"a.k.a", "Dr", "E.G", "etc", "mr", "wed", "VS", "ph.d", "no"}) {
    EXPECT_NE(find_abbreviation(known), nullptr) << known;
  }
  EXPECT_EQ(find_abbreviation("word"), nullptr);
  EXPECT_EQ(find_abbreviation(""), nullptr);
  EXPECT_TRUE(is_initialism("U.S"));
  EXPECT_TRUE(is_initialism("U.S."));
  EXPECT_FALSE(is_initialism("US"));
  EXPECT_FALSE(is_initialism("U.Se"));
}

}  // namespace
}  // namespace syrinx::text
