// int8 and int4 end chunks where f32 does, on 20 texts: every small checkpoint, whose logit is above the threshold at
// one step of twelve.  Those logits are near to white noise, with a standard deviation of 3, so the ends are chosen
// that stay clear of the threshold.  docs/pocket_tts.md has what happens to the others.
#include "ends.h"

#include <gtest/gtest.h>

#include "fixtures.h"
#include "models/pocket_tts/voice_recording.h"

namespace syrinx::pocket {
namespace {

class PocketEnds : public ::testing::TestWithParam<TestModel> {};
INSTANTIATE_TEST_SUITE_P(All, PocketEnds, ::testing::ValuesIn(test_models()), name_of);

// For each of kNarrowPrecisions: the ends' clearance, and the bound of the logits' errors (RMS; the worst have 24
// layers).
constexpr std::array kClearances = {0.4f, 1.5f};
constexpr std::array kErrors = {0.15, 0.9};

TEST_P(PocketEnds, SameEndOnTwentyTexts) {
  const auto file = MappedFile::open(data("voice.wav"));
  ASSERT_TRUE(file.has_value());
  const auto recording = read_voice_recording(file->bytes(), 24000, false, "voice.wav");
  ASSERT_TRUE(recording.has_value()) << recording.error().message;
  for (size_t p = 0; p < kNarrowPrecisions.size(); ++p) {
    const auto texts = speak_texts(data(GetParam().name), *recording, kClearances[p], 1);
    ASSERT_TRUE(texts.has_value()) << texts.error().message;
    ASSERT_EQ(texts->size(), 20u);
    double squares = 0, steps = 0;
    for (const TextEnds& text : *texts) {
      const EndComparison ends = compare_ends(text.exact, text.forced[p], GetParam().eos_threshold);
      ASSERT_TRUE(ends.exact.has_value());
      EXPECT_EQ(ends.narrow, ends.exact) << precision_name(kNarrowPrecisions[p]) << ", '" << text.text << "'";
      EXPECT_NE(text.forced[p], text.exact) << "nothing was narrowed";
      for (size_t i = 0; i < text.exact.size(); ++i) squares += std::pow(text.forced[p][i] - text.exact[i], 2);
      steps += static_cast<double>(text.exact.size());
    }
    const double error = std::sqrt(squares / steps);
    EXPECT_LT(error, kErrors[p]);
    std::printf("%s: logits within %.3f (RMS)\n", precision_name(kNarrowPrecisions[p]), error);
  }
}

TEST(CompareEnds, SaysHowNearTheEndWas) {
  std::vector<float> exact(12, -5.0f), narrow = exact;
  exact[8] = -3.5f;
  narrow[8] = -4.25f;
  narrow[9] = -3.0f;
  const EndComparison apart = compare_ends(exact, narrow, -4.0f);
  EXPECT_EQ(apart.exact, 8u);
  EXPECT_EQ(apart.narrow, 9u);
  EXPECT_FALSE(apart.same());
  EXPECT_EQ(apart.margin, 0.5f);
  EXPECT_EQ(apart.error, 0.75f);
  EXPECT_TRUE(compare_ends(exact, exact, -4.0f).same());
  narrow.assign(12, -5.0f);
  EXPECT_EQ(compare_ends(exact, narrow, -4.0f).narrow, std::nullopt);
  EXPECT_EQ(compare_ends(exact, narrow, -4.0f).error, 1.5f);
  EXPECT_EQ(end_step(std::vector<float>(12, 0.0f), -4.0f), 6u) << "not before the sixth step";
}

}  // namespace
}  // namespace syrinx::pocket
