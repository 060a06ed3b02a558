#include "models/kokoro/pieces.h"

#include <gtest/gtest.h>

#include <random>

namespace syrinx::kokoro {
namespace {

using g2p::Phonemized;
using g2p::WordKind;

// Words and marks as the front end gives them: marks close up to the word before.
Phonemized said(const std::string& text) {
  Phonemized out;
  out.phonemes = text;
  const auto mark = [](char c) { return std::string_view(",.;:!?()").find(c) != std::string_view::npos; };
  for (size_t i = 0; i < text.size();) {
    if (text[i] == ' ') {
      ++i;
      continue;
    }
    size_t end = i + 1;
    while (!mark(text[i]) && end < text.size() && text[end] != ' ' && !mark(text[end])) ++end;
    out.words.push_back({{i, end}, {i, end}, mark(text[i]) ? WordKind::kPunctuation : WordKind::kLexicon});
    i = end;
  }
  return out;
}

std::vector<std::string> phonemes(const std::vector<Phonemized>& pieces) {
  std::vector<std::string> out;
  for (const Phonemized& piece : pieces) {
    for (const g2p::PhonemizedWord& word : piece.words) {
      EXPECT_LE(word.phonemes.end, piece.phonemes.size());
      EXPECT_LT(word.phonemes.begin, word.phonemes.end);
    }
    out.push_back(piece.phonemes);
  }
  return out;
}

using Lines = std::vector<std::string>;

TEST(SplitForModel, CutsAtTheStrongestPauseThatFits) {
  EXPECT_EQ(phonemes(split_for_model(said("aaa. bbb, ccc: ddd"), 12)), (Lines{"aaa.", "bbb, ccc:", "ddd"}));
  EXPECT_EQ(phonemes(split_for_model(said("aaa, bbb: ccc, ddd"), 16)), (Lines{"aaa, bbb:", "ccc, ddd"}));
  EXPECT_EQ(phonemes(split_for_model(said("aaa, bbb ccc"), 9)), (Lines{"aaa,", "bbb ccc"}));
  EXPECT_EQ(phonemes(split_for_model(said("(aaa.) bbb ccc"), 10)), (Lines{"(aaa.)", "bbb ccc"}));
  EXPECT_EQ(phonemes(split_for_model(said("aaa bbb ccc"), 8)), (Lines{"aaa bbb", "ccc"}));
  EXPECT_EQ(phonemes(split_for_model(said("a a a a a a a a"), 13)), (Lines{"a a a a a", "a a a"}));
  EXPECT_EQ(phonemes(split_for_model(said("aaaaaaaaaa b"), 4)), (Lines{"aaaa", "aaaa", "aa", "b"}));
  EXPECT_EQ(phonemes(split_for_model(said("short"), 510)), Lines{"short"});
  EXPECT_TRUE(split_for_model(Phonemized{}, 510).empty());
}

TEST(SplitForModel, NeverExceedsTheLimitAndLosesNothing) {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    std::string text;
    const size_t words = 1 + random() % 60;
    for (size_t w = 0; w < words; ++w) {
      if (w > 0) text += ' ';
      text += std::string(1 + random() % 12, static_cast<char>('a' + random() % 26));
      if (random() % 4 == 0) text += ",.;:!?"[random() % 6];
    }
    const size_t limit = 3 + random() % 40;
    std::string joined;
    for (const Phonemized& piece : split_for_model(said(text), limit)) {
      EXPECT_LE(piece.id_count(), limit);
      EXPECT_FALSE(piece.phonemes.empty());
      joined += piece.phonemes;
    }
    std::erase(joined, ' ');
    std::erase(text, ' ');
    EXPECT_EQ(joined, text);
  }
}

const char* const kFirst = "when the rain began, we went inside, and nobody said anything for a while.";
const char* const kSecond = "then it stopped raining.";

TEST(PlanPieces, TheFirstPieceIsShort) {
  const auto pieces = phonemes(plan_pieces({said(kFirst), said(kSecond)}));
  ASSERT_GE(pieces.size(), 2u);
  EXPECT_EQ(pieces[0], "when the rain began, we went inside,");
  EXPECT_EQ(pieces[1], "and nobody said anything for a while.");
}

TEST(PlanPieces, TheFirstPieceIsShortBehindAVeryShortSentence) {
  const std::string lengthy = "this voice was made on your very own little machine, and nothing leaves the room.";
  const auto pieces = phonemes(plan_pieces({said("hello."), said(lengthy)}));
  ASSERT_EQ(pieces.size(), 2u);
  EXPECT_EQ(pieces[0], "hello. this voice was made on your very own little machine,");  // the first end, though late
  EXPECT_EQ(pieces[1], "and nothing leaves the room.");
}

TEST(PlanPieces, AShortSentenceIsAPieceAndAVeryShortOneJoins) {
  EXPECT_EQ(phonemes(plan_pieces({said(kSecond), said(kSecond)})), (Lines{kSecond, kSecond}));
  EXPECT_EQ(phonemes(plan_pieces({said("no."), said(kSecond)})), Lines{std::string("no. ") + kSecond});
  EXPECT_EQ(phonemes(plan_pieces({said(kSecond), said("no.")})), Lines{std::string(kSecond) + " no."});
  EXPECT_EQ(phonemes(plan_pieces({said("no.")})), Lines{"no."});
}

TEST(PlanPieces, LaterSentencesArePacked) {
  const std::vector<Phonemized> sentences(40, said(kSecond));
  const auto pieces = plan_pieces(sentences);
  ASSERT_GT(pieces.size(), 4u);
  size_t total = 0;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const size_t ids = pieces[i].id_count();
    EXPECT_LE(ids, 200u);
    if (i >= 2 && i + 1 < pieces.size()) {
      EXPECT_GT(ids, 150u);
    }
    total += pieces[i].words.size();
  }
  EXPECT_EQ(total, 40 * sentences[0].words.size());
}

TEST(PlanPieces, APieceIsNotMuchLongerThanTheOneBefore) {
  std::string lengthy;
  for (int i = 0; i < 30; ++i) lengthy += "and nobody said anything, ";
  lengthy += "until now.";
  const auto pieces = plan_pieces({said(lengthy)});
  ASSERT_GE(pieces.size(), 3u);
  EXPECT_LE(pieces[0].id_count(), 40u);
  for (size_t i = 1; i < pieces.size(); ++i) EXPECT_LE(pieces[i].id_count(), 4 * pieces[i - 1].id_count());
}

// Other requests wait while a piece is computed.
TEST(PlanPieces, NoPieceIsLongHoweverSlowItIsSaid) {
  std::string endless = "word";
  for (int i = 0; i < 200; ++i) endless += " word";
  const std::vector<Phonemized> sentences(2, said(endless));
  const auto longest = [&](float speed) {
    size_t ids = 0, words = 0;
    for (const Phonemized& piece : plan_pieces(sentences, PiecePolicy::at_speed(speed))) {
      ids = std::max(ids, piece.id_count());
      EXPECT_GE(piece.words.size(), 2u) << "a word is alone at speed " << speed;
      words += piece.words.size();
    }
    EXPECT_EQ(words, 2 * sentences[0].words.size());
    return ids;
  };
  EXPECT_LE(longest(4.0f), 200u);
  EXPECT_LE(longest(1.0f), 200u);
  EXPECT_LE(longest(0.5f), 100u);
  EXPECT_LE(longest(0.25f), 50u);
}

// Nor is a short one alone because the next to it is as long as any.
TEST(PlanPieces, AShortBeginningOfALongSentenceIsNotAlone) {
  const auto words = [](int count) {
    std::string text = " so";
    for (int i = 1; i < count; ++i) text += " so";
    return text;
  };
  const std::string text = "He said:" + words(64) + "," + words(20) + ".";
  size_t shortest = text.size(), longest = 0;
  for (const Phonemized& piece : plan_pieces({said(text)}, {.first_ids = 200})) {
    shortest = std::min(shortest, piece.id_count());
    longest = std::max(longest, piece.id_count());
  }
  EXPECT_GE(shortest, PiecePolicy().shortest_ids);
  EXPECT_LE(longest, PiecePolicy().most_joined());
  EXPECT_EQ(PiecePolicy{.max_ids = 510}.most_joined(), 510u);  // the model takes no more
}

TEST(PlanPieces, ASentenceThatIsSaidInTenSecondsStaysWhole) {
  std::string lengthy;
  for (int i = 0; i < 60; ++i) lengthy += "so ";
  lengthy += "on.";
  EXPECT_EQ(phonemes(plan_pieces({said(lengthy)})), Lines{lengthy});
}

TEST(PlanPieces, SilentTextMakesNoPiece) {
  EXPECT_TRUE(plan_pieces({}).empty());
  EXPECT_TRUE(plan_pieces({said("...")}).empty());
  EXPECT_EQ(phonemes(plan_pieces({said("..."), said(kSecond)})), Lines{std::string("... ") + kSecond});
}

TEST(PiecePlanner, WaitsForMoreUnlessAskedNow) {
  PiecePlanner planner;
  EXPECT_EQ(planner.next(true), std::nullopt);
  planner.add(said("no."));
  EXPECT_EQ(planner.next(false), std::nullopt);
  planner.add(said(kFirst));
  EXPECT_EQ(planner.next(false)->phonemes, "no. when the rain began, we went inside,");
  EXPECT_EQ(planner.next(false)->phonemes, "and nobody said anything for a while.");
  planner.add(said(kSecond));
  EXPECT_EQ(planner.next(false), std::nullopt);  // from the third on pieces are packed
  EXPECT_EQ(planner.next(true)->phonemes, kSecond);
}

}  // namespace
}  // namespace syrinx::kokoro
