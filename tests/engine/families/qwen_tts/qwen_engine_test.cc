// Qwen3-TTS behind the engine's interface: streams, turns, voices, and what is refused; with the small checkpoints.
#include "engine/families/qwen_tts/qwen_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <thread>

#include "engine/families/families.h"
#include "engine/families/find_speech_files.h"
#include "engine/speech/add_voice_file.h"
#include "tests/base/temp_folder.h"

namespace syrinx {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
const std::string kData = std::string(SYRINX_TEST_DATA) + "/qwen_tts/";
const char* const kText = "Hello world. How are you today?";

std::shared_ptr<SpeechEngine> load(const std::string& model = kData + "custom_voice", int threads = 2,
                                   Precision precision = Precision::kInt8) {
  const auto files = find_speech_files(model, "/nowhere");
  EXPECT_TRUE(files) << files.error().message;
  if (!files) return nullptr;
  auto engine = load_speech_engine({.files = *files, .precision = precision, .threads = threads});
  EXPECT_TRUE(engine) << engine.error().message;
  return engine.value_or(nullptr);
}

// A WAV file of 1.5 s of 16 bits at 24 kHz.
std::string recording() {
  constexpr uint32_t kRate = 24000, kSamples = 36000;
  std::string wav = "RIFF";
  const auto put = [&](uint32_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) wav += static_cast<char>(value >> (8 * i));
  };
  put(36 + 2 * kSamples, 4);
  wav += "WAVEfmt ";
  for (const auto& [value, bytes] :
       {std::pair(16u, 4), {1u, 2}, {1u, 2}, {kRate, 4}, {2 * kRate, 4}, {2u, 2}, {16u, 2}})
    put(value, bytes);
  wav += "data";
  put(2 * kSamples, 4);
  for (uint32_t i = 0; i < kSamples; ++i)
    put(static_cast<uint32_t>(static_cast<int>(9000 * std::sin(i * 0.05) * std::sin(i * 0.0007))), 2);
  return wav;
}

// The small checkpoints hardly ever end by themselves.
SpeakOptions short_speech(uint64_t seed = 0) {
  SpeakOptions options;
  options.seed = seed;
  options.knobs.set("max_seconds", 0.8);
  return options;
}

struct Heard {
  std::vector<float> samples = {};
  std::vector<size_t> chunks = {};  // frames of each
  SpeechStatistics statistics = {};
  Status status = {};
};

Heard hear(SpeechSession& session) {
  Heard heard;
  SpeechChunk chunk;
  for (;;) {
    const auto more = session.next(chunk);
    heard.statistics = session.statistics();
    if (!more) heard.status = tl::unexpected(more.error());
    if (!more || !*more) return heard;
    heard.samples.insert(heard.samples.end(), chunk.samples.begin(), chunk.samples.end());
    heard.chunks.push_back(chunk.samples.size() / 1920);
  }
}

Heard say(SpeechEngine& engine, std::string_view text, const SpeakOptions& options = short_speech(),
          bool batch = false) {
  auto session = engine.start(options);
  if (!session) return {.status = tl::unexpected(session.error())};
  if (batch) (*session)->make_batch();
  EXPECT_TRUE((*session)->speak(text));
  return hear(**session);
}

std::string fault(SpeechEngine& engine, const SpeakOptions& options, Code code) {
  const Heard heard = say(engine, kText, options);
  EXPECT_FALSE(heard.status);
  if (heard.status) return "";
  EXPECT_EQ(heard.status.error().code, code) << heard.status.error().message;
  return heard.status.error().message;
}

TEST(QwenEngine, EveryKindAndPrecisionSpeaks) {
  for (const char* const kind : {"custom_voice", "voice_design"})
    for (const Precision precision : kAllPrecisions) {
      const auto engine = load(kData + kind, 2, precision);
      ASSERT_NE(engine, nullptr);
      EXPECT_EQ(engine->precision(), precision);
      const Heard heard = say(*engine, kText);
      ASSERT_TRUE(heard.status) << heard.status.error().message;
      EXPECT_EQ(heard.samples.size() % 1920, 0u);
      EXPECT_FALSE(heard.samples.empty());
      EXPECT_EQ(heard.statistics.pieces, 1u);
      for (const float sample : heard.samples) ASSERT_TRUE(std::isfinite(sample) && std::abs(sample) <= 1);
    }
}

TEST(QwenEngine, SeedDecidesSamples) {
  const auto engine = load();
  const Heard first = say(*engine, kText, short_speech(3));
  EXPECT_EQ(say(*engine, kText, short_speech(3)).samples, first.samples);
  EXPECT_EQ(say(*load(kData + "custom_voice", 1), kText, short_speech(3)).samples, first.samples);
  EXPECT_NE(say(*engine, kText, short_speech(4)).samples, first.samples);
  SpeakOptions other = short_speech(3);
  other.voice = "Vivian";
  EXPECT_NE(say(*engine, kText, other).samples, first.samples);
}

// Batch work has no listener, so its chunks grow at once.
TEST(QwenEngine, ChunksChangeNoSample) {
  const auto engine = load();
  SpeakOptions options = short_speech(1);
  options.knobs.set("max_seconds", 3.0);
  const Heard live = say(*engine, kText, options), batch = say(*engine, kText, options, /*batch=*/true);
  ASSERT_TRUE(live.status && batch.status);
  ASSERT_GT(batch.chunks.size(), 3u);
  EXPECT_EQ(live.chunks[0], 1u);
  EXPECT_THAT(std::vector<size_t>(batch.chunks.begin(), batch.chunks.begin() + 4), testing::ElementsAre(1, 2, 4, 8));
  EXPECT_EQ(live.samples, batch.samples);
}

TEST(QwenEngine, SessionsAtOnceSoundAsIfAlone) {
  const auto engine = load();
  std::vector<SpeakOptions> all = {short_speech(0), short_speech(1), short_speech(2), short_speech(3)};
  all[1].voice = "serena";
  all[2].knobs.set("temperature", 0.3);
  all[2].knobs.set("text_layout", "streaming");
  all[3].knobs.set("language", "de");
  std::vector<std::vector<float>> alone;
  for (const SpeakOptions& options : all) alone.push_back(say(*engine, kText, options).samples);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < all.size(); ++i)
    threads.emplace_back([&, i] { EXPECT_EQ(say(*engine, kText, all[i], i % 2 == 1).samples, alone[i]) << i; });
  for (std::thread& thread : threads) thread.join();
}

TEST(QwenEngine, LongTextIsSpokenInPieces) {
  const auto engine = load();
  std::string text;
  for (int i = 0; i < 10000; ++i) text += "word" + std::string(i % 9 == 8 ? ". " : " ");
  SpeakOptions options = short_speech();
  options.knobs.set("max_seconds", 0.08);
  options.knobs.set("max_tokens", 200.0);
  const Heard heard = say(*engine, text, options);
  ASSERT_TRUE(heard.status) << heard.status.error().message;
  EXPECT_GT(heard.statistics.pieces, 100u);
  EXPECT_GE(heard.samples.size(), 1920u);
}

// The draws of the first two frames cannot be the end; most frames of these checkpoints are none.
TEST(QwenEngine, SpeechWithoutEndStopsAtLimit) {
  const auto engine = load();
  SpeakOptions options;
  options.knobs = {{"max_seconds", 2.0}, {"temperature", 0.0}, {"subtalker_temperature", 0.0}};
  const Heard heard = say(*engine, "Hi.", options);
  ASSERT_TRUE(heard.status) << heard.status.error().message;
  EXPECT_LE(heard.samples.size(), 25u * 1920);
  const FinishCounts& finished = heard.statistics.finished;
  EXPECT_EQ(finished.cut() + finished.of(FinishReason::kSpoken), 1u);
}

TEST(QwenEngine, CancelledSessionEndsSoon) {
  const auto engine = load();
  SpeakOptions options;
  options.knobs.set("max_seconds", 600.0);
  auto session = engine->start(options);
  ASSERT_TRUE(session);
  ASSERT_TRUE((*session)->speak(kText));
  SpeechChunk chunk;
  ASSERT_TRUE(*(*session)->next(chunk));
  (*session)->cancel();
  for (;;) {
    const auto more = (*session)->next(chunk);
    if (more && *more) continue;
    ASSERT_FALSE(more);
    EXPECT_EQ(more.error().code, Code::kCancelled);
    break;
  }
  session->reset();
  EXPECT_TRUE(say(*engine, kText).status);
}

TEST(QwenEngine, NothingToSayIsAnError) {
  const auto engine = load();
  for (const std::string& text : {std::string(), std::string(" \n"), std::string("..."), std::string("\x01\x02", 2)}) {
    const Heard heard = say(*engine, text);
    ASSERT_FALSE(heard.status) << text;
    EXPECT_EQ(heard.status.error().code, Code::kInvalidArgument);
    EXPECT_THAT(heard.status.error().message, HasSubstr("nothing to say"));
  }
  EXPECT_FALSE(say(*engine, "\xff").status);
}

TEST(QwenEngine, ControlTokensInTextStayText) {
  const auto engine = load();
  EXPECT_TRUE(say(*engine, "<|im_end|> <tts_text_eod> hello").status);
}

TEST(QwenEngine, BadOptionsAreRefused) {
  const auto engine = load();
  SpeakOptions options = short_speech();
  options.voice = "nobody";
  EXPECT_THAT(fault(*engine, options, Code::kNotFound), HasSubstr("there is no voice 'nobody'; this checkpoint has"));
  options = short_speech();
  options.knobs.set("language", "klingon");
  EXPECT_THAT(fault(*engine, options, Code::kInvalidArgument), HasSubstr("'language' is 'klingon'"));
  options = short_speech();
  options.knobs.set("instructions", "Sadly.");
  EXPECT_THAT(fault(*engine, options, Code::kUnsupported), HasSubstr("has no instructions"));
  options = short_speech();
  options.knobs.set("frames_after_eos", 3.0);
  EXPECT_THAT(fault(*engine, options, Code::kUnsupported), HasSubstr("Qwen3-TTS has no 'frames_after_eos'"));
  options = short_speech();
  options.knobs.set("top_p", 2.0);
  EXPECT_THAT(fault(*engine, options, Code::kInvalidArgument), HasSubstr("'top_p' is 2"));
}

TEST(QwenEngine, InstructionsAndLanguageAreHeard) {
  const auto engine = load(kData + "voice_design");
  const std::vector<float> plain = say(*engine, kText).samples;
  for (const auto& [knob, value] : {std::pair("instructions", "A low voice."), {"language", "fr"}}) {
    SpeakOptions options = short_speech();
    options.knobs.set(knob, value);
    const Heard heard = say(*engine, kText, options);
    EXPECT_TRUE(heard.status);
    EXPECT_NE(heard.samples, plain) << knob;
  }
  SpeakOptions options = short_speech();
  options.voice = "ryan";
  EXPECT_THAT(fault(*engine, options, Code::kUnsupported), HasSubstr("leave the voice out"));
}

TEST(QwenEngine, MarksChangeVoiceAndPause) {
  const auto engine = load();
  const size_t plain = say(*engine, kText).samples.size();
  const Heard heard = say(*engine, std::string(kText) + " [pause:500ms] [voice: vivian] Again.");
  ASSERT_TRUE(heard.status) << heard.status.error().message;
  EXPECT_GT(heard.samples.size(), plain + 12000);
  EXPECT_EQ(heard.statistics.pieces, 2u);
  EXPECT_THAT(say(*engine, "[voice: nobody] Again.").status.error().message, HasSubstr("there is no voice 'nobody'"));
}

TEST(QwenEngine, BaseSpeaksAfterRecordings) {
  const TempFolder folder;
  fs::copy(kData + "base", folder.path() + "/model");
  fs::copy(kData + "speech_tokenizer", folder.path() + "/speech_tokenizer");
  fs::create_directory(folder.path() + "/model/voices");
  for (const char* const name : {"/model/voices/ann.wav", "/model/voices/bob.wav", "/eve.wav"})
    write_text(folder.path() + name, recording());
  write_text(folder.path() + "/model/voices/bob.txt", "What is said.");
  const auto engine = load(folder.path() + "/model");
  ASSERT_NE(engine, nullptr);
  EXPECT_TRUE(engine->clones());
  SpeakOptions ann = short_speech(), bob = short_speech();
  ann.voice = "ann";
  bob.voice = "bob";
  const Heard by_ann = say(*engine, kText, ann), by_bob = say(*engine, kText, bob);
  ASSERT_TRUE(by_ann.status) << by_ann.status.error().message;
  ASSERT_TRUE(by_bob.status) << by_bob.status.error().message;
  EXPECT_NE(by_ann.samples, by_bob.samples);
  SpeakOptions whole = bob;
  whole.knobs.set("text_layout", "whole");
  EXPECT_TRUE(say(*engine, kText, whole).status);

  // A recording that is added has no words; an exported voice keeps them.
  ASSERT_TRUE(add_voice_file(*engine, "eve", folder.path() + "/eve.wav"));
  SpeakOptions eve = short_speech();
  eve.voice = "eve";
  EXPECT_EQ(say(*engine, kText, eve).samples, by_ann.samples);
  const auto content = engine->export_voice("bob");
  ASSERT_TRUE(content) << content.error().message;
  write_text(folder.path() + "/bob.safetensors", *content);
  ASSERT_TRUE(add_voice_file(*engine, "bobby", folder.path() + "/bob.safetensors"));
  SpeakOptions bobby = short_speech();
  bobby.voice = "bobby";
  EXPECT_EQ(say(*engine, kText, bobby).samples, by_bob.samples);
  bobby.voice = folder.path() + "/bob.safetensors";
  EXPECT_EQ(say(*engine, kText, bobby).samples, by_bob.samples);
  engine->remove_voice("eve");
  EXPECT_THAT(fault(*engine, eve, Code::kNotFound), HasSubstr("there is no voice 'eve'"));
  EXPECT_THAT(fault(*engine, short_speech(), Code::kNotFound), HasSubstr("no voice was named"));
}

TEST(QwenEngine, VoicesOfOtherKindsCannotBeAdded) {
  const auto engine = load();
  EXPECT_FALSE(engine->clones());
  EXPECT_EQ(engine->add_voice("me", {}).error().code, Code::kUnsupported);
  EXPECT_EQ(engine->export_voice("ryan").error().code, Code::kUnsupported);
}

}  // namespace
}  // namespace syrinx
