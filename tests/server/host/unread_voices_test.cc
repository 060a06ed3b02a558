// Kokoro's voices of languages in which no text is read: no protocol offers them, and who names one hears why not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <string>
#include <thread>

#include "engine/families/kokoro/kokoro_family.h"
#include "server/realtime/session.h"
#include "server/service.h"
#include "server/wyoming/info.h"
#include "tests/base/temp_folder.h"
#include "tests/server/host/acting_engine.h"

namespace syrinx::server {
namespace {

using testing::HasSubstr;
using testing::Not;

class UnreadVoices : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* voice : {"af_ann", "bf_bea", "ef_eva", "jf_jun", "own"})
      std::ofstream(folder_.path() + "/" + voice + ".bin") << "x";
    const auto model = made({});
    ASSERT_TRUE(model) << model.error().message;
    model_ = *model;
  }
  Result<std::shared_ptr<const SpeechModel>> made(const Settings& settings) const {
    SpeechFiles files;
    files.family = &kokoro_family();
    files.voices = folder_.path();
    return SpeechModel::of(settings, files, std::make_shared<ActingEngine>());
  }
  static HttpReply ask(Service& service, const char* method, const char* path, const char* body = "") {
    HttpRequest request;
    request.method = method;
    request.path = path;
    request.body = body;
    return service.answer(request);
  }

  const TempFolder folder_;
  std::shared_ptr<const SpeechModel> model_;
};

TEST_F(UnreadVoices, AreNotOffered) {
  std::vector<std::string> names;
  for (const ListedVoice& voice : model_->voices()) names.push_back(voice.id);
  EXPECT_THAT(names, testing::ElementsAre("af_ann", "bf_bea", "own"));  // nothing is known of the last
  Service service({}, *ApiKeys::load({}), nullptr);
  service.ready(model_);
  EXPECT_THAT(ask(service, "GET", "/v1/audio/voices").body, Not(HasSubstr("ef_eva")));
  EXPECT_EQ(ask(service, "GET", "/v1/audio/voices/ef_eva").status, 404);
  const std::string described = written(wyoming::info(model_.get(), nullptr));
  EXPECT_THAT(described, HasSubstr("bf_bea"));
  EXPECT_THAT(described, Not(HasSubstr("ef_eva")));
  EXPECT_THAT(described, Not(HasSubstr("jf_jun")));
}

TEST_F(UnreadVoices, RefusalNamesTheirLanguage) {
  for (const char* voice : {"ef_eva", "ef_eva:0.5+af_ann:0.5", "af_ann+ef_eva"}) {
    for (const char* language : {"", "en", "es"}) {
      const auto found = model_->find_voice(voice, language);
      ASSERT_FALSE(found) << voice;
      EXPECT_EQ(found.error().status, 400) << voice;
      EXPECT_EQ(found.error().param, "voice") << voice;
      EXPECT_EQ(found.error().message,
                "the voice 'ef_eva' speaks Spanish, and texts in English alone are read; choose a voice that GET "
                "/v1/audio/voices lists");
    }
  }
  EXPECT_EQ(model_->find_voice("ef_nobody").error().status, 404);
  Service service({}, *ApiKeys::load({}), nullptr);
  service.ready(model_);
  const HttpReply reply = ask(service, "POST", "/v1/audio/speech", R"({"input": "Hello.", "voice": "jf_jun"})");
  EXPECT_EQ(reply.status, 400);
  EXPECT_THAT(reply.body, HasSubstr("'jf_jun' speaks Japanese"));
}

TEST_F(UnreadVoices, AreRefusedBySessions) {
  Metrics metrics;
  realtime::Session session({.speech = model_, .replies = std::make_shared<realtime::ReadAloud>(), .id = "1"},
                            JobReports{.metrics = metrics});
  std::thread thread([&] { session.run(); });
  const auto hear = [&] {
    MessageStream::Message message;
    while (!session.messages()->try_pop(message)) std::this_thread::yield();
    return message.bytes;
  };
  EXPECT_THAT(hear(), HasSubstr("session.created"));
  session.messages()->deliver(
      {.bytes = R"({"type":"session.update","session":{"audio":{"output":{"voice":"ef_eva"}}}})"});
  EXPECT_THAT(hear(), testing::AllOf(HasSubstr("\"error\""), HasSubstr("speaks Spanish"),
                                     HasSubstr("\"param\":\"audio.output.voice\"")));
  session.messages()->leave();
  thread.join();
  session.end();
}

TEST_F(UnreadVoices, SettingsThatNameOneAreRefused) {
  for (const auto& [settings, words] :
       {std::pair(Settings{.voice = "ef_eva"}, "'voice' is 'ef_eva': the voice 'ef_eva' speaks Spanish"),
        std::pair(Settings{.voice_names = {"eva=ef_eva"}},
                  "'voice_names' holds 'eva=ef_eva': the voice 'ef_eva' speaks"),
        std::pair(Settings{.voices = {"zf_zoe=/somewhere/zoe.bin"}},
                  "a voice of that name speaks Mandarin, which no text is read in; give it another name")}) {
    const auto refused = made(settings);
    ASSERT_FALSE(refused) << words;
    EXPECT_EQ(refused.error().code, Code::kUnsupported);
    EXPECT_THAT(refused.error().message, HasSubstr(words));
  }
}

}  // namespace
}  // namespace syrinx::server
