// The recogniser beside the voice: how each is called, and whose slots are whose.
#include "server/host/recognition_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "engine/families/transducer/transducer_family.h"
#include "engine/families/whisper/whisper_family.h"
#include "server/openai/transcription_request.h"
#include "server/service.h"
#include "tests/base/temp_folder.h"
#include "tests/engine/recognition/fake_recogniser.h"
#include "tests/engine/recognition/noise_detector.h"
#include "tests/server/host/listed_model.h"

namespace syrinx::server {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kCheckpoint = "/secret/place/tiny/model.bin";

Settings recognition_alone() {
  Settings settings;
  settings.speech_model = "";
  settings.recognition_model = "/secret/place/tiny";
  settings.recognition_slots = 3;
  return settings;
}

class RecognitionModelTest : public testing::Test {
 protected:
  void SetUp() override {
    RecognitionFiles files;
    files.family = &whisper_family();
    files.checkpoint = kCheckpoint;
    const auto made = RecognitionModel::of(settings_, files, recogniser_);
    ASSERT_TRUE(made) << made.error().message;
    model_ = *made;
  }

  HttpReply ask(Service& service, const char* method, const char* path, const char* query = "") {
    HttpRequest request;
    request.method = method;
    request.path = path;
    request.query = query;
    request.body = "{\"input\": \"Hello.\"}";
    return service.answer(request);
  }

  const Settings settings_ = recognition_alone();
  const std::shared_ptr<FakeRecogniser> recogniser_ = std::make_shared<FakeRecogniser>();
  std::shared_ptr<const RecognitionModel> model_;
};

TEST_F(RecognitionModelTest, IsWarmAndGoesByItsNames) {
  EXPECT_EQ(recogniser_->calls, 1);
  EXPECT_GT(model_->warm_up_ms(), recogniser_->warm_up_ms());
  EXPECT_EQ(model_->id(), "tiny");
  for (const char* name :
       {"", "tiny", "whisper-1", "gpt-4o-transcribe", "gpt-4o-mini-transcribe", "gpt-4o-mini-transcribe-2025-12-15",
        "gpt-4o-transcribe-2025-03-20", "gpt-4o-transcribe-diarize"})
    EXPECT_TRUE(model_->is_called(name)) << name;
  for (const char* name : {"tts-1", "whisper-base", "/secret/place/tiny", "whisper-1-", "gpt-4o-transcribe-2025-3-20",
                           "gpt-4o-transcribe-2025-03-20-1", "tiny-2025-03-20"})
    EXPECT_FALSE(model_->is_called(name)) << name;
  EXPECT_TRUE(model_->names_its_files("'/secret/place/tiny/model.bin' is damaged"));
  EXPECT_TRUE(model_->names_its_files("'" + settings_.recognition_model + "' is no folder"));
  EXPECT_FALSE(model_->names_its_files("the sound is damaged"));
  EXPECT_FALSE(model_->names_its_files("'tiny' does not know the language 'xx'"));
  EXPECT_EQ(model_->voice_activity(), nullptr);
}

// Whoever finds turns uses the weights that the recogniser's gate holds; the file is not read again.
TEST_F(RecognitionModelTest, VoiceActivityIsHeldOnce) {
  const TempFolder folder;
  recogniser_->vad = *silero::SileroVad::load(write_noise_detector(folder.path() + "/vad.bin"));
  RecognitionFiles files;
  files.family = &whisper_family();
  files.voice_activity = "/nowhere/vad.bin";
  const auto model = RecognitionModel::of(settings_, files, recogniser_);
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ((*model)->voice_activity(), recogniser_->vad);
  EXPECT_EQ(recogniser_->vad.use_count(), 2);  // the recogniser and the model
}

TEST_F(RecognitionModelTest, OneThatCannotHearIsNotReady) {
  recogniser_->throws_at = 1;  // the sound that it is tried with is one loud part
  EXPECT_THROW(static_cast<void>(RecognitionModel::of(settings_, {.family = &whisper_family()}, recogniser_)),
               std::bad_alloc);
}

TEST_F(RecognitionModelTest, ReadyTakesNoOtherWords) {
  Service service(settings_, *ApiKeys::load({}), nullptr);
  service.ready(nullptr, model_);
  for (const char* good : {"", "slots=1", "slots=recognition", "&slots=1&"})
    EXPECT_EQ(ask(service, "GET", "/ready", good).status, 200) << good;
  for (const char* bad : {"slots=foo", "slots=Speech", "slots=2", "slots=", "slots", "slot=speech", "slots=1&x=1"}) {
    const HttpReply reply = ask(service, "GET", "/ready", bad);
    EXPECT_EQ(reply.status, 400) << bad;
    EXPECT_THAT(reply.body, HasSubstr("ask for slots=speech, slots=recognition, slots=chat or slots=1")) << bad;
    EXPECT_THAT(reply.body, HasSubstr("\"param\":\"slots\"")) << bad;
  }
}

TEST_F(RecognitionModelTest, StandsBesideNoVoiceWhereThatIsOff) {
  Service service(settings_, *ApiKeys::load({}), nullptr);
  EXPECT_THAT(ask(service, "GET", "/metrics").body, Not(HasSubstr("syrinx_slots")));
  service.ready(nullptr, model_);
  const auto ready = parse_json(ask(service, "GET", "/ready", "slots=1").body, "ready");
  ASSERT_TRUE(ready);
  EXPECT_EQ(*ready->find("recognition")->find("free_slots")->whole(), 3);
  EXPECT_EQ(*ready->find("speech")->find("slots")->whole(), 0);
  EXPECT_EQ(ask(service, "GET", "/ready", "slots=recognition").status, 200);
  const HttpReply no_voice = ask(service, "GET", "/ready", "slots=speech");
  EXPECT_EQ(no_voice.status, 503);
  EXPECT_THAT(no_voice.body, HasSubstr("no model of this server is for speech, so it has no such slot"));
  EXPECT_THAT(ask(service, "GET", "/metrics").body, HasSubstr("syrinx_slots{model=\"tiny\",state=\"free\"} 3\n"));
  EXPECT_THAT(ask(service, "GET", "/metrics").body, HasSubstr("syrinx_audio_backlog_seconds{model=\"tiny\"} 0\n"));
  const std::string models = ask(service, "GET", "/v1/models").body;
  EXPECT_THAT(models, HasSubstr("\"id\":\"tiny\""));
  EXPECT_THAT(models, HasSubstr("\"task\":\"automatic-speech-recognition\""));
  EXPECT_THAT(models, Not(HasSubstr("text-to-speech")));
  EXPECT_EQ(ask(service, "GET", "/v1/audio/voices").body, "{\"voices\":[],\"uploads\":false}");
  EXPECT_EQ(ask(service, "GET", "/v1/audio/models").body, "{\"models\":[]}");
  const HttpReply speech = ask(service, "POST", "/v1/audio/speech");
  EXPECT_EQ(speech.status, 404);
  EXPECT_THAT(speech.body, HasSubstr("no model of this server speaks"));
}

TEST_F(RecognitionModelTest, WhileItLoadsTheServerIsNotReady) {
  Service service(settings_, *ApiKeys::load({}), nullptr);
  const HttpReply loading = ask(service, "GET", "/ready");
  EXPECT_EQ(loading.status, 503);
  EXPECT_THAT(loading.body, HasSubstr("\"code\":\"loading\""));
  ASSERT_EQ(loading.headers.size(), 1U);
  EXPECT_EQ(loading.headers[0].name, "Retry-After");
  for (const char* path :
       {"/v1/models", "/v1/models/tiny", "/v1/audio/models", "/v1/audio/voices", "/v1/audio/voices/ann"}) {
    const HttpReply early = ask(service, "GET", path);
    EXPECT_EQ(early.status, 503) << path;  // that there is none would be untrue in a moment
    EXPECT_THAT(early.body, HasSubstr("\"code\":\"loading\"")) << path;
  }
  EXPECT_EQ(ask(service, "GET", "/health").status, 200);
  service.ready(nullptr, model_);
  const HttpReply ready = ask(service, "GET", "/ready");
  EXPECT_EQ(ready.status, 200);
  EXPECT_THAT(ready.body, HasSubstr("\"status\":\"ready\""));
  for (const char* path : {"/v1/models", "/v1/models/tiny", "/v1/audio/voices"})
    EXPECT_EQ(ask(service, "GET", path).status, 200) << path;
  EXPECT_EQ(ask(service, "GET", "/v1/audio/voices/ann").status, 404);
}

TEST_F(RecognitionModelTest, OneThatGoesDownIsNotMadeReadyByAModel) {
  Service service(settings_, *ApiKeys::load({}), nullptr);
  service.drain();
  service.ready(nullptr, model_);
  const HttpReply draining = ask(service, "GET", "/ready");
  EXPECT_EQ(draining.status, 503);
  EXPECT_THAT(draining.body, HasSubstr("\"code\":\"draining\""));
}

TEST_F(RecognitionModelTest, ListsLanguagesAndUnsupportedFields) {
  const auto unheeded = [&](const Settings& settings, const char* languages) {
    const auto model = RecognitionModel::of(settings, {.family = &whisper_family()}, recogniser_);
    Service service(settings, *ApiKeys::load({}), nullptr);
    service.ready(nullptr, *model);
    const Json listed = listed_model(service);
    EXPECT_EQ(listed.find("languages")->dump(), languages);
    std::vector<std::string> fields = texts_of(*listed.find("unsupported_parameters"));
    EXPECT_THAT(fields, testing::IsSubsetOf(transcription_fields(/*translated=*/false)));
    for (const std::string& field : unheeded_transcription_fields()) EXPECT_EQ(std::erase(fields, field), 1U) << field;
    return fields;  // that others may heed
  };
  EXPECT_THAT(unheeded(settings_, R"(["en","de"])"), testing::ElementsAre("boost_score", "chunking_strategy"));
  const TempFolder folder;
  recogniser_->vad = *silero::SileroVad::load(write_noise_detector(folder.path() + "/vad.bin"));
  EXPECT_THAT(unheeded(settings_, R"(["en","de"])"), testing::ElementsAre("boost_score"));
  recogniser_->favours_words = false;
  EXPECT_THAT(unheeded(settings_, R"(["en","de"])"), testing::ElementsAre("boost_score", "keywords[]"));
  recogniser_->known_languages.clear();
  EXPECT_THAT(unheeded(settings_, "[]"), testing::ElementsAre("boost_score", "language", "keywords[]"));
  Settings settings = settings_;
  settings.recognition_languages = {"fr"};  // the operator's word for Wyoming, which makes nobody heed it
  EXPECT_THAT(unheeded(settings, R"(["fr"])"), testing::ElementsAre("boost_score", "language", "keywords[]"));
  const auto transducer = RecognitionModel::of(settings_, {.family = &transducer_family()}, recogniser_);
  ASSERT_TRUE(transducer);
  EXPECT_THAT((*transducer)->unheeded_fields(),
              testing::IsSupersetOf({"prompt", "temperature", "best_of", "patience", "length_penalty"}));
  EXPECT_THAT((*transducer)->unheeded_fields(), testing::Not(testing::Contains("beam")));
  struct Greedy : FakeRecogniser {
    Status check_recording(const TranscribeOptions& options) const override {
      if (options.knobs.has("beam")) return fail(Code::kUnsupported, "there is no beam search");
      return check_stream(options);
    }
  };
  const auto other = RecognitionModel::of(settings_, {.family = &transducer_family()}, std::make_shared<Greedy>());
  ASSERT_TRUE(other);
  EXPECT_THAT((*other)->unheeded_fields(), testing::Contains("beam"));
}

TEST_F(RecognitionModelTest, OneIsToldOfByItsOwnId) {
  Settings settings = settings_;
  settings.recognition_model = "/secret/place/one ten";
  const auto model = RecognitionModel::of(settings, {.family = &whisper_family()}, recogniser_);
  ASSERT_TRUE(model);
  Service service(settings, *ApiKeys::load({}), nullptr);
  service.ready(nullptr, *model);
  EXPECT_THAT(ask(service, "GET", "/v1/models/one%20ten").body, HasSubstr("{\"id\":\"one ten\",\"object\":\"model\""));
  for (const char* other : {"whisper-1", "one", "one%2", ""}) {
    const HttpReply reply = ask(service, "GET", (std::string("/v1/models/") + other).c_str());
    EXPECT_EQ(reply.status, 404) << other;
    EXPECT_THAT(reply.body, HasSubstr("\"code\":\"model_not_found\"")) << other;
  }
}

TEST_F(RecognitionModelTest, TheSettingsNameOneModelAtLeastAndNoNameTwice) {
  Settings settings = settings_;
  EXPECT_TRUE(check(settings));
  settings.speech_model = "/elsewhere/tiny.onnx";
  EXPECT_THAT(check(settings).error().message, HasSubstr("are both called 'tiny'"));
  settings.speech_model = settings.recognition_model = "";
  EXPECT_THAT(check(settings).error().message, HasSubstr("nothing to serve"));
  settings.recognition_model = "/nowhere/at-all";
  const Status missing = RecognitionModel::check(settings);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Code::kNotFound);
  EXPECT_THAT(missing.error().message, HasSubstr("switch recognition off with --recognition-model \"\""));
}

}  // namespace
}  // namespace syrinx::server
