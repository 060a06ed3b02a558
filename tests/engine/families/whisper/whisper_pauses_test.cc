// Whisper at pauses that voice activity leaves out of a recording, with the tiny checkpoint of tests/data/whisper.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "engine/families/families.h"
#include "engine/families/whisper/whisper_family.h"
#include "tests/base/temp_folder.h"
#include "tests/engine/recognition/noise_detector.h"
#include "tests/models/whisper/small.h"

namespace syrinx {
namespace {

namespace fs = std::filesystem;

TEST(WhisperPauses, TextAlonePlacesNoWords) {
  const TempFolder place;
  for (const char* const file : {"ct2/model.bin", "ct2/config.json", "tokenizer.json"}) {
    const fs::path from = fs::path(SYRINX_TEST_DATA) / "whisper" / file;
    fs::copy_file(from, place.path() / from.filename());
  }
  const auto loaded = load_recogniser({.files = {.name = "tiny",
                                                 .family = &whisper_family(),
                                                 .checkpoint = place.file("model.bin"),
                                                 .voice_activity = write_noise_detector(place.file("voice.bin"))},
                                       .precision = Precision::kF32,
                                       .threads = 1});
  ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
  constexpr double kPauseBegin = 2, kPauseEnd = 7;
  test::Draws draws(1);
  std::vector<float> samples = draws.floats(9 * 16'000, -0.5, 0.5);
  std::fill(samples.begin() + static_cast<ptrdiff_t>(kPauseBegin * 16'000),
            samples.begin() + static_cast<ptrdiff_t>(kPauseEnd * 16'000), 0.0f);
  const auto timed = (*loaded)->transcribe(samples, {.language = "en"}, {});
  const auto text_alone = (*loaded)->transcribe(samples, {.language = "en", .segment_times = false}, {});
  ASSERT_TRUE(timed.has_value() && text_alone.has_value());
  EXPECT_EQ(text_alone->text(), timed->text());
  EXPECT_EQ(text_alone->segments.size(), timed->segments.size());
  // Without the times of words a segment keeps its own, which lie across the pause.
  const auto is_across = [&](const TranscriptSegment& segment) {
    return segment.start_s < kPauseBegin && segment.end_s > kPauseEnd;
  };
  EXPECT_TRUE(std::ranges::any_of(text_alone->segments, is_across));
  EXPECT_TRUE(std::ranges::none_of(timed->segments, is_across));
}

}  // namespace
}  // namespace syrinx
