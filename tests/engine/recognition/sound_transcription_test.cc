#include "engine/recognition/sound_transcription.h"

#include <gtest/gtest.h>

#include "fake_recogniser.h"

namespace syrinx {
namespace {

SoundSource source_of(std::span<const float> sound, int rate_hz) {
  return [=](const SoundSink& sink) -> Status {
    SYRINX_TRY_VOID(sink.begin(rate_hz, sound.size()));
    for (size_t at = 0; at < sound.size(); at += 4096)
      SYRINX_TRY_VOID(sink.add(sound.subspan(at, std::min<size_t>(4096, sound.size() - at))));
    return {};
  };
}

TEST(SoundTranscription, AnyRateInOnePiece) {
  for (const int rate_hz : {8000, 16000, 44100, 96000}) {
    FakeRecogniser recogniser;
    const std::vector<float> sound = beeps({1, 2.5}, 4, rate_hz);
    std::optional<double> total;
    const auto got = transcribe_sound(recogniser, source_of(sound, rate_hz), {}, [&](double, std::optional<double> t) {
      total = t;
      return true;
    });
    ASSERT_TRUE(got) << got.error().message;
    EXPECT_EQ(recogniser.calls, 1);
    ASSERT_EQ(got->segments.size(), 2u);
    EXPECT_NEAR(got->segments[1].start_s, 2.5, 0.01);
    EXPECT_NEAR(got->audio_s, 4, 1e-3);
    EXPECT_NEAR(total.value_or(0), 4, 1e-9);
    EXPECT_EQ(got->language, "en");
  }
}

// Cuts fall into silence, times go on, and no more than a stretch is held.
TEST(SoundTranscription, LongSoundsGoInStretches) {
  FakeRecogniser recogniser;
  std::vector<double> at;
  for (double s = 0.3; s < 59; s += 0.7) at.push_back(s);
  const std::vector<float> sound = beeps(at, 60, 16000);
  std::vector<double> heard;  // as they are found
  TranscribeOptions options;
  options.heard = [&](const TranscriptSegment& segment) { heard.push_back(segment.start_s); };
  const auto got =
      transcribe_sound(recogniser, source_of(sound, 16000), options, nullptr, {.longest_s = 10, .search_s = 2});
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_GE(recogniser.calls, 6);
  EXPECT_LE(recogniser.longest, 160000u + 4096u);
  EXPECT_EQ(recogniser.last_language, "en");
  ASSERT_EQ(got->segments.size(), at.size());
  ASSERT_EQ(heard.size(), at.size());
  for (size_t i = 0; i < at.size(); ++i) {
    EXPECT_NEAR(got->segments[i].start_s, at[i], 0.01);
    EXPECT_NEAR(got->segments[i].words[0].start_s, at[i], 0.01);
    EXPECT_EQ(heard[i], got->segments[i].start_s);
  }
  EXPECT_DOUBLE_EQ(got->audio_s, 60);
}

TEST(SoundTranscription, StopsWhenToldTo) {
  FakeRecogniser recogniser;
  const std::vector<float> sound(16000);
  const auto got =
      transcribe_sound(recogniser, source_of(sound, 16000), {}, [](double, std::optional<double>) { return false; });
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, Code::kCancelled);
  EXPECT_EQ(recogniser.calls, 0);
}

// Before a stretch is full: reading alone may take its time.
TEST(SoundTranscription, CancelledReadStops) {
  FakeRecogniser recogniser;
  const std::vector<float> sound(160'000);
  int asked = 0;
  TranscribeOptions options;
  options.is_wanted = [&] { return ++asked < 3; };
  const auto got = transcribe_sound(recogniser, source_of(sound, 16000), options, nullptr);
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, Code::kCancelled);
  EXPECT_EQ(asked, 3);
  EXPECT_EQ(recogniser.calls, 0);
}

TEST(SoundTranscription, WarningsStandInTheTranscript) {
  FakeRecogniser recogniser;
  const std::vector<float> sound = beeps({1}, 2, 16000);
  const auto cut_off = [&](const SoundSink& sink) -> Status {
    SYRINX_TRY_VOID(source_of(sound, 16000)(sink));
    sink.warn("'me' is cut off");
    return {};
  };
  const auto got = transcribe_sound(recogniser, cut_off, {}, nullptr);
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(got->segments.size(), 1u);
  EXPECT_EQ(got->warnings, std::vector<std::string>{"'me' is cut off"});
}

TEST(SoundTranscription, SeparateChannelsAreMergedByTime) {
  FakeRecogniser recogniser;
  const std::vector<float> sides[] = {beeps({0.5, 2.5}, 4, 16000), beeps({1.5}, 4, 16000)};
  std::vector<double> done;
  const ChannelSource source = [&](int channel) -> SoundSource {
    return [&, channel](const SoundSink& sink) {
      sink.channels(2);
      return source_of(sides[channel], 16000)(sink);
    };
  };
  const auto got = transcribe_channels(recogniser, source, {}, [&](double done_s, std::optional<double> total_s) {
    EXPECT_EQ(total_s, 8);
    done.push_back(done_s);
    return true;
  });
  ASSERT_TRUE(got) << got.error().message;
  ASSERT_EQ(got->segments.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(got->segments[i].channel, static_cast<int>(i % 2));
    EXPECT_NEAR(got->segments[i].start_s, 0.5 + static_cast<double>(i), 0.01);
  }
  EXPECT_DOUBLE_EQ(got->audio_s, 4);
  EXPECT_TRUE(std::ranges::is_sorted(done));
  EXPECT_EQ(got->language, "en");
}

TEST(SoundTranscription, SourceErrorsArePassedOn) {
  FakeRecogniser recogniser;
  const auto broken = [](const SoundSink& sink) -> Status {
    SYRINX_TRY_VOID(sink.begin(16000, {}));
    SYRINX_TRY_VOID(sink.add(std::vector<float>(100)));
    return fail(Code::kDataLoss, "cut off");
  };
  EXPECT_EQ(transcribe_sound(recogniser, broken, {}, nullptr).error().code, Code::kDataLoss);
  const auto too_slow = [](const SoundSink& sink) { return sink.begin(10, {}); };
  EXPECT_EQ(transcribe_sound(recogniser, too_slow, {}, nullptr).error().code, Code::kLimitExceeded);
}

TEST(SoundTranscription, QuietestIsTheMiddleOfTheSilence) {
  std::vector<float> sound(32000, 0.5f);
  std::fill(sound.begin() + 20000, sound.begin() + 24800, 0.0f);
  EXPECT_NEAR(static_cast<double>(quietest(sound, 16000)), 22400, 160);
  EXPECT_EQ(quietest(sound, 31000), sound.size());
  EXPECT_EQ(quietest({}, 0), 0u);
}

}  // namespace
}  // namespace syrinx
