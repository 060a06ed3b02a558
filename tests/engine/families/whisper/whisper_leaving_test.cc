// Clients that leave while Whisper transcribes for others, with the tiny checkpoint of tests/data/whisper.
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <thread>
#include <vector>

#include "engine/families/families.h"
#include "engine/families/whisper/whisper_family.h"
#include "engine/families/whisper/whisper_recogniser.h"
#include "engine/families/whisper/whisper_stream.h"
#include "tests/base/temp_folder.h"

namespace syrinx {
namespace {

namespace fs = std::filesystem;

// A recording and a stream wait while another one is heard, and leave.
TEST(WhisperLeaving, LeavingCallerIsNotTranscribed) {
  const TempFolder folder;
  const fs::path data = fs::path(SYRINX_TEST_DATA) / "whisper", place = folder.path();
  for (const char* const file : {"ct2/model.bin", "ct2/config.json", "tokenizer.json"})
    fs::copy_file(data / file, place / fs::path(file).filename());
  const auto loaded = load_recogniser(
      {.files = {.name = "tiny", .family = &whisper_family(), .checkpoint = (place / "model.bin").string()},
       .precision = Precision::kF32,
       .threads = 1});
  ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
  auto& recogniser = static_cast<WhisperRecogniser&>(**loaded);
  const auto sound = [](size_t samples) { return std::vector<float>(samples, 0.1f); };
  std::atomic<bool> wanted{true};
  TranscribeOptions options{.language = "en"};
  options.is_wanted = [&] { return wanted.load(); };
  const auto nobody = [](double) {
    ADD_FAILURE() << "it was heard";
    return true;
  };
  const auto expect_left = [](const auto& done) {
    ASSERT_FALSE(done.has_value());
    EXPECT_EQ(done.error().code, Code::kCancelled);
  };
  const auto push = [&] {
    const auto stream = recogniser.start(options);
    std::vector<RecognitionEvent> events;
    expect_left((*stream)->push(sound(WhisperStream::kPeriodSamples), events));
    EXPECT_TRUE(events.empty());
  };
  recogniser.with_transcriber(kDueAtOnce, [&](whisper::Transcriber&) {
    std::thread recording([&] { expect_left(recogniser.transcribe(sound(16'000), options, nobody)); });
    std::thread stream(push);
    while (recogniser.waiting() < 2) std::this_thread::yield();
    wanted = false;
    recording.join();
    stream.join();
    EXPECT_EQ(recogniser.waiting(), 0u);
  });
  const uint64_t steps = recogniser.steps().count();
  expect_left(recogniser.transcribe(sound(16'000), options, nobody));  // nobody is before them
  push();
  const auto ended = recogniser.start(options);
  std::vector<RecognitionEvent> events;
  ASSERT_TRUE((*ended)->push(sound(8'000), events).has_value());  // too short for a decoding
  expect_left((*ended)->commit(events));
  expect_left((*ended)->finish(events));
  EXPECT_EQ(recogniser.steps().count(), steps);
}

}  // namespace
}  // namespace syrinx
