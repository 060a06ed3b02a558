#include "models/qwen_tts/frame_generator.h"

#include <array>
#include <cmath>
#include <limits>
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

std::vector<int32_t> beginning(const std::vector<int32_t>& codes, size_t frames) {
  return {codes.begin(), codes.begin() + static_cast<std::ptrdiff_t>(frames * 16)};
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

// Speech that ends of itself, longer than the text beside it, which takes several turns of the projection.
TEST(FrameGenerator, NaturalEndsTogetherEqualEachAlone) {
  const auto weights = weights_of("base");
  Case one = case_of("voice");
  one.text = "the user is in the air, 0123456789, and all that";
  one.text_first = false;
  const Prompt prompt = prompt_of(one, weights->config);
  ASSERT_GT(prompt.trailing.size(), 2 * FrameStream::kAheadRows - 8);
  constexpr size_t kStreams = 6;
  Running run(weights, 2, kStreams);
  std::vector<FrameStream> streams;
  std::vector<SpeechSettings> settings;
  for (size_t n = 0; n < kStreams; ++n) {
    settings.push_back(drawn(n, 400));
    settings.back().draws.penalty = 1.3f;
    streams.push_back(run.begun(prompt, settings.back()));
  }
  std::array<std::vector<int32_t>, kStreams> codes;
  run_together(*run.generator, streams, codes);
  size_t long_ones = 0;
  for (size_t n = 0; n < kStreams; ++n) {
    if (streams[n].end() == End::kSpoken && streams[n].frames() > 32) ++long_ones;
    Running own(weights, 1, 1);
    FrameStream stream = own.begun(prompt, settings[n]);
    EXPECT_EQ(own.frames(stream), codes[n]) << n;
    EXPECT_EQ(stream.end(), streams[n].end()) << n;
    EXPECT_EQ(stream.frames(), streams[n].frames()) << n;
  }
  EXPECT_GE(long_ones, 1u);
  RecordProperty("long", static_cast<int>(long_ones));
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
  Running run(weights, 2, 3);
  std::vector<FrameStream> streams;
  for (const size_t n : {0u, 2u}) streams.push_back(run.begun(made.prompts[n], made.settings[n]));
  FrameStream* const pointers[] = {&streams[0], &streams[1]};
  FrameStream waiting = good(run.generator->make_stream(256));
  ASSERT_TRUE(run.generator->begin(waiting, made.prompts[1], made.settings[1]));
  const size_t before = allocation_count();
  for (int i = 0; i < 8; ++i) run.generator->step(pointers);
  run.generator->step(pointers, {.stream = &waiting, .rows = 20});
  run.generator->step(pointers, {.stream = &waiting});
  EXPECT_EQ(allocation_count(), before);
  EXPECT_FALSE(waiting.reads_prompt());
}

// The softmax over the codes and the end, in double, of the logits as the talker gives them.
TEST(FrameGenerator, EndProbabilityMatchesItsDefinition) {
  const auto weights = weights_of("base");
  const Config& config = weights->config;
  const Cases made = base_cases(config);
  Running run(weights, 1, 1);
  std::vector<float> logits;
  run.generator->set_probe([&](std::string_view stage, View<const float, 2> rows) {
    if (stage == "logits") logits.assign(rows.row(0), rows.row(0) + config.vocabulary);
  });
  FrameStream stream = run.begun(made.prompts[0], made.settings[0]);
  EXPECT_EQ(stream.end_probability(), 0.0f);
  for (FrameStream* const one = &stream; stream.frames() < 8;) {
    run.generator->step({&one, 1});
    ASSERT_EQ(stream.end(), End::kNone);
    const double end = logits[static_cast<size_t>(config.codec.eos)];
    double sum = 1;
    for (size_t code = 0; code < config.codes(); ++code) sum += std::exp(logits[code] - end);
    EXPECT_NEAR(stream.end_probability() * sum, 1, 1e-5);
  }
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

// Positions of the prompt ride in steps of others; of the 127 the last would be alone behind a whole pass.
TEST(FrameGenerator, SlicesBesideStepsChangeNothing) {
  for (const Precision precision : {Precision::kF32, Precision::kBf16, Precision::kInt8}) {
    const auto weights = weights_of("base", precision);
    const Cases made = base_cases(weights->config);
    Prompt prompt = made.prompts[2];
    const std::vector<PromptPosition> positions = prompt.positions;
    while (prompt.positions.size() < Talker::kPassRows + 1)
      prompt.positions.insert(prompt.positions.end() - 8, positions.begin() + 3, positions.begin() + 4);
    ASSERT_EQ(prompt.positions.size(), Talker::kPassRows + 1);
    const std::vector<int32_t> want = alone(weights, prompt, drawn(9));
    const std::array others = {alone(weights, made.prompts[0], made.settings[0]),
                               alone(weights, made.prompts[1], made.settings[1])};
    for (const size_t rows : {1u, 3u, 7u, 16u, 45u, 126u}) {
      SCOPED_TRACE(fmt::format("{}, {} rows", precision_name(precision), rows));
      Running run(weights, 2, 3);
      std::vector<FrameStream> streams;
      for (size_t n = 0; n < 2; ++n) streams.push_back(run.begun(made.prompts[n], made.settings[n]));
      streams.push_back(good(run.generator->make_stream(256)));
      FrameStream& late = streams.back();
      ASSERT_TRUE(run.generator->begin(late, prompt, drawn(9)));
      std::array<std::vector<int32_t>, 3> codes;
      while (late.reads_prompt()) {
        std::vector<FrameStream*> open;
        for (FrameStream& stream : std::span(streams).first(2))
          if (stream.end() == End::kNone) open.push_back(&stream);
        run.generator->step(open, {.stream = &late, .rows = rows});
        for (size_t n = 0; n < 3; ++n)
          if (std::ranges::find(open, &streams[n]) != open.end() || (n == 2 && !late.reads_prompt()))
            if (streams[n].end() == End::kNone)
              codes[n].insert(codes[n].end(), streams[n].codes().begin(), streams[n].codes().end());
      }
      EXPECT_EQ(late.frames(), 1u);
      run_together(*run.generator, streams, codes);
      for (size_t n = 0; n < 2; ++n) EXPECT_EQ(codes[n], others[n]) << n;
      EXPECT_EQ(codes[2], want);
    }
  }
}

// Speech behind a prefix that another text has read, in each layout of a voice that goes on behind its recording.
TEST(FrameGenerator, SharedPrefixesChangeNothing) {
  constexpr size_t kMost = size_t{1} << 20;
  for (const Precision precision : {Precision::kF32, Precision::kBf16, Precision::kInt8}) {
    const auto weights = weights_of("base", precision);
    for (const bool text_first : {false, true}) {
      SCOPED_TRACE(fmt::format("{}, text first: {}", precision_name(precision), text_first));
      Case one = case_of("reference_long");
      one.text_first = text_first;
      one.reference_text += " And that was in the rain.";
      for (const int32_t code : std::vector<int32_t>(one.reference_codes)) one.reference_codes.push_back(code);
      const Prompt first = prompt_of(one, weights->config);
      one.text = "the user is in the air";
      const Prompt other = prompt_of(one, weights->config);
      Running run(weights, 2, 2);
      FrameStream stream = good(run.generator->make_stream(256)), behind = good(run.generator->make_stream(256));
      ASSERT_TRUE(run.generator->begin(stream, first, drawn(1)));
      EXPECT_EQ(run.generator->prefix_of(stream, kMost), nullptr);
      while (!run.generator->read_prompt(stream)) {
      }
      const auto prefix = run.generator->prefix_of(stream, kMost);
      ASSERT_NE(prefix, nullptr);
      EXPECT_EQ(run.generator->prefix_of(stream, prefix->cache.bytes() - 1), nullptr);
      EXPECT_EQ(prefix->positions.size(), PromptPrefix::positions_of(other));
      EXPECT_TRUE(prefix->begins(other));
      ASSERT_TRUE(run.generator->begin(behind, other, drawn(2), prefix));
      EXPECT_EQ(behind.prompt_read(), 0u);
      while (!run.generator->read_prompt(behind)) {
      }
      EXPECT_EQ(behind.prompt_read(), other.positions.size() - prefix->positions.size());
      EXPECT_EQ(run.generator->prefix_of(behind, kMost), nullptr);
      EXPECT_EQ(run.frames(behind), alone(weights, other, drawn(2)));
      Prompt others = other;
      others.voice[0] += 1;
      EXPECT_FALSE(prefix->begins(others));
      others = other;
      ++others.positions[4].codec;
      EXPECT_FALSE(prefix->begins(others));
      // A full stream ends where it would without a prefix.
      FrameStream full = good(run.generator->make_stream(other.positions.size() + 3));
      ASSERT_TRUE(run.generator->begin(full, other, drawn(2, 40), prefix));
      while (!run.generator->read_prompt(full)) {
      }
      run.frames(full);
      EXPECT_EQ(full.frames(), 4u);
      EXPECT_TRUE(full.is_full());
    }
  }
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
  EXPECT_TRUE(stream.is_full());
  // The stream begins anew.
  for (const size_t frames : {5u, 3u}) {
    ASSERT_TRUE(run.generator->begin(stream, prompt, greedy(frames)));
    ASSERT_TRUE(run.generator->read_prompt(stream));
    EXPECT_EQ(run.frames(stream), beginning(english.codes, frames));
    EXPECT_EQ(stream.end(), End::kLength);
    EXPECT_FALSE(stream.is_full());
  }
}

TEST(FrameGenerator, PositionsHoldPromptAndFrames) {
  const auto weights = weights_of("custom_voice");
  const Prompt prompt = prompt_of(case_of("english"), weights->config);
  Running run(weights, 1, 3);
  const FrameGenerator& generator = *run.generator;
  EXPECT_EQ(generator.most_streams(), 3u);
  EXPECT_EQ(generator.positions_for(prompt, greedy(5)), prompt.positions.size() + 4);
  EXPECT_EQ(generator.positions_for(prompt, greedy(0)), prompt.positions.size());
  for (const size_t frames : {size_t{8192}, std::numeric_limits<size_t>::max()})
    EXPECT_EQ(generator.positions_for(prompt, greedy(frames)), nn::kMaxPositions);
  EXPECT_TRUE(generator.make_stream(generator.positions_for(prompt, greedy(8192))).has_value());
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

TEST(FrameGenerator, BadSettingsAndVoicesAreRefused) {
  const auto weights = weights_of("base");
  const Prompt prompt = prompt_of(case_of("voice"), weights->config);
  Running run(weights);
  FrameStream stream = good(run.generator->make_stream(128));
  const auto expect_error = [&](const Prompt& given, const SpeechSettings& settings, const char* words) {
    const Status status = run.generator->begin(stream, given, settings);
    ASSERT_FALSE(status.has_value()) << words;
    EXPECT_EQ(status.error().code, Code::kInvalidArgument);
    EXPECT_NE(status.error().message.find(words), std::string::npos) << status.error().message;
  };
  const float nan = std::nanf(""), inf = std::numeric_limits<float>::infinity();
  for (const float penalty : {0.0f, -1.0f, nan, inf}) {
    SpeechSettings settings = drawn(1);
    settings.draws.penalty = penalty;
    expect_error(prompt, settings, "a penalty of");
  }
  for (DrawSettings GenerationConfig::*const draws : {&GenerationConfig::talker, &GenerationConfig::predictor}) {
    for (const float temperature : {-0.5f, nan, inf}) {
      SpeechSettings settings = drawn(1);
      (settings.draws.*draws).temperature = temperature;
      expect_error(prompt, settings, "a temperature of");
    }
    for (const float top_p : {0.0f, -1.0f, 1.5f, nan}) {
      SpeechSettings settings = drawn(1);
      (settings.draws.*draws).top_p = top_p;
      expect_error(prompt, settings, "a top_p of");
    }
  }
  for (const size_t width : {0u, 31u, 33u}) {
    Prompt other = prompt;
    other.voice.resize(width);
    expect_error(other, drawn(1), "it must have 32");
  }
  expect_error({}, drawn(1), "without positions");
  EXPECT_TRUE(run.generator->begin(stream, prompt, drawn(1)));
}

TEST(FrameGenerator, MemoryOfPredictorsIsBoundedTogether) {
  const auto checkpoint = Checkpoint::open(data_folder("custom_voice"));
  ASSERT_TRUE(checkpoint.has_value());
  auto weights = read_weights(checkpoint->tensors().tensors, checkpoint->config(), {}, "folder");
  ASSERT_TRUE(weights.has_value());
  weights->predictor.shape.layers = 20000;  // 82 MB a stream
  ThreadTeam team(1);
  nn::Runner runner(team);
  const auto made = CodePredictor::make(std::make_shared<const Weights>(*std::move(weights)), runner, kMaxStreams);
  ASSERT_FALSE(made.has_value());
  EXPECT_EQ(made.error().code, Code::kLimitExceeded) << made.error().message;
}

// Rows [rows of a frame, P] that the head of a codebook reads.
std::vector<std::vector<float>> head_rows(const std::shared_ptr<const Weights>& weights, const Prompt& prompt,
                                          const SpeechSettings& settings, size_t head) {
  std::vector<std::vector<float>> found;
  Running run(weights, 1, 1);
  run.generator->predictor().set_probe([&](std::string_view stage, size_t pass, View<const float, 2> rows) {
    if (stage == "hidden" && pass == head) found.emplace_back(rows.row(0), rows.row(0) + rows.extent(1));
  });
  FrameStream stream = run.begun(prompt, settings);
  run.frames(stream);
  return found;
}

// A head whose first logit overflows for the one stream and is far below the others for the other.
TEST(FrameGenerator, FaultOfPredictorEndsItsStreamAlone) {
  constexpr size_t kHead = 3, kFrames = 2;
  const auto whole = weights_of("base");
  const Prompt bad = prompt_of(case_of("voice"), whole->config),
               good_one = prompt_of(case_of("reference_long"), whole->config);
  const std::vector<float> one = head_rows(whole, bad, greedy(1), kHead).at(0);
  const std::vector<std::vector<float>> others = head_rows(whole, good_one, greedy(kFrames), kHead);
  std::vector<float> head(32 * one.size(), 0.0f);
  float sum = 0;
  for (size_t i = 0; i < one.size(); ++i) {
    if (one[i] <= 0 || std::ranges::any_of(others, [&](const auto& row) { return row[i] > 0; })) continue;
    head[i] = 3e38f;
    sum += one[i];
  }
  ASSERT_GT(sum, 1.2f);
  const auto checkpoint = Checkpoint::open(data_folder("base"));
  ASSERT_TRUE(checkpoint.has_value());
  std::vector<TensorRef> tensors = checkpoint->tensors().tensors;
  const auto found =
      std::ranges::find(tensors, fmt::format("talker.code_predictor.lm_head.{}.weight", kHead), &TensorRef::name);
  ASSERT_NE(found, tensors.end());
  found->dtype = DType::kF32;
  found->bytes = std::as_bytes(std::span(head));
  auto read = read_weights(tensors, checkpoint->config(), {}, "folder");
  ASSERT_TRUE(read.has_value()) << read.error().message;
  const auto weights = std::make_shared<const Weights>(*std::move(read));

  Running run(weights, 2, 2);
  std::vector<FrameStream> streams;
  streams.push_back(run.begun(bad, greedy(kFrames)));
  streams.push_back(run.begun(good_one, greedy(kFrames)));
  std::array<std::vector<int32_t>, 2> codes;
  run_together(*run.generator, streams, codes);
  EXPECT_EQ(streams[0].end(), End::kFault);
  EXPECT_EQ(streams[0].frames(), 0u);
  EXPECT_TRUE(codes[0].empty());
  EXPECT_EQ(streams[1].end(), End::kLength);
  EXPECT_EQ(codes[1], alone(weights, good_one, greedy(kFrames)));
  // The stream of the fault begins anew.
  ASSERT_TRUE(run.generator->begin(streams[0], good_one, greedy(kFrames)));
  while (!run.generator->read_prompt(streams[0])) {
  }
  EXPECT_EQ(run.frames(streams[0]), codes[1]);
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
