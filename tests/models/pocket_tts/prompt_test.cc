#include "models/pocket_tts/prompt.h"

#include <ctime>
#include <map>

#include "models/pocket_tts/speech_end.h"
#include "pocket_files.h"
#include "text/tokens/sentencepiece_file.h"
#include "text/unicode.h"

namespace syrinx::pocket {
namespace {

text::UnigramTokenizer tokenizer() {
  const std::string bytes = test::read_pocket("tokenizer.model");
  auto read = text::read_sentencepiece(test::as_bytes(bytes), "tokenizer.model");
  EXPECT_TRUE(read.has_value()) << read.error().message;
  return std::move(*read);
}

std::u32string characters(const std::string& bytes) {
  std::u32string out;
  for (size_t i = 0; i < bytes.size();) out += text::decode(bytes, i);
  return out;
}

std::map<std::string, TextConfig> settings(const Json& texts) {
  std::map<std::string, TextConfig> all;
  for (const JsonMember& member : *texts.find("settings")->object()) {
    TextConfig& config = all[member.key];
    config.pad_short = *member.value.find("pad_with_spaces_for_short_inputs")->boolean();
    config.remove_semicolons = *member.value.find("remove_semicolons")->boolean();
    config.terminal_punctuation = *member.value.find("append_terminal_punctuation")->boolean();
    config.capitalize = *member.value.find("capitalize_first_letter")->boolean();
    for (const JsonMember& entry : *member.value.find("replace_characters")->object())
      config.replace.emplace_back(characters(entry.key)[0], characters(*entry.value.string()));
  }
  return all;
}

TEST(PocketPrompt, PreparesEveryTextAsTheMaker) {
  const Json texts = test::pocket_texts();
  const auto configs = settings(texts);
  ASSERT_EQ(configs.size(), 9u);
  ASSERT_EQ(texts.find("prepare")->array()->size(), 87u);
  for (const Json& item : *texts.find("prepare")->array()) {
    const std::string& text = test::text_of(item, "text");
    const Json& results = *item.find("results");
    for (const auto& [name, config] : configs) {
      SCOPED_TRACE(name + ": " + text);
      const Json* const own = results.find(name);
      const Json& expected = own != nullptr ? *own : *results.find("plain");
      const auto prepared = prepare_text(text, config);
      ASSERT_EQ(prepared.has_value(), !expected.is_null());
      if (!prepared) continue;
      EXPECT_EQ(prepared->text, *(*expected.array())[0].string());
      EXPECT_EQ(static_cast<int64_t>(prepared->frames_guess), *(*expected.array())[1].whole());
    }
  }
}

TEST(PocketPrompt, CutsEveryTextAsTheMaker) {
  const Json texts = test::pocket_texts();
  const auto configs = settings(texts);
  const text::UnigramTokenizer pieces = tokenizer();
  ASSERT_EQ(texts.find("split")->array()->size(), 62u);
  for (const Json& item : *texts.find("split")->array()) {
    const auto limit = static_cast<size_t>(*item.find("max_tokens")->whole());
    SCOPED_TRACE(test::text_of(item, "settings") + ", " + std::to_string(limit) + ": " + test::text_of(item, "text"));
    const auto chunks =
        split_text(test::text_of(item, "text"), limit, configs.at(test::text_of(item, "settings")), pieces);
    ASSERT_TRUE(chunks.has_value()) << chunks.error().message;
    const Json::Array& expected = *item.find("chunks")->array();
    ASSERT_EQ(chunks->size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      const Chunk& chunk = (*chunks)[i];
      EXPECT_EQ(chunk.text, test::text_of(expected[i], "text"));
      EXPECT_EQ(chunk.prepared, test::text_of(expected[i], "prepared"));
      EXPECT_EQ(chunk.ids, test::ids_of(expected[i]));
      EXPECT_EQ(static_cast<int64_t>(frames_after_end({}, {}, chunk.frames_guess)),
                *expected[i].find("frames_after_eos")->whole());
      EXPECT_EQ(static_cast<int64_t>(max_steps(chunk.ids.size())), *expected[i].find("max_steps")->whole());
    }
  }
}

TEST(PocketPrompt, NothingToSayIsAnError) {
  for (const char* const text : {"", " \t\n", "\u3000"}) {
    const auto chunks = split_text(text, kDefaultMaxTokens, {}, tokenizer());
    ASSERT_FALSE(chunks.has_value());
    EXPECT_EQ(chunks.error().code, Code::kInvalidArgument);
    EXPECT_NE(chunks.error().message.find("nothing to say"), std::string::npos);
  }
  TextConfig deleting;
  deleting.replace = {{U'*', U""}};
  EXPECT_FALSE(split_text("* * *", kDefaultMaxTokens, deleting, tokenizer()).has_value());
}

TEST(PocketPrompt, MalformedTextIsAnError) {
  const auto prepared = prepare_text("ab\xC3", {});
  ASSERT_FALSE(prepared.has_value());
  EXPECT_EQ(prepared.error().message, "the text is not valid UTF-8 at byte 2");
  EXPECT_FALSE(split_text("\xff", kDefaultMaxTokens, {}, tokenizer()).has_value());
}

TEST(PocketPrompt, AChunkInWhichNothingIsLeftHasNoIds) {
  TextConfig twice;  // the first preparation makes of each a what the second one deletes
  twice.replace = {{U'a', U"b"}, {U'b', U""}};
  twice.terminal_punctuation = false;
  twice.capitalize = false;
  const auto chunks = split_text("x! a", 1, twice, tokenizer());
  ASSERT_TRUE(chunks.has_value()) << chunks.error().message;
  ASSERT_EQ(chunks->size(), 2u);
  EXPECT_EQ((*chunks)[0].prepared, "x!");
  EXPECT_EQ((*chunks)[1].text, "b");
  EXPECT_TRUE((*chunks)[1].ids.empty());
  const auto none = split_text("a", 1, twice, tokenizer());
  ASSERT_FALSE(none.has_value());
  EXPECT_EQ(none.error().code, Code::kInvalidArgument);
}

TEST(PocketPrompt, DecimalsOfEveryScriptStayWhole) {
  const text::UnigramTokenizer pieces = tokenizer();
  const auto count = [&](const std::string& text) { return split_text(text, 1, {}, pieces)->size(); };
  EXPECT_EQ(count("Take 3.5"), 1u);
  EXPECT_EQ(count("Take x.5"), 2u);
  EXPECT_EQ(count("١٢٣٤٥٦٧٨٩.٥"), 1u);  // nothing but byte pieces
  EXPECT_EQ(count("你好你好你好²."
                  "①"),
            1u);
  EXPECT_EQ(count("你好你好你好.①"), 2u);
}

// Seconds of this thread that a text takes, the better of two runs.
double seconds_for(const std::string& text, const TextConfig& config, const text::UnigramTokenizer& pieces) {
  double best = 1e9;
  for (int run = 0; run < 2; ++run) {
    const std::clock_t start = std::clock();
    const auto chunks = split_text(text, kDefaultMaxTokens, config, pieces);
    EXPECT_TRUE(chunks.has_value()) << chunks.error().message;
    best = std::min(best, static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
  }
  return best;
}

// Eight times the text, far less than 64 times the time: of sentences, of nothing but marks, spaces, letters, symbols,
// sentences that are all too long, decimals, and with replacements to look up in every chunk.
TEST(PocketPrompt, LongTextsAreCutInLinearTime) {
  const text::UnigramTokenizer pieces = tokenizer();
  TextConfig replacing;
  for (char32_t c = 0x4E00; c < 0x4E00 + 4000; ++c) replacing.replace.emplace_back(c, U"x");
  for (const char* const part : {"It costs 3.50, or 4. Why? 你好! Well... ", ".", ". ", "? !", " x", "a", "😀",
                                 "word word, ", "word; ", "3.5", "1. 2", "\x01", "\"'", "٣.٥", "A ", "n\n"}) {
    SCOPED_TRACE(part);
    for (const TextConfig& config : {TextConfig(), replacing}) {
      // As long as can be timed in this build: an instrumented one takes ten times longer.
      std::string small = part;
      while (small.size() < 2000 || (small.size() < 200'000 && seconds_for(small, config, pieces) < 0.003))
        small += small;
      std::string large;
      for (int i = 0; i < 8; ++i) large += small;
      EXPECT_LT(seconds_for(large, config, pieces), 24 * seconds_for(small, config, pieces) + 0.02);
    }
  }
}

TEST(PocketPrompt, AMegabyteIsCut) {
  const text::UnigramTokenizer pieces = tokenizer();
  std::string text;
  while (text.size() < 1'000'000) text += "It costs 3.50, or 4. Why? 你好! Well... ";
  const auto chunks = split_text(text, kDefaultMaxTokens, {}, pieces);
  ASSERT_TRUE(chunks.has_value()) << chunks.error().message;
  EXPECT_GT(chunks->size(), 10'000u);
}

TEST(PocketPrompt, TextsBeyondTheLimitGetASentence) {
  const text::UnigramTokenizer pieces = tokenizer();
  const auto expect_limit = [](const auto& result, const char* part) {
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().code, Code::kLimitExceeded);
    EXPECT_NE(result.error().message.find(part), std::string::npos) << result.error().message;
  };
  const std::string huge(kMaxTextBytes + 1, 'a');
  expect_limit(prepare_text(huge, {}), "the text has 2097153 bytes, at most 2097152");
  expect_limit(split_text(huge, 50, {}, pieces), "give it in parts");
  EXPECT_TRUE(prepare_text(std::string(kMaxTextBytes, 'a'), {}).has_value());

  TextConfig growing;
  growing.replace = {{U'a', std::u32string(64, U'b')}};
  expect_limit(prepare_text(std::string(40'000, 'a'), growing), "when the configuration's replacements are made");
  expect_limit(split_text(std::string(40'000, 'a'), 50, growing, pieces), "grows beyond 2097152 characters");
  EXPECT_TRUE(prepare_text(std::string(30'000, 'a'), growing).has_value());
}

// The maker speaks anything that is not white space, whether the model learnt it or not: byte pieces stand for what the
// vocabulary lacks.
TEST(PocketPrompt, UnknownCharactersPassThrough) {
  const text::UnigramTokenizer pieces = tokenizer();
  const std::pair<std::string, std::string> texts[] = {{"😀😀 🎉", "😀😀 🎉."},
                                                       {"\x01\x02\x1b[2J", "\x01\x02\x1b[2J."},
                                                       {std::string("a\0b", 3), std::string("A\0b.", 4)},
                                                       {"\u200d\ufe0f", "\u200d\ufe0f."},
                                                       {"привет, мир", "Привет, мир."},
                                                       {"مرحبا", "مرحبا."},
                                                       {"\U0010FFFF", "\U0010FFFF."}};
  for (const auto& [text, prepared] : texts) {
    const auto chunks = split_text(text, kDefaultMaxTokens, {}, pieces);
    ASSERT_TRUE(chunks.has_value()) << chunks.error().message;
    ASSERT_EQ(chunks->size(), 1u) << text;
    EXPECT_EQ((*chunks)[0].prepared, prepared);
    EXPECT_EQ(pieces.decode((*chunks)[0].ids), prepared);
  }
}

}  // namespace
}  // namespace syrinx::pocket
