// Prediction network, joint and greedy decoding against the maker's classes; then the rules of a step.
#include "models/transducer/greedy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "allocation_count.h"
#include "decoding_fixture.h"
#include "models/transducer/boost_tree.h"
#include "seen_stages.h"

namespace syrinx::transducer {
namespace {

constexpr double kBound = 1e-5;  // of a stage's largest value
constexpr size_t kBlock = 16;    // frames that the decoders here read at once

using Emissions = std::vector<Emission>;

class Greedy : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(All, Greedy, ::testing::ValuesIn(kDecodingCases),
                         [](const auto& p) { return std::string(p.param); });

std::vector<int32_t> labels_of(const Emissions& emissions) {
  std::vector<int32_t> out;
  for (const Emission& e : emissions) out.push_back(e.label);
  return out;
}
std::vector<int32_t> frames_of(const Emissions& emissions) {
  std::vector<int32_t> out;
  for (const Emission& e : emissions) out.push_back(static_cast<int32_t>(e.frame));
  return out;
}
std::vector<int32_t> durations_of(const Emissions& emissions) {
  std::vector<int32_t> out;
  for (const Emission& e : emissions) out.push_back(static_cast<int32_t>(e.duration));
  return out;
}

struct Decoding {
  explicit Decoding(const std::shared_ptr<const DecoderWeights>& weights, const GreedyOptions& options = {},
                    int threads = 1, size_t streams = 1)
      : team(threads), runner(team), decoder(GreedyDecoder::make(weights, runner, options, streams, kBlock)) {}
  Emissions all(DecoderState& state, View<const float, 2> frames) {
    Emissions out;
    const GreedyDecoder::Job job{&state, frames, &out};
    decoder->decode({&job, 1});
    return out;
  }

  ThreadTeam team;
  nn::Runner runner;
  std::unique_ptr<GreedyDecoder> decoder;
};

void expect_same(const Emissions& ours, const Emissions& theirs) {
  ASSERT_EQ(ours.size(), theirs.size());
  for (size_t i = 0; i < ours.size(); ++i) {
    EXPECT_EQ(ours[i].label, theirs[i].label) << i;
    EXPECT_EQ(ours[i].frame, theirs[i].frame) << i;
    EXPECT_EQ(ours[i].duration, theirs[i].duration) << i;
    EXPECT_EQ(ours[i].logit, theirs[i].logit) << i;
    EXPECT_EQ(ours[i].confidence, theirs[i].confidence) << i;
  }
}

TEST_P(Greedy, PredictionAndJointAgreeWithTheMakers) {
  for (const size_t table_bytes : {kMaxGateTableBytes, size_t{0}}) {
    const DecodingCase c(GetParam(), {.max_table_bytes = table_bytes});
    ASSERT_EQ(c.weights()->gates_by_label, table_bytes > 0);
    ThreadTeam team(2);
    nn::Runner runner(team);
    Prediction prediction(c.weights(), runner, 1);
    Joint joint(c.weights(), runner, 1, 1);
    DecoderState state(*c.weights());
    DecoderState* const states[] = {&state};
    SeenStages seen;
    std::vector<int32_t> labels = c.ids("pred.labels");
    labels.insert(labels.begin(), -1);
    for (const int32_t label : labels) {
      state.head().label = label;
      prediction.step(states);
      runner.team().run([&](int member) {
        const nn::Part part{.member = member, .rank = member, .size = team.size()};
        joint.encode(part, c.frames(0, 1), 0);
        team.barrier();
        if (member == 0) joint.pair(0, joint.encoded(0), state.projection());
        team.barrier();
        joint.multiply(part, 1);
      });
      seen.add("pred.g", state.hidden(c.weights()->layers.size() - 1));
      seen.add("joint.logits", joint.logits(0));
    }
    for (const StageDifference& stage : seen.differences(c.arrays())) {
      EXPECT_LE(stage.worst, kBound) << stage.stage;
      std::printf("%s %s %.2g\n", GetParam(), stage.stage.c_str(), stage.worst);
    }
    EXPECT_EQ(seen.differences(c.arrays()).size(), 2u);
  }
}

TEST_P(Greedy, LabelsFramesDurationsAndConfidenceAreTheMakers) {
  for (const auto& [name, symbols] : {std::pair<std::string, size_t>{"greedy", 10}, {"forced", 2}}) {
    const DecodingCase c(GetParam(), {.max_symbols = symbols});
    for (const auto measure : {ConfidenceMeasure::kTsallisExp, ConfidenceMeasure::kMaxProb}) {
      Decoding run(c.weights(), {.confidence = {.measure = measure}}, 2);
      DecoderState state(*c.weights());
      const Emissions found = run.all(state, c.frames());
      EXPECT_EQ(labels_of(found), c.ids(name + ".labels"));
      EXPECT_EQ(frames_of(found), c.ids(name + ".frames"));
      if (c.has(name + ".durations")) {
        EXPECT_EQ(durations_of(found), c.ids(name + ".durations"));
      }
      EXPECT_EQ(state.head().faults, 0u);
      if (name == "forced") continue;
      const std::vector<float> want =
          c.floats(measure == ConfidenceMeasure::kMaxProb ? "greedy.max_prob" : "greedy.tsallis");
      for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(found[i].confidence, want[i], 2e-5) << i;
    }
  }
}

TEST_P(Greedy, FavouredPhrasesAreTheMakers) {
  const DecodingCase c(GetParam());
  std::vector<std::vector<int32_t>> phrases(1);
  for (const int32_t label : c.ids("phrases")) {
    if (label < 0) {
      phrases.emplace_back();
    } else {
      phrases.back().push_back(label);
    }
  }
  phrases.pop_back();
  const auto tree = BoostTree::make(phrases, 1.5f, c.weights()->config.vocabulary);
  ASSERT_TRUE(tree.has_value()) << tree.error().message;
  Decoding run(c.weights(), {.boost_scale = 1.5f});
  DecoderState state(*c.weights());
  state.head().boost = tree->get();
  const Emissions found = run.all(state, c.frames());
  EXPECT_EQ(labels_of(found), c.ids("boosted.labels"));
  EXPECT_EQ(frames_of(found), c.ids("boosted.frames"));
  EXPECT_NE(labels_of(found), c.ids("greedy.labels"));
}

// Durations lead over the borders of chunks, as of the decoder's own rounds.
TEST_P(Greedy, AnyChunksGiveTheSame) {
  const DecodingCase c(GetParam());
  Decoding run(c.weights(), {.confidence = {.measure = ConfidenceMeasure::kMaxProb}});
  DecoderState state(*c.weights());
  const Emissions whole = run.all(state, c.frames());
  for (const size_t chunk : {1, 2, 3, 7, 16, 17, 33}) {
    state.reset();
    Emissions parts;
    for (size_t first = 0; first < c.frame_count(); first += chunk) {
      const Emissions more = run.all(state, c.frames(first, std::min(chunk, c.frame_count() - first)));
      parts.insert(parts.end(), more.begin(), more.end());
    }
    SCOPED_TRACE(chunk);
    expect_same(parts, whole);
  }
}

// Streams of different lengths that begin in different places, in f32 and narrowed, on one and two threads.
TEST_P(Greedy, SameLabelsAloneAndTogether) {
  for (const Precision precision : {Precision::kF32, Precision::kBf16, Precision::kInt8}) {
    const DecodingCase c(GetParam(), {.precision = precision});
    const GreedyOptions options{.confidence = {.measure = ConfidenceMeasure::kTsallisExp}};
    Decoding alone(c.weights(), options), together(c.weights(), options, 2, 5);
    std::vector<DecoderState> states;
    std::vector<Emissions> found(5);
    std::vector<GreedyDecoder::Job> jobs;
    const size_t firsts[] = {0, 1, 20, 0, 41}, counts[] = {60, 9, 40, 0, 19};
    for (size_t i = 0; i < 5; ++i) states.emplace_back(*c.weights());
    for (size_t i = 0; i < 5; ++i) jobs.push_back({&states[i], c.frames(firsts[i], counts[i]), &found[i]});
    together.decoder->decode(jobs);
    for (size_t i = 0; i < 5; ++i) {
      DecoderState state(*c.weights());
      SCOPED_TRACE(i);
      expect_same(found[i], alone.all(state, c.frames(firsts[i], counts[i])));
      EXPECT_EQ(std::memcmp(state.projection().data(), states[i].projection().data(), state.projection().size_bytes()),
                0);
      EXPECT_EQ(state.head().frame, states[i].head().frame);
    }
  }
}

TEST_P(Greedy, AStepAllocatesNothing) {
  const DecodingCase c(GetParam(), {.precision = Precision::kInt8});
  Decoding run(c.weights(), {.confidence = {.measure = ConfidenceMeasure::kTsallisExp}}, 2, 2);
  std::vector<DecoderState> states;
  std::vector<Emissions> found(2);
  for (size_t i = 0; i < 2; ++i) states.emplace_back(*c.weights());
  for (Emissions& emissions : found) emissions.reserve(1000);
  const size_t before = allocation_count();
  for (size_t first = 0; first + 4 <= c.frame_count(); first += 4) {
    const GreedyDecoder::Job jobs[] = {{&states[0], c.frames(first, 4), &found[0]},
                                       {&states[1], c.frames(first, 3), &found[1]}};
    run.decoder->decode(jobs);
  }
  for (DecoderState& state : states) state.reset();
  EXPECT_EQ(allocation_count() - before, 0u);
  EXPECT_FALSE(found[0].empty());
}

TEST_P(Greedy, AStreamResetIsANewOne) {
  const DecodingCase c(GetParam());
  Decoding run(c.weights());
  DecoderState fresh(*c.weights()), used(*c.weights());
  run.all(used, c.frames(10, 30));
  used.reset();
  expect_same(run.all(used, c.frames()), run.all(fresh, c.frames()));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(&used.head()) % 64, 0u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(used.projection().data()) % 64, 0u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(used.hidden(0).data()) % 64, 0u);
}

TEST_P(Greedy, LabelsForgottenLeaveAFreshStateAtItsFrame) {
  const DecodingCase c(GetParam());
  Decoding run(c.weights());
  DecoderState used(*c.weights()), fresh(*c.weights());
  run.all(used, c.frames());
  const int64_t decoded = used.head().decoded, ahead = used.head().frame - decoded;
  used.forget_labels();
  EXPECT_EQ(used.head().decoded, decoded);
  EXPECT_EQ(used.head().label, -1);
  Emissions again = run.all(used, c.frames());
  if (ahead == 0) {
    for (Emission& emission : again) emission.frame -= decoded;
    expect_same(again, run.all(fresh, c.frames()));
  } else {
    for (const Emission& emission : again) EXPECT_GE(emission.frame, decoded + ahead);
  }
}

TEST_P(Greedy, NonFiniteFramesFaultTheirStream) {
  const DecodingCase c(GetParam());
  Decoding run(c.weights(), {}, 1, 2);
  std::vector<float> broken(c.frame_count() * kFrameWidth);
  std::copy_n(c.frames().data(), broken.size(), broken.data());
  // More of them than the longest duration, which could lead over a few.
  for (size_t t = 5; t < 15; ++t) broken[t * kFrameWidth + t % 4] = t % 2 == 0 ? NAN : INFINITY;
  DecoderState bad(*c.weights()), good(*c.weights()), lone(*c.weights());
  Emissions of_bad, of_good;
  const GreedyDecoder::Job jobs[] = {{&bad, {broken.data(), {c.frame_count(), kFrameWidth}}, &of_bad},
                                     {&good, c.frames(), &of_good}};
  run.decoder->decode(jobs);
  EXPECT_EQ(bad.head().faults, kLogitsNotFinite);
  EXPECT_EQ(good.head().faults, 0u);
  expect_same(of_good, run.all(lone, c.frames()));
  EXPECT_GE(bad.head().frame, bad.head().decoded);
}

TEST(GreedyTdt, DurationsThatAreNotFiniteRaiseAFault) {
  const DecodingCase c("tdt");
  const DecoderWeights& w = *c.weights();
  const_cast<float*>(w.joint_output.view.bias)[w.config.vocabulary + 2] = NAN;  // the labels' logits stay finite
  Decoding run(c.weights());
  DecoderState state(w);
  run.all(state, c.frames());
  EXPECT_EQ(state.head().faults, kLogitsNotFinite);
}

TEST_P(Greedy, PenaltyOfTheBlank) {
  const DecodingCase c(GetParam());
  Decoding plain(c.weights()), eager(c.weights(), {.blank_penalty = 3.0f}),
      silent(c.weights(), {.blank_penalty = -1000.0f});
  DecoderState a(*c.weights()), b(*c.weights()), d(*c.weights());
  const size_t found = plain.all(a, c.frames()).size();
  EXPECT_GT(eager.all(b, c.frames()).size(), found);
  EXPECT_EQ(silent.all(d, c.frames()).size(), 0u);
}

TEST(BoostTree, RefusesInvalidPhrases) {
  using Phrases = std::vector<std::vector<int32_t>>;
  const auto code = [](const Phrases& phrases, float score = 1.0f) {
    const auto tree = BoostTree::make(phrases, score, 10);
    return tree.has_value() ? Code::kInternal : tree.error().code;
  };
  EXPECT_EQ(code({{1, 2}, {3}}), Code::kInternal);
  EXPECT_EQ(code({{1}, {}}), Code::kInvalidArgument);
  EXPECT_EQ(code({{10}}), Code::kInvalidArgument);
  EXPECT_EQ(code({{-1}}), Code::kInvalidArgument);
  for (const float score : {0.0f, -1.0f, 101.0f, NAN}) EXPECT_EQ(code({{1}}, score), Code::kInvalidArgument);
  EXPECT_EQ(code({std::vector<int32_t>(kMaxBoostLabels + 1, 1)}), Code::kLimitExceeded);
  EXPECT_EQ(code(Phrases(kMaxBoostPhrases + 1, {1})), Code::kLimitExceeded);
}

// Against bonuses worked out by hand, and choose() against a search over all labels.
TEST(BoostTree, BonusesAreEarnedAndTakenBack) {
  const std::vector<std::vector<int32_t>> phrases = {{1, 2, 3}, {2, 4}, {1, 2, 5, 6}};
  const auto tree = *BoostTree::make(phrases, 1.0f, 8);
  const float second = 2.0f + std::log(2.0f), third = 2.0f + std::log(3.0f);
  EXPECT_FLOAT_EQ(tree->bonus(0, 1), 1.0f);
  EXPECT_FLOAT_EQ(tree->bonus(0, 7), 0.0f);
  const uint32_t one = tree->next(0, 1), two = tree->next(one, 2);
  EXPECT_FLOAT_EQ(tree->bonus(one, 2), second);
  EXPECT_FLOAT_EQ(tree->bonus(one, 7), -1.0f);
  EXPECT_FLOAT_EQ(tree->bonus(two, 3), third);
  EXPECT_FLOAT_EQ(tree->bonus(two, 4), -second + second);  // falls back to the phrase 2 4, which goes on
  EXPECT_FLOAT_EQ(tree->bonus(two, 7), -1.0f - second);
  const uint32_t end = tree->next(two, 3);
  EXPECT_FLOAT_EQ(tree->bonus(end, 7), 0.0f);  // heard to its end: kept
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0.0f, 2.0f);
  for (uint32_t node = 0; node < tree->size(); ++node) {
    for (int round = 0; round < 50; ++round) {
      std::vector<float> logits(8), sums(8);
      for (size_t k = 0; k < 8; ++k) {
        logits[k] = normal(random);
        sums[k] = logits[k] + 0.7f * tree->bonus(node, static_cast<int32_t>(k));
      }
      const kernels::Peak want = kernels::argmax(sums), got = tree->choose(node, logits, 0.7f);
      EXPECT_EQ(got.index, want.index);
      EXPECT_NEAR(got.value, want.value, 1e-5);
    }
  }
}

}  // namespace
}  // namespace syrinx::transducer
