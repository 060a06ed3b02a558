#include <gtest/gtest.h>

#include <cstdlib>

#include "base/json.h"
#include "bench/suite/random_whisper.h"
#include "bench/suite/whisper_measure.h"
#include "run_bench.h"
#include "tests/base/temp_folder.h"

namespace syrinx::bench {
namespace {

std::string model() { return std::string(SYRINX_TEST_DATA) + "/whisper/ct2"; }

Status run(std::vector<const char*> arguments) { return run_bench("whisper", std::move(arguments)); }

TEST(BenchWhisper, TimesEveryStage) {
  for (const Precision precision : {Precision::kF32, Precision::kInt8}) {
    const auto loaded = whisper::Model::load(model(), {.precision = precision});
    ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
    ThreadTeam team(1);
    const auto figures = measure_whisper(*loaded, team, {.runs = 2, .tokens = 3, .batches = {1, 2}});
    ASSERT_TRUE(figures.has_value()) << figures.error().message;
    EXPECT_EQ(figures->encode.size(), 2u);
    EXPECT_GT(figures->mel.min(), 0);
    EXPECT_GT(figures->prefill.min(), 0);
    ASSERT_EQ(figures->steps.size(), 2u);
    EXPECT_EQ(figures->steps[1].batch, 2u);
    EXPECT_EQ(figures->steps[1].token.size(), 6u);
  }
}

// The figures of specs/whisper.md, section 8, for base: 28.3 and 4.7 GMAC of matrices, 13.8 of attention, 1.55 of
// convolutions, 49 M weights and 9.2 M cross values a token.
TEST(BenchWhisper, CountsTheWork) {
  const whisper::Config base{.width = 512,
                             .encoder_layers = 6,
                             .decoder_layers = 6,
                             .encoder_heads = 8,
                             .decoder_heads = 8,
                             .encoder_hidden = 2048,
                             .decoder_hidden = 2048,
                             .mels = 80,
                             .vocabulary = 51865,
                             .text_positions = 448,
                             .audio_positions = 1500,
                             .alignment_heads = {},
                             .suppress_ids = {},
                             .suppress_ids_begin = {},
                             .language_ids = {}};
  const WhisperCost cost = whisper_cost(base, 0);
  EXPECT_NEAR(cost.linear_flop / 2e9, 33.0, 0.1);
  EXPECT_NEAR(cost.attention_flop / 2e9, 13.8, 0.1);
  EXPECT_NEAR(cost.conv_flop / 2e9, 1.55, 0.01);
  EXPECT_NEAR(cost.token_weights / 1e6, 22.0 + 26.6, 0.5);
  EXPECT_NEAR(cost.cross_values / 1e6, 9.2, 0.1);
  EXPECT_NEAR(whisper_cost(base, 750).attention_flop, cost.attention_flop / 4, 1);
}

TEST(BenchWhisper, RefusesInvalidOptions) {
  const TempFolder folder;
  setenv("SYRINX_HOME", folder.path().c_str(), 1);
  const std::string path = model();
  for (const auto& [option, value] : {std::pair("--runs", "0"),
                                      {"--threads", "65"},
                                      {"--positions", "51"},
                                      {"--tokens", "65"},
                                      {"--precision", "int4"},
                                      {"--recording", "nothing.wav"}}) {
    EXPECT_FALSE(run({"--model", path.c_str(), option, value}).has_value()) << option;
  }
  EXPECT_EQ(make_random_whisper(folder.path(), "huge").error().code, Code::kInvalidArgument);
  EXPECT_EQ(random_whisper_names().front(), "base");
}

}  // namespace
}  // namespace syrinx::bench
