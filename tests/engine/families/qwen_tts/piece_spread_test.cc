// Rate and loudness of pieces, with the small checkpoint of CustomVoice and codes that are given.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "base/log.h"
#include "engine/families/qwen_tts/qwen_speaker.h"
#include "engine/speech/speech_session.h"
#include "pool_fixture.h"

namespace syrinx::qwen_tts {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr size_t kSamples = 1920, kBlock = 480;
const std::string kText = "Hello there, old friend.";

class SpreadOfPieces : public PoolFixture {
 protected:
  SpreadOfPieces() : PoolFixture("custom_voice") {}
  ~SpreadOfPieces() override {
    set_log_sink({});
    set_log_level(LogLevel::kWarning);
  }
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(PoolFixture::SetUp());
    voice_ = std::make_shared<QwenVoice>();
    voice_->speaker = "ryan";
    tokens_ = model_->tokenizer().encode(kText)->size();
    set_log_sink([this](LogLevel, std::string_view message) { log_ += std::string(message) + "\n"; });
    set_log_level(LogLevel::kDebug);
  }
  std::vector<int32_t> script(size_t frames) const { return changing_codes(*model_, frames); }
  // The text once for each piece's codes, with a mark between two.
  SpeechStatistics say(const std::vector<std::vector<int32_t>>& scripts) {
    std::string text;
    for (size_t n = 0; n < scripts.size(); ++n) text += (text.empty() ? "" : " [pause:80ms] ") + kText;
    auto lease = pool_->lease();
    EXPECT_TRUE(lease);
    QwenSettings settings{.draws = model_->generation(), .text_first = true, .piece_tokens = kDefaultPieceTokens};
    settings.forced = [&](uint32_t number) { return std::span<const int32_t>(scripts.at(number)); };
    const auto voice = [this](const std::string&) -> Result<std::shared_ptr<const QwenVoice>> { return voice_; };
    SpeechSession session(std::make_unique<QwenSpeaker>(voice, model_, std::move(*lease), voice_, settings,
                                                        std::vector<int32_t>(), SpeakOptions()));
    EXPECT_TRUE(session.speak(text));
    samples_.clear();
    for (SpeechChunk chunk;;) {
      const auto more = session.next(chunk);
      EXPECT_TRUE(more) << more.error().message;
      if (!more || !*more) return session.statistics();
      samples_.insert(samples_.end(), chunk.samples.begin(), chunk.samples.end());
    }
  }
  struct Sound {
    double seconds = 0, loudness_db = 0;
  };
  // By hand, of frames of what was heard.
  Sound sound(size_t first, size_t frames) const {
    double sum = 0, blocks = 0;
    for (size_t at = first * kSamples; at < (first + frames) * kSamples; at += kBlock) {
      double block = 0;
      for (size_t i = at; i < at + kBlock; ++i)
        block += static_cast<double>(samples_[i]) * static_cast<double>(samples_[i]);
      if (block / kBlock < 1e-6) continue;
      sum += block / kBlock;
      ++blocks;
    }
    return {.seconds = blocks * kBlock / 24000, .loudness_db = 10 * std::log10(sum / blocks)};
  }

  std::shared_ptr<QwenVoice> voice_;
  std::vector<float> samples_;
  std::string log_;
  size_t tokens_ = 0;
};

TEST_F(SpreadOfPieces, LongPieceIsUneven) {
  const SpeechStatistics told = say({script(25), script(25), script(50), script(25)});
  ASSERT_EQ(told.pieces, 4u);
  const Sound first = sound(0, 25), third = sound(52, 50);
  ASSERT_GT(first.seconds, 1) << "the checkpoint's sound is silence";
  const auto tokens = static_cast<double>(tokens_);
  EXPECT_EQ(told.spread.pieces, 4u);
  EXPECT_EQ(told.spread.uneven_rate, 1u);
  EXPECT_NEAR(told.spread.greatest_rate, tokens / first.seconds, 1e-9);
  EXPECT_NEAR(told.spread.least_rate, tokens / third.seconds, 1e-9);
  EXPECT_NEAR(told.spread.least_loudness_db, std::min(first.loudness_db, third.loudness_db), 1e-9);
  EXPECT_NEAR(told.spread.greatest_loudness_db, std::max(first.loudness_db, third.loudness_db), 1e-9);
  EXPECT_THAT(log_, HasSubstr("piece 3: "));
  EXPECT_THAT(log_.substr(log_.find("piece 3: "), 70), HasSubstr("a second (departs)"));
  EXPECT_THAT(log_.substr(0, log_.find("piece 3: ")), Not(HasSubstr("(departs)")));
}

TEST_F(SpreadOfPieces, EvenPiecesDepartInNothing) {
  const SpeechStatistics told = say({script(25), script(30), script(25)});
  EXPECT_EQ(told.spread.pieces, 3u);
  EXPECT_EQ(told.spread.uneven_rate + told.spread.uneven_loudness, 0u);
  EXPECT_LT(told.spread.least_rate, told.spread.greatest_rate);
}

}  // namespace
}  // namespace syrinx::qwen_tts
