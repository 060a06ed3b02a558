// What is said over Wyoming without sockets: how it waits, what its job makes of it, and which languages are known.
// tests/e2e/wyoming_hearing_test.py has the rest.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "server/language.h"
#include "server/wyoming/session.h"
#include "server/wyoming/utterance_job.h"
#include "tests/base/temp_folder.h"
#include "tests/engine/fake_recogniser.h"
#include "tests/server/recognition_job_fixture.h"

namespace syrinx::server::wyoming {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr PcmFormat kMono = {.rate_hz = 16000, .channels = 1, .bits = 16};

std::string s16(const std::vector<float>& sound) {
  std::string bytes;
  for (const float sample : sound) {
    const int value = static_cast<int>(sample * 32767);
    bytes += static_cast<char>(value & 0xff);
    bytes += static_cast<char>(value >> 8 & 0xff);
  }
  return bytes;
}

TEST(WyomingArrivingSound, IsTakenInOrderAndEnds) {
  ArrivingSound sound(kMono, 1);
  ASSERT_TRUE(sound.append("ab"));
  ASSERT_TRUE(sound.append("cd"));
  std::string bytes;
  ASSERT_TRUE(sound.take(bytes));
  EXPECT_EQ(bytes, "abcd");
  std::thread later([&] {
    EXPECT_TRUE(sound.append("ef"));
    sound.finish();
  });
  ASSERT_TRUE(sound.take(bytes));
  later.join();
  EXPECT_EQ(bytes, "ef");
  EXPECT_FALSE(sound.take(bytes));
}

TEST(WyomingArrivingSound, WhatIsNotWholeOrTooLongIsNotTaken) {
  ArrivingSound sound(kMono, 0.001);
  EXPECT_EQ(sound.append("abc").error().code, Code::kInvalidArgument);
  ASSERT_TRUE(sound.append(std::string(32, 'x')));
  EXPECT_EQ(sound.append("ab").error().code, Code::kLimitExceeded);
  std::string bytes;
  sound.finish();
  ASSERT_TRUE(sound.take(bytes));
  EXPECT_EQ(bytes.size(), 32U);
}

TEST(WyomingArrivingSound, TellsWhenThereIsRoomAgain) {
  ArrivingSound sound(kMono, 1000);
  int told = 0;
  sound.on_room([&] { ++told; });
  ASSERT_TRUE(sound.append(std::string(ArrivingSound::kMaxWaitingBytes, 'x')));
  EXPECT_FALSE(sound.has_room());
  std::string bytes;
  ASSERT_TRUE(sound.take(bytes));
  EXPECT_EQ(told, 1);
  EXPECT_TRUE(sound.has_room());
}

TEST(WyomingArrivingSound, NobodyWaitsForWhatIsGivenUp) {
  ArrivingSound sound(kMono, 1);
  std::thread slot([&] {
    std::string bytes;
    EXPECT_FALSE(sound.take(bytes));
  });
  sound.give_up();
  slot.join();
}

class WyomingUtteranceJob : public RecognitionJobTest {
 protected:
  // The whole life of a job; what its reply says, event by event.
  std::vector<Event> run(const std::string& bytes, const std::string& language = {}) {
    const auto sound = std::make_shared<ArrivingSound>(kMono, 10);
    EXPECT_TRUE(sound->append(bytes));
    sound->finish();
    run_job<UtteranceJob>(UtteranceOrder{.sound = sound, .language = language, .max_s = 10, .id = "1"});
    EventReader reader({});
    reader.push(sent_bytes(*reply_));
    std::vector<Event> events;
    for (auto event = reader.next(); event && *event; event = reader.next()) events.push_back(std::move(**event));
    return events;
  }
};

std::vector<std::string> types(const std::vector<Event>& events) {
  std::vector<std::string> types;
  for (const Event& event : events) types.push_back(event.type);
  return types;
}

TEST_F(WyomingUtteranceJob, TellsWordsInPartsAndAsAWhole) {
  const std::vector<Event> events = run(s16(beeps({0.5, 1.5}, 2, 16000)), "en");
  ASSERT_THAT(types(events),
              ElementsAre("transcript-start", "transcript-chunk", "transcript-chunk", "transcript", "transcript-stop"));
  EXPECT_EQ(*events[1].text("text") + *events[2].text("text"), "beep beep");
  EXPECT_EQ(*events[3].text("text"), "beep beep");
  EXPECT_EQ(*events[3].text("language"), "en");
  EXPECT_EQ(recogniser_->last_language, "en");
  EXPECT_EQ(reply_->pop_news().end, ReplyStream::End::kFinished);
  EXPECT_THAT(log_, HasSubstr("\"event\":\"transcription\""));
  EXPECT_THAT(log_, HasSubstr("\"audio_seconds\":2.0"));
  EXPECT_THAT(log_, Not(HasSubstr("beep")));
}

TEST_F(WyomingUtteranceJob, SilenceAndNothingAreAnEmptyTranscript) {
  for (const std::string& sound : {std::string(), s16(std::vector<float>(1600))}) {
    const std::vector<Event> events = run(sound);
    ASSERT_THAT(types(events), ElementsAre("transcript-start", "transcript", "transcript-stop"));
    EXPECT_EQ(*events[1].text("text"), "");
  }
}

TEST_F(WyomingUtteranceJob, AFaultIsAnErrorThatNamesNoFile) {
  recogniser_->throws_at = 2;
  const std::vector<Event> events = run(s16(beeps({0.5, 1.5}, 2, 16000)));
  EXPECT_EQ(events.back().type, "error");
  EXPECT_THAT(*events.back().text("text"), HasSubstr("out of memory"));
  EXPECT_EQ(reply_->pop_news().end, ReplyStream::End::kAborted);
}

TEST_F(WyomingUtteranceJob, WhatNobodyWaitsForIsNotHeard) {
  cancelled_ = true;
  const int before = recogniser_->calls;
  EXPECT_THAT(run(s16(beeps({0.5}, 2, 16000))), testing::IsEmpty());
  EXPECT_EQ(recogniser_->calls, before);
  EXPECT_THAT(log_, HasSubstr("\"stopped\":\"cancelled\""));
}

TEST_F(WyomingUtteranceJob, ALanguageIsOneOfTheModels) {
  EXPECT_THAT(model_->languages(), ElementsAre("en", "de"));
  EXPECT_EQ(*model_->language_called("de_AT"), "de");
  const auto unknown = model_->language_called("tlh");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, "language_not_found");
  recogniser_->known_languages.clear();
  SetUp();
  EXPECT_THAT(model_->language_called("en").error().message, HasSubstr("list them in recognition_languages"));
  settings_.recognition_languages = {"fr"};
  SetUp();
  EXPECT_THAT(model_->languages(), ElementsAre("fr"));
  EXPECT_EQ(*model_->language_called("fr-CA"), "");  // it cannot be told
  EXPECT_FALSE(model_->language_called("en"));
  recogniser_->known_languages = {"en"};
  SetUp();
  EXPECT_EQ(model_->language_called("fr-CA").value_or("refused"), "");
  EXPECT_EQ(model_->language_called("en-GB").value_or("refused"),
            "en");  // what the operator lists comes to the model's own
}

TEST(Language, IsTheSameOrPartOfTheOther) {
  EXPECT_TRUE(is_same_language("en_US", "en-us"));
  EXPECT_TRUE(is_same_language("en", "en-GB"));
  EXPECT_TRUE(is_same_language("zh-Hans-CN", "zh"));
  EXPECT_FALSE(is_same_language("en-US", "en-GB"));
  EXPECT_FALSE(is_same_language("e", "en"));
  EXPECT_FALSE(is_same_language("", ""));
}

TEST(WyomingSession, SoundNeedsAModel) {
  Service service({}, *ApiKeys::load({}), nullptr);
  service.ready(nullptr);
  Description description;
  for (const char* type : {"transcribe", "audio-start", "audio-chunk"}) {
    Session session(service, description);
    Event event{.type = type, .payload = "ab"};
    for (const auto& [name, value] : {std::pair("rate", 16000), std::pair("width", 2), std::pair("channels", 1)})
      event.data.set(name, value);
    const Session::Said said = session.take(event);
    EXPECT_TRUE(said.closes) << type;
    EXPECT_THAT(said.bytes, HasSubstr("no model of this server recognises speech")) << type;
    EXPECT_FALSE(session.owes());
  }
}

}  // namespace
}  // namespace syrinx::server::wyoming
