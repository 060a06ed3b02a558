// syrinx_read(): how texts are read out, with the tiny lexicon, with and without a checkpoint.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "syrinx/engine.hpp"
#include "tests/base/temp_folder.h"

namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class Reading : public testing::Test {
 protected:
  Reading() {
    std::filesystem::copy_file(SYRINX_TEST_DATA "/g2p/tiny_gold.json", folder_.file("us_gold.json"));
    lexicon_ = folder_.path();
  }
  syrinx::LoadOptions front_end() {
    syrinx::LoadOptions options;
    options.lexicon = lexicon_.c_str();
    options.front_end_only = 1;
    options.without_cache = 1;
    return options;
  }
  static std::vector<std::string> read(syrinx::Engine& engine, const std::string& text,
                                       const syrinx::VoiceOptions& options = {}, syrinx_code expected = SYRINX_OK) {
    std::vector<std::string> sentences;
    const auto take = [&](const syrinx_sentence& sentence) {
      EXPECT_EQ(text.substr(sentence.source_begin, sentence.source_end - sentence.source_begin), sentence.text);
      std::string words;
      for (size_t i = 0; i < sentence.word_count; ++i)
        words += (i == 0 ? "" : " ") + std::string(sentence.read_words[i].word);
      EXPECT_EQ(words, sentence.words);
      sentences.push_back(words + " | " + sentence.phonemes);
      return true;
    };
    EXPECT_EQ(engine.read(text, options, take), expected) << engine.error();
    return sentences;
  }

  syrinx::TempFolder folder_;
  std::string lexicon_;
};

TEST_F(Reading, NeedsNoCheckpoint) {
  syrinx::Engine engine;
  ASSERT_EQ(engine.load(front_end()), SYRINX_OK) << engine.error();
  EXPECT_THAT(read(engine, "The cats run. TV is $2!"),
              ElementsAre("the cats run | ðə kˈæts ɹˈʌn.", "T V is two dollars | tˌivˈi ɪz tˈu dˈɑləɹz!"));
  EXPECT_EQ(engine.load(front_end()), SYRINX_INVALID_ARGUMENT);
  EXPECT_STREQ(engine.error(), "the engine is loaded already");
}

TEST_F(Reading, WordsHaveRulesAndPlaces) {
  syrinx::Engine engine;
  ASSERT_EQ(engine.load(front_end()), SYRINX_OK) << engine.error();
  std::vector<std::string> words;
  const auto take = [&](const syrinx_sentence& sentence) {
    for (size_t i = 0; i < sentence.word_count; ++i) {
      const syrinx_read_word& word = sentence.read_words[i];
      words.push_back(std::string(word.word) + " " + word.rule + " " + word.sound + " " + word.phonemes + " " +
                      std::to_string(word.source_begin) + "-" + std::to_string(word.source_end));
    }
    EXPECT_EQ(sentence.dropped_characters, 1u);
    return true;
  };
  ASSERT_EQ(engine.read("A 😀 cat, $2", {}, take), SYRINX_OK) << engine.error();
  EXPECT_THAT(words, ElementsAre("a function-word function-word ɐ 0-1", "cat lexicon lexicon kˈæt 7-10",
                                 "two money lexicon tˈu 12-14", "dollars money lexicon-stem dˈɑləɹz 12-14"));
}

TEST_F(Reading, LoadedModelReadsTheSame) {
  const std::string model = SYRINX_TEST_DATA "/kokoro/tiny.onnx";
  const std::string voice = SYRINX_TEST_DATA "/kokoro/tiny_voice.bin";
  syrinx::LoadOptions options = front_end();
  options.front_end_only = 0;
  options.model = model.c_str();
  options.voice = voice.c_str();
  syrinx::Engine speaking, reading;
  ASSERT_EQ(speaking.load(options), SYRINX_OK) << speaking.error();
  ASSERT_EQ(reading.load(front_end()), SYRINX_OK) << reading.error();
  syrinx::VoiceOptions spoken;
  spoken.voice = voice.c_str();
  const std::string text = "The cats run. [pause:1s] Hello, man.";
  EXPECT_EQ(read(speaking, text, spoken), read(reading, text));
  std::string heard;
  const auto hear = [&](const syrinx_chunk& chunk) { return heard += chunk.phonemes, true; };
  ASSERT_EQ(speaking.speak("The cats run.", spoken, hear), SYRINX_OK) << speaking.error();
  EXPECT_THAT(read(reading, "The cats run."), ElementsAre("the cats run | " + heard));
}

TEST_F(Reading, FrontEndAloneDoesNotSpeak) {
  syrinx::Engine engine;
  ASSERT_EQ(engine.load(front_end()), SYRINX_OK) << engine.error();
  const auto hear = [](const syrinx_chunk&) { return true; };
  EXPECT_EQ(engine.speak("cat", {}, hear), SYRINX_INVALID_ARGUMENT);
  EXPECT_THAT(engine.error(), HasSubstr("front_end_only"));
  syrinx::Session session;
  EXPECT_EQ(engine.start({}, session), SYRINX_INVALID_ARGUMENT);
  syrinx::Engine empty;
  EXPECT_THAT(read(empty, "cat", {}, SYRINX_INVALID_ARGUMENT), ElementsAre());
  EXPECT_THAT(empty.error(), HasSubstr("has not been loaded"));
}

TEST_F(Reading, WrongTextsAndOptionsAreErrors) {
  syrinx::Engine engine;
  ASSERT_EQ(engine.load(front_end()), SYRINX_OK) << engine.error();
  read(engine, "", {}, SYRINX_INVALID_ARGUMENT);
  EXPECT_THAT(engine.error(), HasSubstr("nothing to say"));
  read(engine, "cat \xED\xA0\x80", {}, SYRINX_INVALID_ARGUMENT);
  read(engine, std::string("cat \0 dog", 9), {}, SYRINX_INVALID_ARGUMENT);
  EXPECT_THAT(engine.error(), HasSubstr("zero"));
  read(engine, std::string((size_t{1} << 20) + 1, 'a'), {}, SYRINX_LIMIT_EXCEEDED);
  syrinx::VoiceOptions options;
  options.voice = "ff_siwis";
  read(engine, "cat", options, SYRINX_UNSUPPORTED);
  options = {};
  options.phonemes = 1;
  read(engine, "cat", options, SYRINX_INVALID_ARGUMENT);
  options = {};
  options.temperature = 1;
  read(engine, "cat", options, SYRINX_UNSUPPORTED);
  EXPECT_EQ(engine.read("cat. Dog.", {}, [](const syrinx_sentence&) { return false; }), SYRINX_CANCELLED);
  EXPECT_EQ(read(engine, "cat").size(), 1u);  // the engine is as good as before
}

TEST_F(Reading, FaultsOfLoadingAreNamed) {
  syrinx::LoadOptions options = front_end();
  const std::string pocket = SYRINX_TEST_DATA "/pocket_tts/english";
  options.model = pocket.c_str();
  syrinx::Engine engine;
  EXPECT_EQ(engine.load(options), SYRINX_UNSUPPORTED);
  EXPECT_THAT(engine.error(), HasSubstr("Kokoro"));
  options = front_end();
  options.model_data = "x";
  options.model_size = 1;
  EXPECT_EQ(engine.load(options), SYRINX_INVALID_ARGUMENT);
  options = front_end();
  options.voice = "ff_siwis";
  EXPECT_EQ(engine.load(options), SYRINX_UNSUPPORTED);
  options = front_end();
  options.lexicon = "/no/such";
  EXPECT_EQ(engine.load(options), SYRINX_NOT_FOUND);
  options = {};
  options.model = pocket.c_str();
  ASSERT_EQ(engine.load(options), SYRINX_OK) << engine.error();
  read(engine, "cat", {}, SYRINX_UNSUPPORTED);
}

// As a program that was compiled before the field was added.
TEST_F(Reading, EarlierProgramsLoadACheckpoint) {
  syrinx::LoadOptions options = front_end();
  options.struct_size = offsetof(syrinx_load_options, front_end_only);
  options.model = "/no/such.onnx";
  syrinx::Engine engine;
  EXPECT_EQ(engine.load(options), SYRINX_NOT_FOUND);
  EXPECT_THAT(engine.error(), HasSubstr("/no/such.onnx"));
}

TEST_F(Reading, ManyThreadsReadAtOnce) {
  syrinx::Engine engine;
  ASSERT_EQ(engine.load(front_end()), SYRINX_OK) << engine.error();
  const std::vector<std::string> expected = read(engine, "The cats run. Hello, man.");
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int k = 0; k < 20; ++k) EXPECT_EQ(read(engine, "The cats run. Hello, man."), expected);
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
