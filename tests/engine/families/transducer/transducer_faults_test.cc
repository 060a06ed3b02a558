// Checkpoints whose values are numbers, but too great to compute with: what is told of it, and when.
#include <gtest/gtest.h>

#include <limits>

#include "tests/engine/families/transducer/edited_transducer.h"

namespace syrinx {
namespace {

constexpr size_t kValues = 16;  // of a tensor; each one here has as many at least

// Some values are the greatest of bf16; every other one is as in the small checkpoint.
Result<std::shared_ptr<Recogniser>> load_damaged(const TempFolder& folder, const std::vector<std::string>& tensors,
                                                 bool warm_up) {
  TransducerEdits edits;
  for (const std::string& name : tensors)
    for (size_t i = 0; i < kValues; ++i) edits.values[name][i] = std::numeric_limits<float>::max();
  RecogniserOptions options;
  options.warm_up = warm_up;
  return load_edited(folder, edits, options);
}

struct Damage {
  const char* stage;
  std::vector<std::string> tensors;
};

class TransducerFaults : public ::testing::TestWithParam<Damage> {
 protected:
  void expect_fault(const Status& status) {
    ASSERT_FALSE(status.has_value());
    EXPECT_EQ(status.error().code, Code::kDataLoss);
    EXPECT_NE(status.error().message.find(std::string("the ") + GetParam().stage + " of 'm'"), std::string::npos)
        << status.error().message;
  }

  const TempFolder folder_;
};

INSTANTIATE_TEST_SUITE_P(All, TransducerFaults,
                         ::testing::Values(Damage{"encoder", {"encoder.layers.0.norm_out.weight"}},
                                           Damage{"decoder", {"joint.enc.bias", "joint.joint_net.2.weight"}}),
                         [](const auto& info) { return info.param.stage; });

TEST_P(TransducerFaults, AreFoundByTheWarmUp) {
  const auto loaded = load_damaged(folder_, GetParam().tensors, true);
  ASSERT_FALSE(loaded.has_value());
  expect_fault(tl::unexpected(loaded.error()));
  EXPECT_TRUE(load_damaged(folder_, {}, true).has_value());
}

TEST_P(TransducerFaults, AreToldOfRecordings) {
  const auto recogniser = *load_damaged(folder_, GetParam().tensors, false);
  for (const int beam : {0, 4}) {
    const auto heard = recogniser->transcribe(noise(2, 1), {.knobs = beam_knob(beam)}, {});
    ASSERT_FALSE(heard.has_value()) << beam;
    expect_fault(tl::unexpected(heard.error()));
  }
}

}  // namespace
}  // namespace syrinx
