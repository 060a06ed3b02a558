// A piece that stands in front of the next one, with the small checkpoint of Base.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "engine/families/qwen_tts/qwen_speaker.h"
#include "engine/speech/speech_session.h"
#include "pool_fixture.h"

namespace syrinx::qwen_tts {
namespace {

constexpr size_t kCodebooks = 16, kSamples = 1920;
constexpr double kCarrySeconds = 3, kMaxSeconds = 4;
const std::string kFirst = "Hello there, old friend.", kSecond = "And on it went.";

class CarriedPiece : public PoolFixture {
 protected:
  CarriedPiece() : PoolFixture("base") {}
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(PoolFixture::SetUp());
    voice_ = std::make_shared<QwenVoice>();
    voice_->vector.assign(model_->config().talker.width, 0.25f);
  }
  std::vector<int32_t> script(size_t frames) const { return changing_codes(*model_, frames); }
  // The first piece by the script, then 80 ms of silence and the second one.
  std::vector<float> say(const std::vector<int32_t>& first, double carry_seconds, bool text_first) {
    auto lease = pool_->lease();
    EXPECT_TRUE(lease);
    QwenSettings settings{.draws = model_->generation(),
                          .text_first = text_first,
                          .piece_tokens = kDefaultPieceTokens,
                          .max_seconds = kMaxSeconds,
                          .carry_seconds = carry_seconds};
    settings.forced = [&](uint32_t number) { return number == 0 ? std::span(first) : std::span<const int32_t>(); };
    const auto voice = [this](const std::string&) -> Result<std::shared_ptr<const QwenVoice>> { return voice_; };
    SpeechSession session(std::make_unique<QwenSpeaker>(voice, model_, std::move(*lease), voice_, settings,
                                                        std::vector<int32_t>(), SpeakOptions()));
    EXPECT_TRUE(session.speak(kFirst + " [pause:80ms] " + kSecond));
    std::vector<float> samples;
    for (SpeechChunk chunk;;) {
      const auto more = session.next(chunk);
      EXPECT_TRUE(more) << more.error().message;
      if (!more || !*more) return samples;
      samples.insert(samples.end(), chunk.samples.begin(), chunk.samples.end());
    }
  }
  // A piece by itself; behind a reference, its sound goes on.
  std::vector<float> piece(FramePool::Lease& lease, uint32_t number, const std::string& text, bool text_first,
                           std::span<const int32_t> forced, std::span<const int32_t> words = {},
                           std::span<const int32_t> codes = {}) {
    const std::vector<int32_t> ids = *model_->tokenizer().encode(text);
    auto prompt = make_prompt(model_->config(), {.role = model_->tokenizer().role(),
                                                 .text = ids,
                                                 .voice = voice_->vector,
                                                 .reference_text = words,
                                                 .reference_codes = codes,
                                                 .text_first = text_first});
    EXPECT_TRUE(prompt) << prompt.error().message;
    SpeechSettings settings{.draws = model_->generation(), .number = number, .forced = forced};
    settings.draws.max_frames = SpeechGuard::limit(ids.size(), kMaxSeconds, 12.5);
    const CodecDecoderState sound = words.empty() ? pool_->make_codec_state() : lease.sound();
    EXPECT_TRUE(lease.begin({.prompt = *prompt,
                             .settings = settings,
                             .expected_frames = SpeechGuard::expected_frames(ids.size()),
                             .codec = words.empty() ? nullptr : &sound}));
    std::vector<float> samples;
    for (bool ended = false; !ended;) {
      const auto made = lease.next(3, samples);
      EXPECT_TRUE(made);
      ended = !made || made->ended;
    }
    return samples;
  }
  std::vector<float> by_hand(const std::vector<int32_t>& first, bool is_carried, bool text_first) {
    auto lease = pool_->lease();
    EXPECT_TRUE(lease);
    std::vector<float> samples = piece(*lease, 0, kFirst, text_first, first);
    samples.resize(samples.size() + kSamples);
    const std::vector<int32_t> words = *model_->tokenizer().encode(kFirst);
    const std::span codes = std::span(first).first(first.size() - kCodebooks);
    const std::vector<float> second = is_carried ? piece(*lease, 1, kSecond, text_first, {}, words, codes)
                                                 : piece(*lease, 1, kSecond, text_first, {});
    samples.insert(samples.end(), second.begin(), second.end());
    return samples;
  }

  std::shared_ptr<QwenVoice> voice_;
};

TEST_F(CarriedPiece, NextPieceGoesOnBehindIt) {
  const std::vector<int32_t> first = script(static_cast<size_t>(kCarrySeconds * 12.5));
  for (const bool text_first : {false, true}) {
    const std::vector<float> carried = by_hand(first, true, text_first);
    EXPECT_GT(carried.size(), first.size() / kCodebooks * kSamples + kSamples);
    EXPECT_EQ(say(first, kCarrySeconds, text_first), carried);
    const std::vector<float> apart = by_hand(first, false, text_first);
    EXPECT_EQ(say(first, 0, text_first), apart);
    EXPECT_NE(carried, apart);
  }
}

TEST_F(CarriedPiece, LongerPieceIsNotCarried) {
  const std::vector<int32_t> first = script(static_cast<size_t>(kCarrySeconds * 12.5) + 1);
  EXPECT_EQ(say(first, kCarrySeconds, false), by_hand(first, false, false));
}

TEST_F(CarriedPiece, HalfSpokenPieceIsNotCarried) {
  const std::vector<int32_t> first = script(model_->tokenizer().encode(kFirst)->size() - 1);
  EXPECT_EQ(say(first, kCarrySeconds, true), by_hand(first, false, true));
}

TEST_F(CarriedPiece, CutPieceIsNotCarried) {
  std::vector<int32_t> first = script(static_cast<size_t>(kMaxSeconds * 12.5));
  first.resize(first.size() - kCodebooks);
  auto lease = pool_->lease();
  ASSERT_TRUE(lease);
  std::vector<float> expected = piece(*lease, 0, kFirst, false, first);
  expected.resize(expected.size() + kSamples);
  const std::vector<float> second = piece(*lease, 1, kSecond, false, {});
  expected.insert(expected.end(), second.begin(), second.end());
  EXPECT_EQ(say(first, 10, false), expected);
}

}  // namespace
}  // namespace syrinx::qwen_tts
