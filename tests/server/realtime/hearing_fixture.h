// A realtime session that hears, without a socket: the client's side of it, a recogniser of beeps, a detector of noise.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/rng.h"
#include "engine/families/pocket_tts/pocket_family.h"
#include "engine/families/transducer/transducer_family.h"
#include "engine/families/whisper/whisper_family.h"
#include "server/http/base64.h"
#include "server/realtime/session.h"
#include "tests/base/temp_folder.h"
#include "tests/engine/recognition/fake_recogniser.h"
#include "tests/engine/recognition/noise_detector.h"
#include "tests/server/host/acting_engine.h"

namespace syrinx::server::realtime {

inline constexpr int kRateHz = 24000;
inline constexpr double kPatienceMs = 60000;

inline std::string pcm_base64(const std::vector<float>& samples) {
  std::vector<int16_t> pcm(samples.size());
  PcmQuantizer().convert(samples, pcm);
  return base64(std::as_bytes(std::span(pcm)));
}

inline std::vector<float> noise(double seconds) {
  Rng rng(1);
  std::vector<float> sound(static_cast<size_t>(seconds * kRateHz));
  for (float& sample : sound) sample = 0.3f * rng.normal();
  return sound;
}
inline std::vector<float> silence(double seconds) { return std::vector<float>(static_cast<size_t>(seconds * kRateHz)); }

// Says the same to everything, and remembers what it was asked.
class FixedAnswer final : public ReplySource {
 public:
  explicit FixedAnswer(std::string text) : text_(std::move(text)) {}
  Result<std::unique_ptr<Reply>> start(Prompt prompt, std::function<void()> wake) override {
    asked.push_back(std::move(prompt));
    return ReadAloud().start({.turns = {{.role = "user", .text = text_}}}, std::move(wake));
  }
  std::vector<Prompt> asked;  // of the session's thread, until it has told of what was answered

 private:
  const std::string text_;
};

inline constexpr const char* kManual = R"({"turn_detection":null,"transcription":{"model":"whisper-1"}})";
inline constexpr const char* kDetected =
    R"({"transcription":{},"turn_detection":{"type":"server_vad","silence_duration_ms":200,"prefix_padding_ms":100}})";
inline constexpr const char* kCommit = R"({"type":"input_audio_buffer.commit"})";
inline constexpr const char* kDelta = "conversation.item.input_audio_transcription.delta";
inline constexpr const char* kFailed = "conversation.item.input_audio_transcription.failed";
inline constexpr const char* kCompleted = "conversation.item.input_audio_transcription.completed";

class HearingTest : public testing::Test {
 protected:
  void SetUp() override {
    detect(0);
    std::filesystem::create_directory(folder_.path() + "/voices");
    std::ofstream(folder_.path() + "/voices/ann.safetensors") << "x";
    SpeechFiles voices;
    voices.family = &pocket_tts_family();
    voices.voices = folder_.path();
    auto speech = SpeechModel::of({}, voices, engine_);
    ASSERT_TRUE(speech) << speech.error().message;
    speech_ = *speech;
    ASSERT_TRUE(slots_.start());
  }
  void TearDown() override { leave(); }
  void leave() {
    recogniser_->still = false;
    if (!thread_.joinable()) return;
    session_->messages()->leave();
    thread_.join();
    session_.reset();
    EXPECT_TRUE(slots_are_busy(0));  // the thread of its ear may still be in the slot, which the next session needs
  }

  void detect(float doubt, float gain = 64) {
    recogniser_->vad = *silero::SileroVad::load(write_noise_detector(folder_.path() + "/vad.bin", doubt, gain));
    auto recognition = RecognitionModel::of({}, {.family = family_}, recogniser_);
    ASSERT_TRUE(recognition) << recognition.error().message;
    recognition_ = *recognition;
  }
  void start(const std::string& input, SessionOrder order = {}, RequestLog* log = nullptr) {
    const bool has_own_name = order.is_transcription && order.dialect == Dialect::kBeta;
    order.recognition = recognition_;
    if (!order.replies) order.replies = std::make_shared<ReadAloud>();
    order.start_ear = [this](const std::shared_ptr<Ear>& ear) -> std::optional<HttpError> {
      if (!slots_.try_start([ear](SlotWatch& watch) { ear->run(watch); }, [] {}))
        return HttpError{.status = 503, .message = "all slots are busy", .code = "no_free_slot"};
      const Stopwatch waited;
      while (stands_still_ && recogniser_->streams == 0 && slots_.busy() > 0 && waited.elapsed_ms() < kPatienceMs)
        std::this_thread::yield();
      return std::nullopt;
    };
    session_.emplace(std::move(order),
                     JobReports{.metrics = metrics_, .log = log, .waiting_samples = &waiting_samples_}, clock_);
    thread_ = std::thread([this] {
      session_->run();
      session_->end();
    });
    EXPECT_EQ(hear(), has_own_name ? "transcription_session.created" : "session.created");
    update(input);
  }
  // A session that answers by itself, and a turn that is over, whose words the recogniser holds back.
  void say_a_turn_that_waits() {
    start(kDetected, {.speech = speech_, .replies = answers_, .answers_turns = true});
    recogniser_->still = true;
    append(noise(0.6));
    append(silence(0.6));
    hear_until("input_audio_buffer.committed");
  }
  void go_on_speaking() {
    append(noise(0.6));
    hear_until("input_audio_buffer.speech_started");
  }
  void say(const std::string& text) { session_->messages()->deliver({.bytes = text}); }
  // In samples of 16 bits, or in those of the session's format that are given.
  void append(const std::vector<float>& sound) { append(pcm_base64(sound)); }
  void append(const std::string& sound) {
    const Stopwatch waited;
    while (!session_->messages()->takes_more()) {
      ASSERT_LT(waited.elapsed_ms(), kPatienceMs) << "the session takes nothing more";
      std::this_thread::yield();
    }
    say(R"({"type":"input_audio_buffer.append","event_id":"mine","audio":")" + sound + "\"}");
  }
  std::string text_in(std::initializer_list<const char*> path) const {
    const Json* at = &last_;
    for (const char* key : path) {
      at = at->array() != nullptr && !at->array()->empty() ? at->array()->front().find(key) : at->find(key);
      if (at == nullptr) return "(nothing)";
    }
    return at->string() != nullptr ? *at->string() : at->dump();
  }
  // "(silence)": nothing came for long.
  std::string hear() {
    MessageStream::Message message;
    const Stopwatch waited;
    while (!session_->messages()->try_pop(message)) {
      if (waited.elapsed_ms() > kPatienceMs) return "(silence)";
      std::this_thread::yield();
    }
    last_ = *parse_json(message.bytes, "the event");
    return text_in({"type"});
  }
  std::vector<std::string> hear_until(const std::string& type) {
    std::vector<std::string> types = {hear()};
    while (types.back() != type && types.back() != "(silence)") types.push_back(hear());
    EXPECT_EQ(types.back(), type);
    return types;
  }
  // Where the detector that the recognisers' streams ask finds the first speech, and when it knows of its end.
  std::pair<int64_t, int64_t> first_speech_ms(const std::vector<float>& sound, double silence_ms = 200) const {
    std::vector<float> heard;
    auto resampler = StreamResampler::create(kRateHz, kRecognitionRateHz);
    resampler->push(sound, heard);
    silero::SpeechDetector detector(recognition_->voice_activity(), {.min_silence_ms = silence_ms, .speech_pad_ms = 0});
    silero::VadScratch scratch;
    std::vector<silero::SpeechEvent> events;
    for (size_t at = 0; at < heard.size() && events.size() < 2; at += silero::kWindowSamples)
      detector.push(std::span(heard).subspan(at, std::min(silero::kWindowSamples, heard.size() - at)), scratch, events);
    if (events.size() < 2) return {-1, -1};
    return {static_cast<int64_t>(events[0].sample / 16), static_cast<int64_t>(detector.judged() / 16)};
  }
  // In the end.
  bool slots_are_busy(size_t wanted) const {
    const Stopwatch waited;
    while (slots_.busy() != wanted && waited.elapsed_ms() < kPatienceMs) std::this_thread::yield();
    return slots_.busy() == wanted;
  }
  // That the recogniser has begun, in the end.
  bool streams_are(int wanted) const {
    const Stopwatch waited;
    while (recogniser_->streams != wanted && waited.elapsed_ms() < kPatienceMs) std::this_thread::yield();
    return recogniser_->streams == wanted;
  }
  void update(const std::string& input) {
    say(R"({"type":"session.update","session":{"audio":{"input":)" + input + "}}}");
    EXPECT_EQ(hear(), "session.updated") << last_.dump();
  }
  // In two rounds of the session's: an answer of the first leaves before what the round itself finds.
  void nothing_comes() {
    for (int round = 0; round < 2; ++round) {
      say(R"({"type":"conversation.item.retrieve","item_id":"none"})");
      EXPECT_EQ(hear(), "error");
    }
  }
  void refused(const std::string& event, const char* param, const char* sentence) {
    say(event);
    ASSERT_EQ(hear(), "error") << event;
    EXPECT_EQ(text_in({"error", "param"}), param) << event;
    EXPECT_THAT(text_in({"error", "message"}), testing::HasSubstr(sentence)) << event;
  }

  const TempFolder folder_;
  const std::shared_ptr<ActingEngine> engine_ = std::make_shared<ActingEngine>();
  const std::shared_ptr<FakeRecogniser> recogniser_ = std::make_shared<FakeRecogniser>();
  const RecognitionFamily* family_ = &whisper_family();  // of the recogniser that detect() makes a model of
  const std::shared_ptr<FixedAnswer> answers_ = std::make_shared<FixedAnswer>("You said it.");
  std::shared_ptr<const RecognitionModel> recognition_;
  std::shared_ptr<const SpeechModel> speech_;
  Metrics metrics_;
  std::atomic<int64_t> waiting_samples_{0};
  ManualClock clock_;
  std::optional<Session> session_;
  std::thread thread_;
  Json last_;
  bool stands_still_ = false;  // the session that has asked for a slot, until that hears something or is free again
  SlotPool slots_{1, clock_};  // last: its jobs use the above
};

}  // namespace syrinx::server::realtime
