// A job of recognition on a recogniser that hears beeps, what it answers and what it logs.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "engine/families/whisper/whisper_family.h"
#include "server/host/metrics.h"
#include "server/host/recognition_model.h"
#include "server/settings/settings.h"
#include "tests/base/temp_folder.h"
#include "tests/engine/recognition/fake_recogniser.h"
#include "tests/server/host/job_run.h"

namespace syrinx::server {

class RecognitionJobTest : public testing::Test {
 protected:
  void SetUp() override {
    settings_.speech_model = "";
    settings_.recognition_model = "fake";
    RecognitionFiles files;
    files.family = &whisper_family();
    files.checkpoint = "/secret/place/model.bin";
    const auto made = RecognitionModel::of(settings_, files, recogniser_);
    ASSERT_TRUE(made) << made.error().message;
    model_ = *made;
  }
  // Its whole life; the answer is reply_'s.
  template <class Job, class Order>
  void run_job(Order order) {
    log_ = logged(folder_.path() + "/log", [&](RequestLog& log) {
      Job job(model_, std::move(order), {.metrics = metrics_, .log = &log});
      reply_ = job.reply();
      if (cancelled_) reply_->cancel();
      run_whole(job);
    });
  }

  Settings settings_;
  const TempFolder folder_;
  const std::shared_ptr<FakeRecogniser> recogniser_ = std::make_shared<FakeRecogniser>();
  std::shared_ptr<const RecognitionModel> model_;
  Metrics metrics_;
  bool cancelled_ = false;
  std::shared_ptr<ReplyStream> reply_;
  std::string log_;
};

}  // namespace syrinx::server
