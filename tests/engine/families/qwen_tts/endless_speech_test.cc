// Pieces that never end, and pieces that do, through the pool and the engine, with the small checkpoint.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/json.h"
#include "engine/families/families.h"
#include "engine/families/find_speech_files.h"
#include "engine/families/qwen_tts/qwen_speaker.h"
#include "engine/speech/speech_session.h"
#include "pool_fixture.h"
#include "tests/base/temp_folder.h"
#include "tests/models/allocation_count.h"

namespace syrinx::qwen_tts {
namespace {

namespace fs = std::filesystem;
const std::string kData = std::string(SYRINX_TEST_DATA) + "/qwen_tts/";
constexpr size_t kCodebooks = 16, kSamples = 1920;
constexpr int32_t kCodes = 32;

// A pool with the small checkpoint; codes of its pieces are given, so that they end where a test wants.
class EndlessSpeech : public PoolFixture {
 protected:
  EndlessSpeech() : PoolFixture("custom_voice") {}

  struct Script {
    size_t tokens = 0;
    std::vector<int32_t> codes = {};  // [frames, kCodebooks]; behind them, the model's own
  };
  void add_random(Script& script, size_t frames) {
    for (size_t i = 0; i < frames * kCodebooks; ++i)
      script.codes.push_back(static_cast<int32_t>(random_() % static_cast<uint64_t>(kCodes)));
  }
  // Random frames, then a loop of them until the limit.
  Script loop(size_t tokens, size_t from, size_t period) {
    Script script{.tokens = tokens};
    add_random(script, from + period);
    while (script.codes.size() < SpeechGuard::limit(tokens, {}, 12.5) * kCodebooks)
      script.codes.push_back(script.codes[script.codes.size() - period * kCodebooks]);
    return script;
  }
  void add_end(Script& script) {
    script.codes.push_back(model_->config().codec.eos);
    script.codes.resize(script.codes.size() + kCodebooks - 1);
  }

  Status begin(FramePool::Lease& lease, const Script& script) const {
    const std::vector<int32_t> ids(script.tokens, 7);
    auto prompt = make_prompt(model_->config(), {.role = model_->tokenizer().role(), .text = ids, .speaker = "ryan"});
    EXPECT_TRUE(prompt) << prompt.error().message;
    SpeechSettings settings{.draws = model_->generation(), .forced = script.codes};
    settings.draws.max_frames = SpeechGuard::limit(script.tokens, {}, 12.5);
    return lease.begin(
        {.prompt = *prompt, .settings = settings, .expected_frames = SpeechGuard::expected_frames(script.tokens)});
  }

  struct Heard {
    std::vector<float> samples = {};
    FramePool::Made end = {};
    bool spoken_little = false;
    size_t frames() const { return samples.size() / kSamples; }
  };
  Heard hear(const Script& script, size_t chunk) const {
    auto lease = pool_->lease();
    EXPECT_TRUE(lease && begin(*lease, script));
    Heard heard;
    for (size_t told = 0; !heard.end.ended;) {
      const auto made = lease->next(chunk, heard.samples);
      EXPECT_TRUE(made && !made->faulty);
      if (!made) break;
      heard.end = *made;
      const size_t free = heard.frames() - made->held;
      EXPECT_GE(free, told) << "what was heard is taken back";
      EXPECT_LE(made->held, SpeechGuard::kMostHeld);
      told = free;
    }
    EXPECT_EQ(heard.end.held, 0u);
    heard.spoken_little = lease->spoken_little();
    return heard;
  }

  std::mt19937_64 random_{1};
};

TEST_F(EndlessSpeech, NothingBeyondTheRuleIsHeard) {
  size_t cut = 0;
  for (size_t n = 0; n < 200; ++n) {
    SCOPED_TRACE(n);
    const size_t tokens = (n % 8 == 0 ? 20 : 1) + n % 4, period = 1 + n / 2 % 25, from = random_() % 12;
    const size_t limit = SpeechGuard::limit(tokens, {}, 12.5);
    Script script{.tokens = tokens};
    if (n % 2 == 0)
      script = loop(tokens, from, period);
    else
      add_random(script, limit);
    const Heard heard = hear(script, 1 + n % FramePool::kMaxChunk);
    const size_t rule = from + period + std::max(SpeechGuard::kFirstSuspect, period) - 1;
    const size_t most = n % 2 == 0 ? std::min(rule, limit) : limit;
    EXPECT_LE(heard.frames(), most);
    EXPECT_GE(heard.frames() + 2, most);  // a frame before the loop may match it by chance
    EXPECT_NE(heard.end.reason, FinishReason::kSpoken);
    cut += heard.end.reason == FinishReason::kRepeats ? 1 : 0;
  }
  EXPECT_GE(cut, 25u);
  EXPECT_LE(cut, 100u);
}

TEST_F(EndlessSpeech, ScriptedEndsAreHeardWhole) {
  for (size_t n = 0; n < 200; ++n) {
    Script script{.tokens = 1 + n % 3};
    const double factor = 0.5 + 2.5 * static_cast<double>(n) / 199;
    const auto frames =
        static_cast<size_t>(std::lround(factor * static_cast<double>(SpeechGuard::expected_frames(script.tokens))));
    add_random(script, frames);
    // Some of these end in a sound of up to 20 frames that is held.
    for (size_t i = frames - std::min<size_t>(frames, n % 3 == 0 ? 20 : 0); i < frames; ++i)
      script.codes[i * kCodebooks] = 5;
    add_end(script);
    const Heard heard = hear(script, 1 + n % FramePool::kMaxChunk);
    EXPECT_EQ(heard.end.reason, FinishReason::kSpoken) << n;
    EXPECT_EQ(heard.frames(), frames) << n;
  }
}

// The model ends, so the held frames are heard.
TEST_F(EndlessSpeech, EndInHeldStretchGivesIt) {
  Script script = loop(20, 5, 3);
  script.codes.resize(30 * kCodebooks);
  add_end(script);
  for (const size_t chunk : {1u, 4u, 8u}) {
    const Heard heard = hear(script, chunk);
    EXPECT_EQ(heard.end.reason, FinishReason::kSpoken);
    EXPECT_EQ(heard.frames(), 30u);
  }
}

TEST_F(EndlessSpeech, ChunksAndCompanyChangeNoCut) {
  const Script script = loop(20, 2, 4);
  const Heard alone = hear(script, 1);
  EXPECT_EQ(alone.end.reason, FinishReason::kRepeats);
  EXPECT_EQ(alone.frames(), 2u + 4 + SpeechGuard::kFirstSuspect - 1);
  EXPECT_TRUE(alone.spoken_little);
  std::vector<std::thread> threads;
  for (const size_t chunk : {3u, 5u, 8u})
    threads.emplace_back([&, chunk] {
      const Heard heard = hear(script, chunk);
      EXPECT_EQ(heard.samples, alone.samples) << chunk;
      EXPECT_EQ(heard.end.reason, alone.end.reason);
      EXPECT_EQ(heard.spoken_little, alone.spoken_little);
    });
  for (std::thread& thread : threads) thread.join();
}

TEST_F(EndlessSpeech, HoldingBackAllocatesNothing) {
  const Script script = loop(20, 5, 3);
  auto lease = pool_->lease();
  ASSERT_TRUE(lease && begin(*lease, script));
  std::vector<float> samples;
  samples.reserve(100 * kSamples);
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(lease->next(4, samples));
  const size_t before = allocation_count();
  size_t held = 0;
  for (int i = 0; i < 32; ++i) {
    const auto made = lease->next(4, samples);
    held = made ? made->held : 0;
  }
  EXPECT_EQ(allocation_count(), before);
  EXPECT_EQ(held, 40u - (5 + 3 + SpeechGuard::kFirstSuspect - 1));
}

TEST_F(EndlessSpeech, CancelledWhileHeldLeavesNothing) {
  const Script script = loop(20, 5, 3);
  const Heard whole = hear(script, 2);
  auto lease = pool_->lease();
  ASSERT_TRUE(lease && begin(*lease, script));
  std::vector<float> samples;
  for (size_t held = 0; held == 0;) {
    const auto made = lease->next(2, samples);
    ASSERT_TRUE(made && !made->ended);
    held = made->held;
  }
  lease->ask_first([] { return false; });
  const auto made = lease->next(2, samples);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, Code::kCancelled);
  lease->ask_first({});
  ASSERT_TRUE(begin(*lease, script));
  samples.clear();
  for (bool ended = false; !ended;) {
    const auto next = lease->next(2, samples);
    ASSERT_TRUE(next);
    ended = next->ended;
  }
  EXPECT_EQ(samples, whole.samples);
}

// The first try is a loop, the second one ends.  Of the first one only the frames before it was a loop are heard.
TEST_F(EndlessSpeech, SecondTryThatEndsIsHeardWhole) {
  constexpr size_t kSpoken = 20;
  const Script first = loop(20, 0, 1);
  Script second{.tokens = 20};
  add_random(second, kSpoken);
  add_end(second);
  auto lease = pool_->lease();
  ASSERT_TRUE(lease);
  QwenSettings settings{.draws = model_->generation(), .piece_tokens = kDefaultPieceTokens};
  std::vector<uint32_t> tries;
  settings.forced = [&](uint32_t number) -> std::span<const int32_t> {
    tries.push_back(number);
    return number == 0 ? first.codes : second.codes;
  };
  const auto no_voice = [](const std::string&) -> Result<std::shared_ptr<const QwenVoice>> {
    return fail(Code::kNotFound, "no voice");
  };
  const auto voice = std::make_shared<QwenVoice>();
  voice->speaker = "ryan";
  SpeechSession session(std::make_unique<QwenSpeaker>(no_voice, model_, std::move(*lease), voice, settings,
                                                      std::vector<int32_t>(), SpeakOptions()));
  ASSERT_TRUE(session.speak("Hello world. How are you today?"));
  std::vector<float> samples;
  for (SpeechChunk chunk;;) {
    const auto more = session.next(chunk);
    ASSERT_TRUE(more) << more.error().message;
    if (!*more) break;
    samples.insert(samples.end(), chunk.samples.begin(), chunk.samples.end());
  }
  EXPECT_THAT(tries, testing::ElementsAre(0u, QwenSpeaker::kSecondTry));
  const SpeechStatistics statistics = session.statistics();
  EXPECT_EQ(statistics.pieces, 1u);
  EXPECT_EQ(statistics.retried_pieces, 1u);
  EXPECT_EQ(statistics.finished.of(FinishReason::kSpoken), 1u);
  EXPECT_EQ(statistics.finished.cut(), 0u);
  ASSERT_EQ(samples.size(), (SpeechGuard::kFirstSuspect + kSpoken) * kSamples);
  const Heard whole = hear(second, 1);
  EXPECT_EQ(std::vector<float>(samples.begin() + SpeechGuard::kFirstSuspect * kSamples, samples.end()), whole.samples);
}

// The small checkpoint with zeros in some of its tensors, spoken by the engine.
class EndlessCheckpoint : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* const part : {"custom_voice", "speech_tokenizer"}) fs::copy(kData + part, folder_.file(part));
  }
  void put_zeros(const std::string& part, const std::string& tensor) const {
    const std::string path = folder_.file(part) + "/model.safetensors";
    std::string content = read_text(path);
    uint64_t length = 0;
    for (int i = 7; i >= 0; --i) length = length << 8 | static_cast<uint8_t>(content[static_cast<size_t>(i)]);
    const auto header = parse_json(content.substr(8, length), path);
    ASSERT_TRUE(header);
    const Json* const found = header->find(tensor);
    ASSERT_NE(found, nullptr) << tensor;
    const Json::Array& offsets = *found->find("data_offsets")->array();
    const auto first = content.begin() + static_cast<std::ptrdiff_t>(8 + length);
    std::fill(first + *offsets[0].whole(), first + *offsets[1].whole(), '\0');
    write_text(path, content);
  }

  struct Heard {
    std::vector<float> samples = {};
    SpeechStatistics statistics = {};
    size_t frames() const { return samples.size() / kSamples; }
  };
  Heard say(SpeakOptions options, bool batch = false, int threads = 1,
            std::string_view text = "Hello world. How are you today?") const {
    const auto files = find_speech_files(folder_.file("custom_voice"), "/nowhere");
    EXPECT_TRUE(files) << files.error().message;
    const auto engine = load_speech_engine({.files = *files, .threads = threads});
    EXPECT_TRUE(engine) << engine.error().message;
    auto session = (*engine)->start(options);
    EXPECT_TRUE(session) << session.error().message;
    if (batch) (*session)->make_batch();
    EXPECT_TRUE((*session)->speak(text));
    Heard heard;
    SpeechChunk chunk;
    for (;;) {
      const auto more = (*session)->next(chunk);
      EXPECT_TRUE(more) << more.error().message;
      heard.statistics = (*session)->statistics();
      if (!more || !*more) return heard;
      heard.samples.insert(heard.samples.end(), chunk.samples.begin(), chunk.samples.end());
    }
  }
  // The head is zero: the likeliest first code is 0 at every frame, the other codes are drawn.
  static SpeakOptions looping(uint64_t seed = 0) {
    SpeakOptions options;
    options.seed = seed;
    options.knobs.set("temperature", 0.0);
    return options;
  }

  const TempFolder folder_;
};

constexpr size_t kHeardOfLoop = SpeechGuard::kFirstSuspect, kHeardOfSilence = SpeechGuard::kFirstSuspect - 1;

TEST_F(EndlessCheckpoint, LoopIsTriedTwiceThenCut) {
  put_zeros("custom_voice", "talker.codec_head.weight");
  const Heard heard = say(looping());
  EXPECT_EQ(heard.statistics.pieces, 1u);
  EXPECT_EQ(heard.statistics.retried_pieces, 1u);
  EXPECT_EQ(heard.statistics.finished.of(FinishReason::kRepeats), 1u);
  ASSERT_EQ(heard.frames(), 2 * kHeardOfLoop);
  const auto half = heard.samples.begin() + static_cast<std::ptrdiff_t>(heard.samples.size() / 2);
  EXPECT_NE(std::vector<float>(heard.samples.begin(), half), std::vector<float>(half, heard.samples.end()));
  EXPECT_EQ(say(looping(), /*batch=*/true, /*threads=*/2).samples, heard.samples);
  EXPECT_NE(say(looping(1)).samples, heard.samples);
}

TEST_F(EndlessCheckpoint, LikeliestDrawsAreNotTriedTwice) {
  put_zeros("custom_voice", "talker.codec_head.weight");
  SpeakOptions options = looping();
  options.knobs.set("subtalker_temperature", 0.0);
  const Heard heard = say(options);
  EXPECT_EQ(heard.statistics.retried_pieces, 0u);
  EXPECT_EQ(heard.statistics.finished.of(FinishReason::kRepeats), 1u);
  EXPECT_EQ(heard.frames(), kHeardOfLoop);
}

TEST_F(EndlessCheckpoint, SilenceIsTriedTwiceThenCut) {
  for (const char* const name : {"decoder.decoder.6.conv.weight", "decoder.decoder.6.conv.bias"})
    put_zeros("speech_tokenizer", name);
  SpeakOptions options;
  options.knobs.set("temperature", 0.01);
  options.knobs.set("subtalker_temperature", 0.01);
  const Heard heard = say(options);
  EXPECT_EQ(heard.statistics.pieces, 1u);
  EXPECT_EQ(heard.statistics.retried_pieces, 1u);
  EXPECT_EQ(heard.statistics.finished.of(FinishReason::kSilence), 1u);
  EXPECT_EQ(heard.frames(), 2 * kHeardOfSilence);
}

// The other pieces are spoken; the sound of each is its own.
TEST_F(EndlessCheckpoint, EachPieceIsCutByItself) {
  put_zeros("custom_voice", "talker.codec_head.weight");
  SpeakOptions options = looping();
  options.knobs.set("max_tokens", 12.0);
  const Heard heard = say(options, false, 1, "Hello world, how are you today, and what is all of that about?");
  EXPECT_GT(heard.statistics.pieces, 2u);
  EXPECT_EQ(heard.statistics.finished.cut(), heard.statistics.pieces);
  EXPECT_EQ(heard.frames(), (heard.statistics.pieces + heard.statistics.retried_pieces) * kHeardOfLoop);
}

// A shorter sound than is held back at most is cut at its limit, and nobody is told that it repeats.
TEST_F(EndlessCheckpoint, LimitOfTheUserComesFirst) {
  put_zeros("custom_voice", "talker.codec_head.weight");
  SpeakOptions options = looping();
  options.knobs.set("max_seconds", 0.8);
  const Heard heard = say(options);
  EXPECT_EQ(heard.frames(), 10u);
  EXPECT_EQ(heard.statistics.retried_pieces, 0u);
  EXPECT_EQ(heard.statistics.finished.of(FinishReason::kLength), 1u);
  options.knobs.set("max_seconds", 1.2);  // cut while some of it is held
  const Heard longer = say(options);
  EXPECT_EQ(longer.frames(), kHeardOfLoop);
  EXPECT_EQ(longer.statistics.retried_pieces, 0u);
  EXPECT_EQ(longer.statistics.finished.of(FinishReason::kLength), 1u);
}

}  // namespace
}  // namespace syrinx::qwen_tts
