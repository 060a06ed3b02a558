// Speech during a language model's spoken answer: all of the way, from the first sample of the speech to the last audio
// that is sent, without the engine and the recogniser.  Time is the audio that has come, so no machine is too slow.
#include <atomic>
#include <chrono>
#include <span>
#include <thread>

#include "server/realtime/turn_detector.h"
#include "server/upstream/chat_replies.h"
#include "tests/server/realtime/hearing_fixture.h"
#include "tests/server/upstream/chat_endpoint.h"

namespace syrinx::server::realtime {
namespace {

constexpr size_t kFrame = kRateHz / 50;  // as telephones send it
constexpr const char* kSound = "response.output_audio.delta";

class InterruptionTest : public HearingTest {
 protected:
  // Events of the session until it has read all that has been appended.
  void hear_round() {
    told_.clear();
    say(R"({"type":"conversation.item.retrieve","item_id":"none"})");
    do {
      told_.push_back(hear());
      if (told_.back() == "response.done") reason_ = text_in({"response", "status_details", "reason"});
    } while (told_.back() != "error" && told_.back() != "(silence)");
    EXPECT_EQ(told_.back(), "error");
  }
  bool was_told(const char* type) const { return std::find(told_.begin(), told_.end(), type) != told_.end(); }
  // Samples of the session's until voice activity alone can know that somebody speaks.
  size_t samples_needed(const std::vector<float>& sound) const {
    std::vector<int16_t> sent(sound.size());
    PcmQuantizer().convert(sound, sent);
    std::vector<float> heard, received(sent.begin(), sent.end());
    for (float& sample : received) sample /= 32768;
    StreamResampler::create(kRateHz, kRecognitionRateHz)->push(received, heard);
    TurnDetector detector(recognition_->voice_activity(), {.silence_duration_ms = 200}, 0);  // as kDetected has it
    size_t samples = 0;
    for (bool began = false; !began && samples + silero::kWindowSamples <= heard.size();
         samples += silero::kWindowSamples)
      began = detector.push(std::span(heard).subspan(samples, silero::kWindowSamples)).has_value();
    return samples * kRateHz / kRecognitionRateHz;
  }

  std::vector<std::string> told_;
  std::string reason_;
};

TEST_F(InterruptionTest, TheAnswerIsSilentWithTheFrameThatShowsSpeech) {
  std::atomic<int> left{0};
  const upstream::ChatEndpoint endpoint([&](const upstream::ChatEndpoint::Answer& answer) {
    answer.begin();
    answer.say("And so on it goes. ");
    while (!answer.is_left(std::chrono::milliseconds(5))) answer.chunk(": more will come\n\n");
    ++left;
  });
  auto replies = upstream::ChatReplies::start(
      {.endpoint = {.url = endpoint.url() + "/chat/completions", .timeout_s = 600, .max_answer_bytes = size_t{1} << 30},
       .max_characters = 4096});
  ASSERT_TRUE(replies) << replies.error().message;
  engine_->act.chunks = 1000000;
  detect(6);
  start(kDetected, {.speech = speech_, .replies = *replies, .answers_turns = true});
  say(R"({"type":"conversation.item.create","item":{"type":"message","role":"user","content":[)"
      R"({"type":"input_text","text":"A long story."}]}})");
  hear_until("conversation.item.done");
  say(R"({"type":"response.create"})");
  hear_until(kSound);

  const std::vector<float> before = silence(0.5), speech = noise(1);
  std::vector<float> sound = before;
  sound.insert(sound.end(), speech.begin(), speech.end());
  size_t at = 0;
  for (bool began = false; !began; at += kFrame) {
    ASSERT_LT(at, sound.size()) << "nobody has heard the speech";
    const auto frame = sound.begin() + static_cast<std::ptrdiff_t>(at);
    append(std::vector<float>(frame, frame + static_cast<std::ptrdiff_t>(kFrame)));
    clock_.advance_ns(20'000'000);
    hear_round();
    began = was_told("input_audio_buffer.speech_started");
  }
  const auto began = std::find(told_.begin(), told_.end(), "input_audio_buffer.speech_started");
  EXPECT_EQ(std::count(began, told_.end(), kSound), 0);
  EXPECT_TRUE(was_told("response.done"));
  EXPECT_EQ(reason_, "turn_detected");
  // In the first frame with which that can be known; the resampler holds less than a millisecond back.
  const size_t needed = samples_needed(sound);
  EXPECT_GE(at, needed);
  EXPECT_LE(at - kFrame, needed + kRateHz / 1000);
  ASSERT_GT(at, before.size());
  const size_t spoken_ms = (at - before.size()) * 1000 / kRateHz;
  RecordProperty("speech_ms_until_silence", static_cast<int>(spoken_ms));
  EXPECT_LE(spoken_ms, 180U);

  const Stopwatch waited;
  while (left == 0 && waited.elapsed_ms() < kPatienceMs) std::this_thread::yield();
  EXPECT_EQ(left, 1);  // nor does the model go on
  hear_round();
  EXPECT_FALSE(was_told(kSound));
  leave();
}

}  // namespace
}  // namespace syrinx::server::realtime
