// The narrow precisions against f32, teacher-forced: both get the same prompt and the maker's latents, so that each
// step stands for itself.  docs/pocket_tts.md has the figures of the full-size models.
#include <cmath>
#include <map>

#include "fixtures.h"
#include "models/pocket_tts/flow_head.h"
#include "models/pocket_tts/flow_lm.h"

namespace syrinx::pocket {
namespace {

using Stages = std::map<std::string, std::vector<std::vector<float>>>;  // rows by stage

std::vector<float> copy_of(View<const float, 2> rows, size_t n) { return {rows.row(n), rows.row(n) + rows.extent(1)}; }

// Everything that a model computes from the reference's prompt and latents.  The head gets `hidden` of the f32 model,
// or what it reads itself where there is none.
Stages run_forced(const TestModel& model, Precision precision, const Stages* exact) {
  const Arrays reference(model.name + "/reference.safetensors");
  const auto weights = load(model, precision);
  if (weights == nullptr) return {};
  ThreadTeam team(2);
  nn::Runner runner(team);
  FlowLm flow(weights, runner);
  auto schedule = make_schedule(*weights, model.evaluations);
  EXPECT_TRUE(schedule.has_value());
  FlowHead head(weights, *schedule, runner);
  auto state = FlowLmState::make(*weights, 64);
  EXPECT_TRUE(state.has_value());
  Stages seen;
  std::string phase = "voice";
  flow.set_probe([&](std::string_view what, size_t layer, View<const float, 2> rows) {
    if (what != "layer") return;
    for (size_t n = 0; n < rows.extent(0); ++n)
      seen[fmt::format("{}.layer.{}", phase, layer)].push_back(copy_of(rows, n));
  });
  const std::vector<float> voice = reference.get("voice.projected"), fed = reference.get("step.latent"),
                           noise = reference.get("step.noise");
  EXPECT_TRUE(flow.prefill_projected(matrix_view(voice, model.config.transformer.width), *state).has_value());
  phase = "text";
  EXPECT_TRUE(flow.prefill_text(reference.get<int32_t>("text.ids"), *state).has_value());
  phase = "step";
  for (size_t i = 0; i < fed.size() / model.latent; ++i) {
    const OneStep step = one_step(flow, i == 0 ? nullptr : &fed[(i - 1) * model.latent], *state);
    seen["hidden"].push_back(copy_of(step.hidden, 0));
    seen["logit"].push_back({step.eos_logit});
    const std::vector<float> read = (exact != nullptr ? *exact : seen).at("hidden")[i];
    std::vector<float> latent(model.latent);
    sample_one(head, {read.data(), {1, read.size()}}, std::span(noise).subspan(i * model.latent, model.latent), latent);
    seen["latent"].push_back(latent);
  }
  return seen;
}

double cosine(const std::vector<float>& a, const std::vector<float>& b) {
  double ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    ab += static_cast<double>(a[i]) * b[i];
    aa += static_cast<double>(a[i]) * a[i];
    bb += static_cast<double>(b[i]) * b[i];
  }
  return ab / std::sqrt(aa * bb);
}

struct Bound {
  Precision precision;
  double hidden, others;  // cosines of single rows
};

class PocketPrecision : public ::testing::TestWithParam<TestModel> {};
INSTANTIATE_TEST_SUITE_P(All, PocketPrecision, ::testing::ValuesIn(test_models()), name_of);

TEST_P(PocketPrecision, TeacherForcedStagesStayNearF32) {
  const Stages exact = run_forced(GetParam(), Precision::kF32, nullptr);
  ASSERT_FALSE(exact.empty());
  for (const Bound& bound : {Bound{Precision::kBf16, 0.9999, 0.9998}, Bound{Precision::kInt8, 0.999, 0.998},
                             Bound{Precision::kInt4, 0.993, 0.98}}) {
    const Stages narrow = run_forced(GetParam(), bound.precision, &exact);
    ASSERT_EQ(narrow.size(), exact.size());
    double worst_hidden = 1.0, worst_layer = 1.0, worst_latent = 1.0, worst_logit = 0.0;
    for (const auto& [stage, rows] : exact) {
      ASSERT_EQ(narrow.at(stage).size(), rows.size()) << stage;
      for (size_t n = 0; n < rows.size(); ++n) {
        if (stage == "logit") {
          worst_logit = std::max(worst_logit, std::fabs(static_cast<double>(narrow.at(stage)[n][0]) - rows[n][0]));
          continue;
        }
        const double c = cosine(narrow.at(stage)[n], rows[n]);
        double& worst = stage == "hidden" ? worst_hidden : stage == "latent" ? worst_latent : worst_layer;
        worst = std::min(worst, c);
        EXPECT_GE(c, stage == "hidden" ? bound.hidden : bound.others) << stage << " row " << n;
      }
    }
    EXPECT_LT(worst_hidden, 1.0) << "nothing was narrowed";
    std::printf("%s: cosine of layers %.5f, hidden %.5f, latent %.5f; logit within %.3f\n",
                precision_name(bound.precision), worst_layer, worst_hidden, worst_latent, worst_logit);
  }
}

}  // namespace
}  // namespace syrinx::pocket
