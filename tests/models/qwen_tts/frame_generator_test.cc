#include "models/qwen_tts/frame_generator.h"

#include <array>
#include <optional>
#include <set>

#include "allocation_count.h"
#include "talker_cases.h"

namespace syrinx::qwen_tts {
namespace {

using namespace test;

SpeechSettings drawn(uint64_t seed, size_t frames = 12) {
  SpeechSettings settings;
  settings.draws.max_frames = frames;
  settings.seed = seed;
  return settings;
}

std::vector<int32_t> alone(const std::shared_ptr<const Weights>& weights, const Prompt& prompt,
                           const SpeechSettings& settings, int threads = 1) {
  Running run(weights, threads, 1);
  FrameStream stream = run.begun(prompt, settings);
  return run.frames(stream);
}

// Steps of all streams that have not ended, until all have.
void run_together(FrameGenerator& generator, std::span<FrameStream> streams, std::span<std::vector<int32_t>> codes) {
  while (true) {
    std::vector<FrameStream*> open;
    for (FrameStream& stream : streams)
      if (stream.end() == End::kNone) open.push_back(&stream);
    if (open.empty()) return;
    generator.step(open);
    for (size_t n = 0; n < streams.size(); ++n)
      if (std::ranges::find(open, &streams[n]) != open.end() && streams[n].end() == End::kNone)
        codes[n].insert(codes[n].end(), streams[n].codes().begin(), streams[n].codes().end());
  }
}

struct Cases {
  std::vector<Prompt> prompts;
  std::vector<SpeechSettings> settings;
};
Cases base_cases(const Config& config) {
  Cases made;
  for (const char* const name : {"voice", "reference_short", "reference_long"}) {
    made.prompts.push_back(prompt_of(case_of(name), config));
    made.settings.push_back(drawn(made.settings.size() + 3, 10 + made.settings.size()));
    made.settings.back().number = static_cast<uint32_t>(made.settings.size());
  }
  return made;
}

TEST(FrameGenerator, StreamsTogetherEqualEachAlone) {
  for (const Precision precision : {Precision::kF32, Precision::kBf16, Precision::kInt8}) {
    SCOPED_TRACE(precision_name(precision));
    const auto weights = weights_of("base", precision);
    const Cases made = base_cases(weights->config);
    Running run(weights, 2, 3);
    std::vector<FrameStream> streams;
    for (size_t n = 0; n < made.prompts.size(); ++n) streams.push_back(run.begun(made.prompts[n], made.settings[n]));
    std::array<std::vector<int32_t>, 3> codes;
    run_together(*run.generator, streams, codes);
    for (size_t n = 0; n < streams.size(); ++n) {
      EXPECT_EQ(streams[n].end(), End::kLength);
      EXPECT_EQ(codes[n], alone(weights, made.prompts[n], made.settings[n])) << n;
    }
    EXPECT_NE(codes[0], codes[1]);
  }
}

TEST(FrameGenerator, LateStreamEqualsItselfAlone) {
  const auto weights = weights_of("base");
  const Cases made = base_cases(weights->config);
  Running run(weights, 2, 2);
  std::vector<FrameStream> streams;
  streams.push_back(run.begun(made.prompts[0], made.settings[0]));
  std::array<std::vector<int32_t>, 2> codes;
  for (FrameStream* const first = streams.data(); first->frames() < 4;) {
    run.generator->step({&first, 1});
    codes[0].insert(codes[0].end(), first->codes().begin(), first->codes().end());
  }
  streams.push_back(run.begun(made.prompts[2], made.settings[2]));
  run_together(*run.generator, streams, codes);
  EXPECT_EQ(codes[0], alone(weights, made.prompts[0], made.settings[0]));
  EXPECT_EQ(codes[1], alone(weights, made.prompts[2], made.settings[2]));
}

TEST(FrameGenerator, ThreadsAndCutsDoNotMatter) {
  const auto weights = weights_of("voice_design");
  const Prompt prompt = prompt_of(case_of("instructed"), weights->config);
  const std::vector<int32_t> one = alone(weights, prompt, drawn(5));
  EXPECT_EQ(one.size(), 12u * 16);
  EXPECT_EQ(alone(weights, prompt, drawn(5), 3), one);
  EXPECT_NE(alone(weights, prompt, drawn(6)), one);
  Running run(weights, 2, 1);
  size_t cuts = 0;
  const nn::PassCut cut{.between = [&] { ++cuts; }, .layers = 1};
  FrameStream stream = good(run.generator->make_stream(256));
  ASSERT_TRUE(run.generator->begin(stream, prompt, drawn(5)));
  while (!run.generator->read_prompt(stream, cut)) {
  }
  std::vector<int32_t> codes;
  for (FrameStream* const pointer = &stream; stream.end() == End::kNone;) {
    run.generator->step({&pointer, 1}, cut);
    if (stream.end() == End::kNone) codes.insert(codes.end(), stream.codes().begin(), stream.codes().end());
  }
  EXPECT_EQ(codes, one);
  EXPECT_EQ(cuts, 12u + 12 * 15);  // one in each pass of two layers
}

TEST(FrameGenerator, StepAllocatesNothing) {
  const auto weights = weights_of("base");
  const Cases made = base_cases(weights->config);
  Running run(weights, 2, 2);
  std::vector<FrameStream> streams;
  for (const size_t n : {0u, 2u}) streams.push_back(run.begun(made.prompts[n], made.settings[n]));
  FrameStream* const pointers[] = {&streams[0], &streams[1]};
  FrameStream waiting = good(run.generator->make_stream(256));
  ASSERT_TRUE(run.generator->begin(waiting, made.prompts[1], made.settings[1]));
  const size_t before = allocation_count();
  for (int i = 0; i < 8; ++i) run.generator->step(pointers);
  run.generator->read_prompt(waiting);
  EXPECT_EQ(allocation_count(), before);
}

// A prompt of several slices, beside one that is read in one.
TEST(FrameGenerator, LongPromptIsReadInSlices) {
  const auto weights = weights_of("base");
  Prompt prompt = prompt_of(case_of("reference_first"), weights->config);
  const std::vector<PromptPosition> positions = prompt.positions;
  while (prompt.positions.size() < 300)
    prompt.positions.insert(prompt.positions.end() - 8, positions.begin(), positions.begin() + 20);
  Running run(weights, 2, 2);
  FrameStream stream = good(run.generator->make_stream(400)), other = run.begun(prompt, drawn(1), 400);
  ASSERT_TRUE(run.generator->begin(stream, prompt, drawn(1)));
  FrameStream* const pointer = &other;
  size_t slices = 1;
  for (; !run.generator->read_prompt(stream); ++slices) run.generator->step({&pointer, 1});
  EXPECT_EQ(slices, (prompt.positions.size() + Talker::kPassRows - 1) / Talker::kPassRows);
  EXPECT_EQ(run.frames(stream), alone(weights, prompt, drawn(1)));
}

TEST(FrameGenerator, SuppressedTokensAreNeverDrawn) {
  const auto weights = weights_of("custom_voice");
  const Prompt prompt = prompt_of(case_of("english"), weights->config);
  std::set<int32_t> firsts;
  bool ended = false;
  for (uint64_t seed = 0; seed < 12; ++seed) {
    SpeechSettings settings = drawn(seed, 40);
    settings.draws.talker = {.samples = true, .temperature = 50.0f, .top_k = seed % 2 * 50, .top_p = 1.0f};
    Running run(weights, 1, 1);
    FrameStream stream = run.begun(prompt, settings);
    const std::vector<int32_t> codes = run.frames(stream);
    EXPECT_GE(stream.frames(), 2u);
    ended = ended || stream.end() == End::kSpoken;
    for (size_t i = 0; i < codes.size(); i += 16) firsts.insert(codes[i]);
    for (const int32_t code : codes) EXPECT_TRUE(code >= 0 && code < 32) << code;
  }
  EXPECT_EQ(firsts.size(), 32u);
  EXPECT_TRUE(ended);
}

TEST(FrameGenerator, EndsWhereTheEndIsForced) {
  const auto weights = weights_of("custom_voice");
  const Case english = case_of("english");
  std::vector<int32_t> forced = english.codes;
  forced[3 * 16] = weights->config.codec.eos;
  SpeechSettings settings = greedy();
  settings.forced = forced;
  Running run(weights);
  FrameStream stream = run.begun(prompt_of(english, weights->config), settings);
  const std::vector<int32_t> codes = run.frames(stream);
  EXPECT_EQ(stream.end(), End::kSpoken);
  EXPECT_EQ(stream.frames(), 3u);
  EXPECT_EQ(codes, std::vector<int32_t>(english.codes.begin(), english.codes.begin() + 3 * 16));
}

TEST(FrameGenerator, StreamEndsWithItsRoom) {
  const auto weights = weights_of("custom_voice");
  const Case english = case_of("english");
  const Prompt prompt = prompt_of(english, weights->config);
  Running run(weights);
  FrameStream stream = run.begun(prompt, greedy(), prompt.positions.size() + 4);
  EXPECT_EQ(run.frames(stream).size(), 5u * 16);
  EXPECT_EQ(stream.end(), End::kLength);
  // The stream begins anew.
  ASSERT_TRUE(run.generator->begin(stream, prompt, greedy(3)));
  ASSERT_TRUE(run.generator->read_prompt(stream));
  EXPECT_EQ(run.frames(stream), std::vector<int32_t>(english.codes.begin(), english.codes.begin() + 3 * 16));
}

TEST(FrameGenerator, LimitsAreTold) {
  const auto weights = weights_of("custom_voice");
  const Prompt prompt = prompt_of(case_of("english"), weights->config);
  Running run(weights);
  const auto too_long = run.generator->make_stream(nn::kMaxPositions + 1);
  ASSERT_FALSE(too_long.has_value());
  EXPECT_EQ(too_long.error().code, Code::kLimitExceeded);
  FrameStream stream = good(run.generator->make_stream(prompt.positions.size() - 1));
  const Status status = run.generator->begin(stream, prompt, greedy());
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, Code::kLimitExceeded);
}

TEST(FrameGenerator, NumbersThatAreNotFiniteEndStream) {
  const auto weights = weights_of("base");
  Prompt prompt = prompt_of(case_of("voice"), weights->config);
  prompt.voice[0] = std::nanf("");
  Running run(weights);
  FrameStream stream = run.begun(prompt, greedy());
  EXPECT_TRUE(run.frames(stream).empty());
  EXPECT_EQ(stream.end(), End::kFault);
}

}  // namespace
}  // namespace syrinx::qwen_tts
