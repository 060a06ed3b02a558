// Voices by their languages, and what /v1/models tells of the model that speaks.
#include "server/host/speech_model.h"
#include "engine/families/kokoro/kokoro_family.h"
#include "engine/families/pocket_tts/pocket_family.h"
#include "engine/speech/speech_family.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "base/json.h"
#include "base/signals.h"
#include "server/openai/speech_request.h"
#include "server/service.h"
#include "tests/base/temp_folder.h"
#include "tests/server/host/acting_engine.h"
#include "tests/server/host/listed_model.h"

namespace syrinx::server {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class SpeechModelTest : public testing::Test {
 protected:
  // Kokoro's names begin with the letter of their language; nothing reads the files.
  std::shared_ptr<const SpeechModel> kokoro(const Settings& settings = {}) {
    for (const char* voice : {"af_ann", "am_max", "bf_bea", "ef_eva"})
      std::ofstream(folder_.path() + "/" + voice + ".bin") << "x";
    SpeechFiles files;
    files.family = &kokoro_family();
    files.voices = folder_.path();
    return made(settings, files);
  }

  std::shared_ptr<const SpeechModel> pocket(const char* checkpoint, const Settings& settings = {}) {
    std::filesystem::create_directory(folder_.path() + "/voices");
    for (const char* voice : {"ann", "bob"}) std::ofstream(folder_.path() + "/voices/" + voice + ".safetensors") << "x";
    SpeechFiles files;
    files.family = &pocket_tts_family();
    files.checkpoint = checkpoint;
    files.voices = folder_.path();
    return made(settings, files);
  }

  const TempFolder folder_;

 private:
  static std::shared_ptr<const SpeechModel> made(const Settings& settings, const SpeechFiles& files) {
    const auto model = SpeechModel::of(settings, files, std::make_shared<ActingEngine>());
    EXPECT_TRUE(model) << model.error().message;
    return *model;
  }
};

TEST_F(SpeechModelTest, AVoiceOfTheLanguageSpeaksWhereNoneIsNamed) {
  const auto model = kokoro();
  EXPECT_THAT(model->languages(), ElementsAre("en-us", "en-gb"));  // texts in Spanish are read by nobody
  EXPECT_EQ(model->find_voice("", ""), "af_ann");
  EXPECT_EQ(model->find_voice("", "en"), "af_ann");
  EXPECT_EQ(model->find_voice("", "en_US"), "af_ann");
  EXPECT_EQ(model->find_voice("", "en-GB"), "bf_bea");
  EXPECT_EQ(model->find_voice("", "British English"), "bf_bea");
  for (const char* language : {"English", "eng", "auto", " \n"}) EXPECT_EQ(model->find_voice("", language), "af_ann");
  EXPECT_EQ(kokoro({.voice = "am_max"})->find_voice("", "en"), "am_max");
  for (const char* language : {"es", "de", "klingon", "-"}) {
    const auto found = model->find_voice("", language);
    ASSERT_FALSE(found) << language;
    EXPECT_EQ(found.error().status, 400);
    EXPECT_EQ(found.error().param, "language");
    EXPECT_THAT(found.error().message, HasSubstr("leave 'language' out, or give one that GET /v1/models lists"));
  }
}

// Before anybody asks; one that cannot speak keeps nobody else from it.
TEST_F(SpeechModelTest, OtherLanguagesAreLoadedWithModel) {
  const auto asked_for = [](const SpeechModel& model) { return static_cast<ActingEngine&>(model.engine()).asked_for; };
  EXPECT_THAT(asked_for(*kokoro()), ElementsAre("af_ann", "bf_bea"));
  EXPECT_THAT(asked_for(*kokoro({.voice = "bf_bea"})), ElementsAre("bf_bea", "af_ann"));
  EXPECT_THAT(asked_for(*pocket("/somewhere/german/model.yaml", {.voice = "bob"})), ElementsAre("bob"));
  SpeechFiles files;
  files.family = &kokoro_family();
  files.voices = folder_.path();
  const auto engine = std::make_shared<ActingEngine>();
  engine->before = [&] {
    if (engine->asked_for.back() == "bf_bea") engine->refusal = Error{Code::kNotFound, "there is no lexicon"};
  };
  EXPECT_TRUE(SpeechModel::of({}, files, engine));
  EXPECT_EQ(engine->asked_for.back(), "bf_bea");
}

TEST_F(SpeechModelTest, SignalEndsWarmUp) {
  std::ofstream(folder_.path() + "/af_ann.bin") << "x";
  SpeechFiles files;
  files.family = &kokoro_family();
  files.voices = folder_.path();
  const auto engine = std::make_shared<ActingEngine>();
  engine->act = {.chunks = 100'000, .chunk_samples = 1, .step = [] { request_cancel(); }};
  const auto model = SpeechModel::of({}, files, engine);
  clear_cancel();
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().code, Code::kCancelled);
}

TEST_F(SpeechModelTest, ANamedVoiceMustSpeakTheLanguage) {
  std::ofstream(folder_.path() + "/own.bin") << "x";
  const auto model = kokoro({.voices = {}, .voice_names = {"aunt=bf_bea", "both=bf_bea:0.5+af_ann:0.5"}});
  EXPECT_EQ(model->find_voice("bf_bea", "en-gb"), "bf_bea");
  EXPECT_EQ(model->find_voice("aunt", "en-gb"), "bf_bea");
  EXPECT_EQ(model->find_voice("af_ann+bf_bea", "en-us"), "af_ann+bf_bea");  // the first one decides
  EXPECT_EQ(model->find_voice("both", "en-GB"), "bf_bea:0.5+af_ann:0.5");
  EXPECT_EQ(model->find_voice("own", ""), "own");
  for (const char* voice : {"af_ann", "alloy", "af_ann+bf_bea", "own"}) {
    const auto found = model->find_voice(voice, "en-GB");
    ASSERT_FALSE(found) << voice;
    EXPECT_EQ(found.error().status, 400);
    EXPECT_EQ(found.error().param, "language");
    EXPECT_THAT(found.error().message, HasSubstr(fmt::format("the voice '{}' is not known to speak 'en-GB'", voice)));
  }
  EXPECT_EQ(model->find_voice("carl", "en-GB").error().code, "voice_not_found");
}

TEST_F(SpeechModelTest, AllVoicesOfPocketTtsSpeakItsLanguage) {
  const auto model = pocket("/somewhere/german/model.yaml", {.voice = "bob"});
  EXPECT_THAT(model->languages(), ElementsAre("de"));
  EXPECT_EQ(model->find_voice("", "de-AT"), "bob");
  EXPECT_EQ(model->find_voice("ann", "de"), "ann");
  EXPECT_EQ(model->find_voice("ann", "en").error().param, "language");
  const char* const own = "/somewhere/own.safetensors";  // which is the operator's, and not listed
  EXPECT_EQ(pocket("/somewhere/german/model.yaml", {.voice = own})->find_voice("", "de"), own);
}

TEST_F(SpeechModelTest, GoesByOpenAisNamesAndTheirEditions) {
  const auto model = kokoro();
  for (const char* name : {"", "kokoro", "tts-1", "gpt-4o-mini-tts", "gpt-4o-mini-tts-2025-03-20", "tts-1-hd"})
    EXPECT_TRUE(model->is_called(name)) << name;
  for (const char* name : {"whisper-1", "gpt-4o-mini-tts-latest", "gpt-4o-mini-tts-2025-03-2x", "kokoro-2025-03-20"})
    EXPECT_FALSE(model->is_called(name)) << name;
}

TEST_F(SpeechModelTest, WrongWeightIsTold) {
  const auto model = kokoro();
  for (const char* voice : {"af_ann(0)+bf_bea(1)", "af_ann:x", "af_ann(-1)"}) {
    const auto found = model->find_voice(voice, "");
    ASSERT_FALSE(found) << voice;
    EXPECT_EQ(found.error().status, 400);
    EXPECT_EQ(found.error().param, "voice");
    EXPECT_THAT(found.error().message, HasSubstr("is not a number above 0")) << voice;
  }
  EXPECT_EQ(model->find_voice("nobody", "").error().status, 404);
  EXPECT_EQ(model->find_voice("af_ann+nobody", "").error().status, 404);
}

TEST_F(SpeechModelTest, ARequestIsToldOfItsLanguage) {
  Service service({}, *ApiKeys::load({}), nullptr);
  service.ready(kokoro());
  HttpRequest request;
  request.method = "POST";
  request.path = "/v1/audio/speech";
  request.body = R"({"input": "Hallo.", "language": "de"})";
  const HttpReply reply = service.answer(request);
  EXPECT_EQ(reply.status, 400);
  EXPECT_THAT(reply.body, HasSubstr("\"param\":\"language\""));
}

TEST_F(SpeechModelTest, ListsLanguagesAndUnsupportedFields) {
  for (const bool is_pocket : {false, true}) {
    Service service({}, *ApiKeys::load({}), nullptr);
    service.ready(is_pocket ? pocket("/somewhere/french/model.yaml") : kokoro());
    const Json model = listed_model(service);
    EXPECT_EQ(model.find("languages")->dump(), is_pocket ? R"(["fr"])" : R"(["en-us","en-gb"])");
    std::vector<std::string> expected = unheeded_speech_fields();
    std::set<std::string> options;
    for (const SpeechFamily* const other : speech_families())
      for (const Knob& knob : other->knobs)
        if (knob.use == Knob::Use::kRequest && !has_knob(is_pocket ? pocket_tts_family() : kokoro_family(), knob.name))
          options.insert(knob.name);
    options.erase(kLanguageKnob);  // the field chooses a voice
    expected.insert(expected.end(), options.begin(), options.end());
    EXPECT_THAT(texts_of(*model.find("unsupported_parameters")), testing::UnorderedElementsAreArray(expected));
    EXPECT_THAT(expected, testing::IsSubsetOf(speech_fields()));
  }
}

}  // namespace
}  // namespace syrinx::server
