// Rules, alignment, words and windows beside openai-whisper's own (tools/reference/whisper_rules.py).
#include <cmath>

#include "models/whisper/align.h"
#include "models/whisper/long_form.h"
#include "models/whisper/rules.h"
#include "models/whisper/words.h"
#include "small.h"

namespace syrinx::whisper {
namespace {

using namespace test;

TEST(WhisperTokens, AreFoundByName) {
  const Tokens& tokens = small_tokens();
  EXPECT_EQ(tokens.end_of_text, 500);
  EXPECT_EQ(tokens.no_speech, 511);
  EXPECT_EQ(tokens.first_time, 513);
  EXPECT_TRUE(tokens.multilingual);
  ASSERT_EQ(tokens.languages.size(), 5u);
  ASSERT_NE(tokens.find_language("ja"), nullptr);
  EXPECT_EQ(tokens.find_language("ja")->token, 506);
  EXPECT_EQ(tokens.find_language("xx"), nullptr);
  EXPECT_EQ(tokens.prompt(tokens.find_language("de"), true, false), (std::vector<int32_t>{501, 504, 507, 512}));
  EXPECT_EQ(tokens.prompt(tokens.find_language("en"), false, true), (std::vector<int32_t>{501, 502, 508}));
  EXPECT_EQ(suppressed_tokens(small_bpe(), tokens), ids_of(list(small_reference(), "suppressed")[0]));
}

TEST(WhisperTokens, OthersAreRefused) {
  const auto error_of = [](const std::string& from, const std::string& to, size_t vocabulary) {
    std::string json = read_small("tokenizer.json");
    json.replace(json.find(from), from.size(), to);
    const auto bpe = text::read_bpe_json(json, "file");
    EXPECT_TRUE(bpe.has_value());
    const auto tokens = find_tokens(*bpe, vocabulary, "file");
    EXPECT_FALSE(tokens.has_value());
    return tokens ? std::string() : tokens.error().message;
  };
  EXPECT_EQ(error_of("<|startofprev|>", "<|startofnext|>", 2014),
            "'file' is not a vocabulary of Whisper: it has no token '<|startofprev|>'");
  EXPECT_EQ(error_of("<|fr|>", "<|fr|>", 2013),
            "the times of 'file' end with the token 2013, the model's table has 2013 rows");
  EXPECT_EQ(error_of("\"Ġ\": 220", "\"Ġ\": 500000", 2014),
            "'file' has a token 500000, the model's table has 2014 rows; take the file that belongs to it");
  EXPECT_EQ(error_of("<|fr|>", "french", 2014), "token 505 of 'file' is listed as a language and is not one");
  EXPECT_EQ(error_of("<|transcribe|>\", \"special\": true}, {\"id\": 509",
                     "<|startoflm|>\", \"special\": true}, {\"id\": 508", 2014)
                .find("'file' is not a vocabulary"),
            0u);
}

TEST(WhisperRules, AllowedTokensAreTheMakers) {
  const Tokens& tokens = small_tokens();
  const Rules timed = make_rules(small_bpe(), tokens, true), untimed = make_rules(small_bpe(), tokens, false);
  for (const Json& row : list(small_reference(), "masks")) {
    SCOPED_TRACE(row.find("seed")->dump() + " " + row.find("ids")->dump());
    std::vector<float> logits = Draws(static_cast<uint32_t>(whole(row, "seed"))).floats(2014, -4, 4);
    for (size_t i = 513; i < logits.size(); ++i) logits[i] += static_cast<float>(number(row, "lift"));
    apply_rules(truth(row, "timestamps") ? timed : untimed, tokens, ids_of(row, "ids"), logits);
    std::vector<int32_t> kept;
    for (size_t i = 0; i <= logits.size(); ++i) {
      const bool before = i > 0 && std::isfinite(logits[i - 1]), now = i < logits.size() && std::isfinite(logits[i]);
      if (before != now) kept.push_back(static_cast<int32_t>(i));
    }
    EXPECT_EQ(kept, ids_of(row, "kept"));
  }
}

TEST(WhisperAlignment, FollowsTheMakersWay) {
  for (const Json& row : list(small_reference(), "alignments")) {
    const size_t heads = whole(row, "heads"), tokens = whole(row, "tokens"), all = whole(row, "everything");
    const size_t positions = whole(row, "positions");
    // Attention as a softmax leaves it: any factor a row.
    std::vector<float> attention = Draws(static_cast<uint32_t>(whole(row, "seed"))).floats(heads * tokens * all);
    for (size_t i = 0; i < attention.size(); ++i)
      attention[i] = (attention[i] + 1e-3f) * (i / all % 2 == 0 ? 0.5f : 2.0f);
    std::vector<float> matrix = alignment_matrix(attention, heads, tokens, all, positions);
    const Json::Array& expected = list(row, "matrix");
    ASSERT_EQ(matrix.size(), expected.size());
    for (size_t i = 0; i < matrix.size(); ++i) EXPECT_NEAR(matrix[i], number(expected[i]), 2e-5) << i;
    for (float& value : matrix) value = -value;
    const std::vector<PathStep> path = warp(matrix, tokens, positions);
    const std::vector<int32_t> rows = ids_of(row, "rows"), columns = ids_of(row, "columns");
    ASSERT_EQ(path.size(), rows.size());
    for (size_t i = 0; i < path.size(); ++i)
      EXPECT_EQ(path[i], (PathStep{static_cast<size_t>(rows[i]), static_cast<size_t>(columns[i])})) << i;
    EXPECT_EQ(entries(path, tokens)[0], 0u);
  }
}

TEST(WhisperAlignment, MedianReflectsAtTheEnds) {
  std::vector<float> out(5);
  median_filter(std::vector<float>{1, 9, 2, 8, 3}, 3, out);
  EXPECT_EQ(out, (std::vector<float>{9, 2, 8, 3, 8}));
  out.resize(3);
  median_filter(std::vector<float>{3, 1, 2}, 7, out);
  EXPECT_EQ(out, (std::vector<float>{3, 1, 2}));
}

TEST(WhisperWords, AreSplitJoinedAndPlacedAsTheMakers) {
  for (const Json& row : list(small_reference(), "words")) {
    SCOPED_TRACE(row.dump());
    const std::vector<int32_t> ids = ids_of(row, "ids");
    std::vector<Word> words = split_words(small_bpe(), ids, string_of(row, "language"));
    const Json::Array &spelt = list(row, "words"), &times = list(row, "times"), &spans = list(row, "spans");
    ASSERT_EQ(words.size(), spelt.size());
    for (size_t i = 0; i < words.size(); ++i) {
      EXPECT_EQ(words[i].text, *spelt[i].string());
      words[i].start_s = number((*times[i].array())[0]);
      words[i].end_s = number((*times[i].array())[1]);
    }
    std::vector<Segment> segments;
    for (size_t begin = 0; const Json& span : spans) {
      Segment segment;
      segment.start_s = number(span, "start");
      segment.end_s = number(span, "end");
      const auto first = ids.begin() + static_cast<ptrdiff_t>(begin);
      begin += whole(span, "count");
      segment.tokens.assign(first, ids.begin() + static_cast<ptrdiff_t>(begin));
      segments.push_back(segment);
    }
    place_words(std::move(words), small_tokens(), number(row, "offset"), segments, number(row, "before"));
    const Json::Array& placed = list(row, "placed");
    for (size_t s = 0; s < segments.size(); ++s) {
      EXPECT_NEAR(segments[s].start_s, number(placed[s], "start"), 1e-9);
      EXPECT_NEAR(segments[s].end_s, number(placed[s], "end"), 1e-9);
      const Json::Array& expected = list(placed[s], "words");
      ASSERT_EQ(segments[s].words.size(), expected.size());
      for (size_t i = 0; i < expected.size(); ++i) {
        const Json::Array& word = *expected[i].array();
        EXPECT_EQ(segments[s].words[i].text, *word[0].string());
        EXPECT_NEAR(segments[s].words[i].start_s, number(word[1]), 1e-9);
        EXPECT_NEAR(segments[s].words[i].end_s, number(word[2]), 1e-9);
      }
    }
  }
}

TEST(WhisperLongForm, GoesFromWindowToWindowAsTheMaker) {
  for (const Json& row : list(small_reference(), "long_forms")) {
    LongFormSettings settings = {.condition_on_previous = truth(row, "condition"), .carry_prompt = truth(row, "carry")};
    if (const std::string& said = string_of(row, "said"); !said.empty())
      settings.prompt = *small_bpe().encode(" " + said);
    LongForm form(small_bpe(), small_tokens(), whole(row, "frames"), settings);
    size_t count = 0;
    for (const Json& scripted : list(row, "windows")) {
      const auto window = form.next();
      ASSERT_TRUE(window.has_value()) << count;
      EXPECT_EQ(window->prompt, ids_of(scripted, "prompt")) << count;
      DecodedWindow decoded;
      decoded.tokens = ids_of(scripted, "ids");
      decoded.log_probabilities.assign(decoded.tokens.size(), -0.25f);
      decoded.mean_log_probability = static_cast<float>(number(scripted, "mean"));
      decoded.no_speech = static_cast<float>(number(scripted, "no_speech"));
      decoded.temperature = static_cast<float>(number(scripted, "temperature"));
      form.accept(decoded, form.cut(decoded), false);
      ++count;
    }
    EXPECT_FALSE(form.next().has_value());
    const Json::Array& expected = list(row, "segments");
    ASSERT_EQ(form.segments().size(), expected.size());
    for (size_t s = 0; s < expected.size(); ++s) {
      const Json::Array& segment = *expected[s].array();
      EXPECT_NEAR(form.segments()[s].start_s, number(segment[0]), 1e-4);
      EXPECT_NEAR(form.segments()[s].end_s, number(segment[1]), 1e-4);
      EXPECT_EQ(form.segments()[s].tokens, ids_of(segment[2]));
      EXPECT_EQ(form.segments()[s].text, *segment[3].string());
      EXPECT_FLOAT_EQ(form.segments()[s].mean_log_probability, -0.25f);
    }
  }
}

}  // namespace
}  // namespace syrinx::whisper
