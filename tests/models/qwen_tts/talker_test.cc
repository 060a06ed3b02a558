// Prompts, talker and code predictor beside the maker's package (tools/reference/qwen_tts_talker.py).
#include "talker_cases.h"

namespace syrinx::qwen_tts {
namespace {

using namespace test;

constexpr double kBound = 1e-5;
constexpr size_t kFrames = 10, kDetailed = 3;

void append(std::vector<float>& to, View<const float, 2> rows) {
  for (size_t n = 0; n < rows.extent(0); ++n) to.insert(to.end(), rows.row(n), rows.row(n) + rows.extent(1));
}

// All stages of a case, by the names of the reference.
struct Seen {
  explicit Seen(const Case& one, Precision precision = Precision::kF32, std::span<const int32_t> forced = {})
      : run(weights_of(one.kind, precision)), prompt(prompt_of(one, run.generator->weights().config)) {
    run.generator->set_probe(
        [&](std::string_view stage, View<const float, 2> rows) { append(stages[std::string(stage)], rows); });
    run.generator->predictor().set_probe([&](std::string_view stage, size_t, View<const float, 2> rows) {
      append(stages["predictor." + std::string(stage)], rows);
    });
    run.generator->talker().set_probe([&](size_t layer, View<const float, 2> rows) {
      std::vector<float>& first = stages[fmt::format("layer.{}", layer)];
      if (first.empty()) append(first, rows);
    });
    SpeechSettings settings = greedy(kFrames);
    settings.forced = forced;
    FrameStream stream = run.begun(prompt, settings);
    codes = run.frames(stream);
  }

  Running run;
  Prompt prompt;
  std::map<std::string, std::vector<float>> stages;
  std::vector<int32_t> codes;
};

std::vector<float> beginning(const std::vector<float>& values, size_t count) {
  return {values.begin(), values.begin() + static_cast<std::ptrdiff_t>(std::min(count, values.size()))};
}

TEST(QwenTtsTalker, StagesMatchTheMaker) {
  double worst = 0;
  for (const Case& one : cases()) {
    SCOPED_TRACE(one.name);
    const Seen seen(one);
    const auto compare = [&](const char* stage, const std::vector<float>& ours) {
      const double difference = relative(ours, arrays().get(one.name + "." + stage));
      EXPECT_LT(difference, kBound) << stage;
      worst = std::max(worst, difference);
    };
    const auto stage = [&](const char* name) { return seen.stages.at(name); };
    compare("prompt", stage("prompt"));
    compare("layer.0", stage("layer.0"));
    // The last layer makes the last row alone.
    const Config& config = seen.run.generator->weights().config;
    const size_t width = config.talker.width;
    const std::string last_layer = fmt::format("layer.{}", config.talker.layers - 1);
    const std::vector<float> last = arrays().get(one.name + "." + last_layer);
    EXPECT_LT(relative(seen.stages.at(last_layer), {last.end() - static_cast<std::ptrdiff_t>(width), last.end()}),
              kBound);
    // The maker reads the last frame too.
    const std::vector<float> next = arrays().get(one.name + ".next"), norm = arrays().get(one.name + ".norm");
    EXPECT_LT(relative(stage("next"), beginning(next, (kFrames - 1) * width)), kBound);
    EXPECT_LT(relative(stage("hidden"), beginning(norm, kFrames * width)), kBound);
    const std::vector<float> logits = arrays().get(one.name + ".logits");
    EXPECT_LT(relative(beginning(stage("logits"), logits.size()), logits), kBound);
    for (const char* const name : {"predictor.hidden", "predictor.logits"}) {
      const std::vector<float> detailed = arrays().get(one.name + "." + name);
      const size_t columns =
          std::string_view(name) == "predictor.logits" ? config.predictor_codes : config.predictor.width;
      EXPECT_EQ(detailed.size(), kDetailed * 15 * columns);
      compare(name, beginning(stage(name), detailed.size()));
    }
  }
  RecordProperty("worst", fmt::format("{:.2g}", worst));
}

TEST(QwenTtsTalker, GreedyCodesMatchTheMaker) {
  for (const Case& one : cases()) {
    SCOPED_TRACE(one.name);
    EXPECT_EQ(one.codes.size(), kFrames * 16);
    EXPECT_EQ(Seen(one).codes, one.codes);
  }
}

// Penalty and suppression: the end is forbidden in the first two frames, all other tokens that are no codes always.
TEST(QwenTtsTalker, ScoresMatchTheProcessors) {
  for (const Case& one : cases()) {
    SCOPED_TRACE(one.name);
    const Seen seen(one);
    const Config& config = seen.run.generator->weights().config;
    const std::vector<float>& ours = seen.stages.at("scores");
    const std::vector<float> theirs = arrays().get(one.name + ".scores");
    const size_t kept = config.codes() + 3;
    ASSERT_EQ(ours.size(), kFrames * config.vocabulary);
    ASSERT_GE(theirs.size(), kFrames * kept);
    float worst = 0;
    for (size_t frame = 0; frame < kFrames; ++frame)
      for (size_t i = 0; i < config.vocabulary; ++i) {
        const float own = ours[frame * config.vocabulary + i];
        const bool allowed = i < config.codes() || (i == static_cast<size_t>(config.codec.eos) && frame >= 2);
        EXPECT_EQ(std::isfinite(own), allowed) << frame << " " << i;
        if (i >= kept) continue;
        const float theirs_here = theirs[frame * kept + i];
        EXPECT_EQ(std::isfinite(theirs_here), allowed) << frame << " " << i;
        worst = allowed ? std::max(worst, std::fabs(own - theirs_here)) : worst;
      }
    EXPECT_LT(worst, 5e-5);  // of scores up to 5
  }
}

// Stages of the codes of f32, forced, so that a different draw does not lead elsewhere.
double logit_error(const Case& one, Precision precision) {
  const Seen exact(one), seen(one, precision, one.codes);
  EXPECT_EQ(seen.codes, one.codes);
  const double talker = relative(seen.stages.at("logits"), exact.stages.at("logits"));
  const double predictor = relative(seen.stages.at("predictor.logits"), exact.stages.at("predictor.logits"));
  return std::max(talker, predictor);
}

TEST(QwenTtsTalker, NarrowPrecisionsStayNear) {
  for (const char* const name : {"english", "instructed", "reference_first"}) {
    const Case one = case_of(name);
    const double bf16 = logit_error(one, Precision::kBf16), int8 = logit_error(one, Precision::kInt8),
                 int4 = logit_error(one, Precision::kInt4);
    EXPECT_LT(bf16, 0.03) << name;
    EXPECT_LT(int8, 0.1) << name;
    EXPECT_LT(int4, 0.25) << name;
    EXPECT_GT(int4, int8) << name;
    RecordProperty(name, fmt::format("bf16 {:.2g}, int8 {:.2g}, int4 {:.2g}", bf16, int8, int4));
  }
}

}  // namespace
}  // namespace syrinx::qwen_tts
