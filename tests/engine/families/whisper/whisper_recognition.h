// Whisper behind the recogniser's interface, with the tiny checkpoint of tests/data/whisper.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/families/families.h"
#include "engine/families/whisper/whisper_family.h"
#include "tests/base/temp_folder.h"
#include "tests/models/whisper/layouts.h"

namespace syrinx {

class WhisperRecognition : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    place_ = std::make_unique<TempFolder>();
    folder_ = place_->path();
    const std::filesystem::path data = std::filesystem::path(SYRINX_TEST_DATA) / "whisper";
    for (const char* const file : {"ct2/model.bin", "ct2/config.json", "tokenizer.json"})
      std::filesystem::copy_file(data / file, folder_ / std::filesystem::path(file).filename());
  }
  static void TearDownTestSuite() { place_.reset(); }

  void SetUp() override { load(""); }
  void load(const std::string& voice_activity, bool warm_up = false) {
    auto loaded = load_recogniser({.files = {.name = "tiny",
                                             .family = &whisper_family(),
                                             .checkpoint = (folder_ / "model.bin").string(),
                                             .voice_activity = voice_activity},
                                   .precision = Precision::kF32,
                                   .threads = 1,
                                   .warm_up = warm_up});
    ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
    recogniser_ = *loaded;
  }

  static std::vector<float> sound(size_t samples) {
    test::Draws draws(6);
    const std::vector<float> loudness = draws.floats(samples / 1600 + 1);
    std::vector<float> values = draws.floats(samples, -0.5, 0.5);
    for (size_t i = 0; i < samples; ++i) values[i] *= loudness[i / 1600];
    return values;
  }

  // The events of a stream that is pushed in pieces, as lines.
  std::vector<std::string> stream(std::span<const float> samples, size_t piece) {
    auto started = recogniser_->start({.language = "en"});
    EXPECT_TRUE(started.has_value());
    std::vector<RecognitionEvent> events;
    while (!samples.empty()) {
      const auto some = samples.first(std::min(piece, samples.size()));
      EXPECT_TRUE((*started)->push(some, events).has_value());
      samples = samples.subspan(some.size());
    }
    EXPECT_TRUE((*started)->finish(events).has_value());
    EXPECT_EQ((*started)->language(), "en");
    std::vector<std::string> lines;
    std::string stable, shown;
    size_t shown_stable = 0;
    for (const RecognitionEvent& event : events) {
      EXPECT_LE(event.stable_bytes, event.result.text.size());
      EXPECT_TRUE(event.result.text.starts_with(stable)) << "what was stable has changed";
      EXPECT_TRUE(event.is_final || event.result.text != shown || event.stable_bytes != shown_stable) << "no news";
      EXPECT_EQ(event.reason.has_value(), event.is_final);
      shown = event.is_final ? "" : event.result.text;
      shown_stable = event.is_final ? 0 : event.stable_bytes;
      stable = shown.substr(0, shown_stable);
      EXPECT_GE(event.latency_ms, 0.0);
      lines.push_back(fmt::format("{} {} {} {} {} {}", event.segment, event.is_final, event.result.text,
                                  event.stable_bytes, event.result.start_s, event.result.end_s));
    }
    return lines;
  }

  static inline std::unique_ptr<TempFolder> place_;
  static inline std::filesystem::path folder_;
  std::shared_ptr<Recogniser> recogniser_;
};

}  // namespace syrinx
