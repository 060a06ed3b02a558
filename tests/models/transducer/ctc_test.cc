// The CTC head against the maker's log probabilities, read by the definition.
#include "models/transducer/ctc.h"

#include <gtest/gtest.h>

#include <cmath>

#include "allocation_count.h"
#include "decoding_fixture.h"

namespace syrinx::transducer {
namespace {

std::vector<Emission> by_definition(const std::vector<float>& log_probs, size_t labels) {
  std::vector<Emission> out;
  size_t last = labels - 1;
  for (size_t t = 0; t * labels < log_probs.size(); ++t) {
    const float* const row = &log_probs[t * labels];
    const auto best = static_cast<size_t>(std::max_element(row, row + labels) - row);
    const auto n = static_cast<float>(labels);
    const float sure = (std::exp(row[best]) * n - 1.0f) / (n - 1.0f);
    if (best != labels - 1 && best != last) {
      out.push_back({.frame = static_cast<int64_t>(t), .label = static_cast<int32_t>(best), .confidence = sure});
    } else if (best != labels - 1) {
      ++out.back().duration;
      out.back().confidence = std::min(out.back().confidence, sure);
    }
    last = best;
  }
  return out;
}

class Ctc : public ::testing::Test {
 protected:
  DecodingCase case_ = DecodingCase("rnnt");
  ThreadTeam team_ = ThreadTeam(2);
  nn::Runner runner_ = nn::Runner(team_);
  CtcDecoder decoder_ = CtcDecoder(case_.weights(), runner_, {.measure = ConfidenceMeasure::kMaxProb}, 16);
};

TEST_F(Ctc, AnyChunksGiveTheMakersLabels) {
  const std::vector<Emission> want =
      by_definition(case_.floats("ctc.log_probs"), case_.weights()->config.vocabulary + 1);
  ASSERT_GT(want.size(), 10u);
  for (const size_t chunk : {1, 3, 16, 60}) {
    CtcState state;
    std::vector<Emission> found;
    found.reserve(case_.frame_count());
    const size_t before = allocation_count();
    for (size_t first = 0; first < case_.frame_count(); first += chunk)
      decoder_.decode(case_.frames(first, std::min(chunk, case_.frame_count() - first)), state, found);
    EXPECT_EQ(allocation_count() - before, 0u);
    ASSERT_EQ(found.size(), want.size());
    for (size_t i = 0; i < want.size(); ++i) {
      EXPECT_EQ(found[i].label, want[i].label) << i;
      EXPECT_EQ(found[i].frame, want[i].frame) << i;
      EXPECT_EQ(found[i].duration, want[i].duration) << i;
      EXPECT_NEAR(found[i].confidence, want[i].confidence, 1e-5) << i;
    }
    EXPECT_EQ(state.faults, 0u);
  }
}

TEST_F(Ctc, FramesThatAreNotFiniteAreBlank) {
  std::vector<float> frames(3 * kFrameWidth, NAN);
  std::copy_n(case_.frames().data(), kFrameWidth, frames.data());
  CtcState state;
  std::vector<Emission> found;
  decoder_.decode({frames.data(), {3, kFrameWidth}}, state, found);
  EXPECT_LE(found.size(), 1u);
  EXPECT_EQ(state.faults, kLogitsNotFinite);
  EXPECT_EQ(state.decoded, 3);
}

}  // namespace
}  // namespace syrinx::transducer
