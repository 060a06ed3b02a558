// Uploads that cannot be kept, and models that make no voices.
#include "server/openai/voice_job.h"
#include "engine/families/pocket_tts/pocket_family.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <new>
#include <utility>

#include "server/service.h"
#include "tests/base/temp_folder.h"
#include "tests/server/host/acting_engine.h"
#include "tests/server/host/job_run.h"

namespace syrinx::server {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kType = "multipart/form-data; boundary=b";
constexpr const char* kForm =
    "--b\r\nContent-Disposition: form-data; name=\"name\"\r\n\r\nme\r\n"
    "--b\r\nContent-Disposition: form-data; name=\"file\"\r\n\r\nsound\r\n--b--\r\n";

// Remembers what it is asked to add and to remove.
class AddingEngine final : public ActingEngine {
 public:
  Status add_voice(const std::string& name, std::span<const std::byte> /*content*/) override {
    added.push_back(name);
    if (after_add) after_add();
    return fault;
  }
  void remove_voice(const std::string& name) override { added.push_back("no " + name); }
  bool clones() const override { return can_clone; }
  Result<std::string> export_voice(const std::string& /*voice*/) override {
    if (before_export) before_export();
    return std::string("exported");
  }

  Status fault;
  bool can_clone = true;
  std::function<void()> after_add, before_export;
  std::vector<std::string> added;
};

// OpenAI's clients do not send it again.
MATCHER_P(IsFinal, status, "") {
  const auto& headers = arg.headers;
  return arg.status == status && std::any_of(headers.begin(), headers.end(), [](const HttpHeader& header) {
           return header.name == "x-should-retry" && header.value == "false";
         });
}

class VoiceJobTest : public testing::Test {
 protected:
  void SetUp() override {
    fs::create_directory(folder_.path() + "/voices");
    std::ofstream(folder_.path() + "/voices/ann.safetensors") << "x";
    files_.family = &pocket_tts_family();
    files_.checkpoint = "/secret/place/model.yaml";
    files_.voices = folder_.path();
    settings_.voices_dir = folder_.path() + "/shelf";
    settings_.speech_model = "pocket";
    const auto made = SpeechModel::of(settings_, files_, engine_);
    ASSERT_TRUE(made) << made.error().message;
    model_ = *made;
  }

  HttpReply run(VoiceOrder order) {
    order.max_voices = 2;
    log_ = logged(folder_.path() + "/log", [&](RequestLog& log) {
      VoiceJob job(model_, std::move(order), {.metrics = metrics_, .log = &log});
      reply_ = job.reply();
      run_whole(job);
    });
    const ReplyStream::News news = reply_->pop_news();
    return news.head == nullptr ? HttpReply{.status = 0} : *news.head;
  }

  HttpReply upload() { return run({.type = kType, .body = kForm}); }
  bool is_kept() const { return fs::exists(folder_.path() + "/shelf/pocket/me.safetensors"); }

  const TempFolder folder_;
  const std::shared_ptr<AddingEngine> engine_ = std::make_shared<AddingEngine>();
  Settings settings_;
  SpeechFiles files_;
  std::shared_ptr<const SpeechModel> model_;
  Metrics metrics_;
  std::shared_ptr<ReplyStream> reply_;
  std::string log_;
};

TEST_F(VoiceJobTest, AVoiceIsKeptAndListedUntilItIsDeleted) {
  const HttpReply made = upload();
  EXPECT_EQ(made.status, 200) << made.body;
  EXPECT_THAT(made.body, HasSubstr("\"id\":\"me\""));
  EXPECT_TRUE(is_kept());
  EXPECT_EQ(model_->find_voice("me"), "me");
  EXPECT_THAT(log_, Not(HasSubstr("\"me\"")));
  EXPECT_THAT(upload(), IsFinal(409));
  EXPECT_EQ(run({.deleted = "me"}).status, 200);
  EXPECT_FALSE(is_kept());
  EXPECT_EQ(model_->find_voice("me").error().status, 404);
  EXPECT_THAT(engine_->added, ElementsAre("me", "no me"));
}

TEST_F(VoiceJobTest, AnUploadedOneTakesNoneOfOpenAisNames) {
  ASSERT_TRUE(model_->shelf().put("af_alloy", "voice"));
  const auto made = SpeechModel::of(settings_, files_, engine_);  // after a restart
  ASSERT_TRUE(made) << made.error().message;
  model_ = *made;
  EXPECT_EQ(model_->find_voice("af_alloy"), "af_alloy");
  EXPECT_EQ(model_->find_voice("alloy"), *model_->find_voice(""));
  EXPECT_EQ(run({.deleted = "af_alloy"}).status, 200);
  EXPECT_EQ(model_->find_voice("alloy"), *model_->find_voice(""));
}

TEST_F(VoiceJobTest, FaultIsClientsOrServers) {
  const auto status = [&](Code code, const char* message) {
    engine_->fault = fail(code, "{}", message);
    const HttpReply reply = upload();
    EXPECT_THAT(reply.body, Not(HasSubstr("secret")));
    return reply.status;
  };
  EXPECT_EQ(status(Code::kInvalidArgument, "silent"), 400);
  EXPECT_EQ(status(Code::kDataLoss, "cut off"), 400);
  EXPECT_EQ(status(Code::kLimitExceeded, "too long"), 413);
  EXPECT_EQ(status(Code::kUnsupported, "no sound"), 415);
  EXPECT_EQ(status(Code::kUnavailable, "no memory"), 503);
  EXPECT_EQ(status(Code::kInternal, "'/secret/place' is bad"), 500);
  EXPECT_THAT(log_, HasSubstr("/secret/place"));
  EXPECT_EQ(status(Code::kDataLoss, "'/secret/place/model.yaml' is damaged"), 500);
  EXPECT_FALSE(is_kept());
  EXPECT_EQ(model_->shelf().size(), 0);
}

TEST_F(VoiceJobTest, OfAClientThatHasGoneNothingIsKept) {
  engine_->before_export = [] { FAIL() << "the client has gone before"; };
  for (const bool at_once : {true, false}) {
    VoiceJob job(model_, {.type = kType, .body = kForm, .max_voices = 2}, {.metrics = metrics_});
    if (at_once) job.reply()->cancel();
    engine_->after_add = [&] { job.reply()->cancel(); };
    run_whole(job);
    EXPECT_FALSE(is_kept());
    EXPECT_EQ(engine_->added.empty(), at_once);  // no work of seconds for nobody
  }
  EXPECT_THAT(engine_->added, ElementsAre("me", "no me"));
}

TEST_F(VoiceJobTest, WithoutMemoryForItsFileNothingIsKept) {
  engine_->before_export = [] { throw std::bad_alloc(); };
  EXPECT_EQ(upload().status, 503);
  EXPECT_THAT(engine_->added, ElementsAre("me", "no me"));
  engine_->before_export = nullptr;
  EXPECT_EQ(upload().status, 200);
}

TEST_F(VoiceJobTest, WithoutMemoryToTellOfItTheVoiceIsThereAndTheAnswerToo) {
  for (const bool is_deleted : {false, true}) {
    VoiceOrder order{.type = kType, .body = kForm, .max_voices = 2};
    if (is_deleted) order = {.deleted = "me"};
    VoiceJob job(model_, std::move(order), {.metrics = metrics_});
    int told = 0;
    job.reply()->on_news([&] {
      if (++told == 1) throw std::bad_alloc();
    });
    run_whole(job);
    EXPECT_EQ(told, 2);
    EXPECT_EQ(job.reply()->pop_news().head->status, 200);
    EXPECT_EQ(is_kept(), !is_deleted);
  }
}

TEST_F(VoiceJobTest, UnwritableVoiceIsRemovedAgain) {
  engine_->before_export = [&] { write_text(folder_.path() + "/shelf", "no folder"); };
  const HttpReply reply = upload();
  EXPECT_THAT(reply, IsFinal(507));
  EXPECT_THAT(reply.body, Not(HasSubstr(folder_.path())));
  EXPECT_THAT(log_, HasSubstr(folder_.path() + "/shelf"));
  EXPECT_EQ(model_->find_voice("me").error().status, 404);
  EXPECT_THAT(engine_->added, ElementsAre("me", "no me"));
}

TEST_F(VoiceJobTest, AModelThatClonesNoneIsNotSentAny) {
  engine_->can_clone = false;
  Service service(settings_, *ApiKeys::load({}), nullptr);
  ASSERT_TRUE(service.start());
  service.ready(model_);
  HttpRequest request;
  request.method = "POST";
  request.path = "/v1/audio/voices";
  request.headers = {{"Content-Type", kType}, {"Host", "localhost"}};
  const HttpService::Admission refused = service.admit(request);
  ASSERT_NE(refused.refusal, nullptr);
  EXPECT_THAT(refused.refusal->body, HasSubstr("cloning_not_supported"));
  engine_->can_clone = true;
  EXPECT_EQ(service.admit(request).refusal, nullptr);
}

}  // namespace
}  // namespace syrinx::server
