// Metrics of the engines and the process, and the metrics that exist before anything happens.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "engine/families/pocket_tts/pocket_family.h"
#include "engine/families/whisper/whisper_family.h"
#include "server/service.h"
#include "tests/base/temp_folder.h"
#include "tests/engine/recognition/fake_recogniser.h"
#include "tests/server/host/acting_engine.h"

namespace syrinx::server {
namespace {

using testing::HasSubstr;
using testing::Not;

class ServiceMetrics : public testing::Test {
 protected:
  // Models of both kinds, that have been warmed.
  void load() {
    std::filesystem::create_directory(folder_.path() + "/voices");
    std::ofstream(folder_.path() + "/voices/ann.safetensors") << "x";
    SpeechFiles files;
    files.family = &pocket_tts_family();
    files.voices = folder_.path();
    const auto speech = SpeechModel::of(settings_, files, engine_);
    ASSERT_TRUE(speech) << speech.error().message;
    const auto recognition = RecognitionModel::of(settings_, {.family = &whisper_family()}, recogniser_);
    ASSERT_TRUE(recognition) << recognition.error().message;
    service_.ready(*speech, *recognition);
  }
  std::string page() {
    HttpRequest request;
    request.method = "GET";
    request.path = "/metrics";
    return service_.answer(request).body;
  }
  double value(const std::string& series) {
    const std::string text = page();
    const size_t at = text.find("\n" + series + " ");
    EXPECT_NE(at, std::string::npos) << series;
    return at == std::string::npos ? -1 : std::stod(text.substr(at + series.size() + 2));
  }

  static Settings named() {
    Settings settings;
    settings.speech_model = "talks";
    settings.recognition_model = "hears";
    return settings;
  }
  const Settings settings_ = named();
  const TempFolder folder_;
  const std::shared_ptr<ActingEngine> engine_ = std::make_shared<ActingEngine>();
  const std::shared_ptr<FakeRecogniser> recogniser_ = std::make_shared<FakeRecogniser>();
  Service service_{settings_, *ApiKeys::load({}), nullptr};
};

TEST_F(ServiceMetrics, StepsAreThoseBehindTheWarmUp) {
  engine_->figures.buckets[1] = 4;
  engine_->figures.took_ns = 7'000'000'000;
  engine_->figures.late = 3;
  load();
  const std::string talks = "{model=\"talks\"";
  EXPECT_EQ(value("syrinx_step_duration_seconds_count" + talks + "}"), 0);
  EXPECT_EQ(value("syrinx_step_deadline_missed_total" + talks + "}"), 0);
  engine_->figures.buckets[1] += 2;
  engine_->figures.buckets.back() += 1;
  engine_->figures.took_ns += 20'500'000'000;
  engine_->figures.late += 1;
  EXPECT_EQ(value("syrinx_step_duration_seconds_bucket" + talks + ",le=\"0.001\"}"), 0);
  EXPECT_EQ(value("syrinx_step_duration_seconds_bucket" + talks + ",le=\"0.002\"}"), 2);
  EXPECT_EQ(value("syrinx_step_duration_seconds_bucket" + talks + ",le=\"0.08\"}"), 2);
  EXPECT_EQ(value("syrinx_step_duration_seconds_bucket" + talks + ",le=\"+Inf\"}"), 3);
  EXPECT_EQ(value("syrinx_step_duration_seconds_count" + talks + "}"), 3);
  EXPECT_EQ(value("syrinx_step_duration_seconds_sum" + talks + "}"), 20.5);
  EXPECT_EQ(value("syrinx_step_deadline_missed_total" + talks + "}"), 1);

  recogniser_->figures.buckets[0] = 9;
  recogniser_->figures.late = 2;
  EXPECT_EQ(value("syrinx_step_duration_seconds_count{model=\"hears\"}"), 9);
  EXPECT_EQ(value("syrinx_step_deadline_missed_total{model=\"hears\"}"), 2);
}

TEST_F(ServiceMetrics, LiveLoadIsByModel) {
  engine_->figures.longest_ns = 7'000'000;
  load();
  for (const char* model : {"talks", "hears"}) {
    const std::string labels = "{model=\"" + std::string(model) + "\"}";
    EXPECT_EQ(value("syrinx_live_load" + labels), 0);
    EXPECT_EQ(value("syrinx_live_streams_admitted_total" + labels), 0);
  }
  EXPECT_EQ(value("syrinx_live_load_limit"), 0.85);
  EXPECT_EQ(value("syrinx_longest_step_seconds{model=\"talks\"}"), 0.007);
}

TEST_F(ServiceMetrics, QueuesAreAsDeepAsTheEnginesSay) {
  load();
  engine_->waits = 5;
  recogniser_->waits = 2;
  EXPECT_EQ(value("syrinx_queue_depth{model=\"talks\"}"), 5);
  EXPECT_EQ(value("syrinx_queue_depth{model=\"hears\"}"), 2);
  engine_->waits = 0;
  EXPECT_EQ(value("syrinx_queue_depth{model=\"talks\"}"), 0);
}

// Else the first refusal, or the first text, would make no rate.
TEST_F(ServiceMetrics, CountersExistFromTheBeginning) {
  for (const char* reason :
       {"audio_backlog", "connections", "draining", "loading", "no_free_slot", "overloaded", "uploads_full"})
    EXPECT_EQ(value("syrinx_rejected_total{reason=\"" + std::string(reason) + "\"}"), 0);
  EXPECT_THAT(page(), Not(HasSubstr("model=")));
  load();
  for (const char* reason : {"cancelled", "eos", "error", "limit", "silence", "repeats"})
    EXPECT_EQ(value("syrinx_generation_stopped_total{reason=\"" + std::string(reason) + "\"}"), 0);
  for (const char* reason : {"limit", "silence", "repeats"})
    EXPECT_EQ(value("syrinx_speech_pieces_cut_total{model=\"talks\",reason=\"" + std::string(reason) + "\"}"), 0);
  EXPECT_EQ(value("syrinx_speech_pieces_retried_total{model=\"talks\"}"), 0);
  EXPECT_EQ(value("syrinx_time_to_first_audio_seconds_count{model=\"talks\"}"), 0);
  EXPECT_EQ(value("syrinx_time_to_first_word_seconds_count{model=\"hears\"}"), 0);
  EXPECT_EQ(value("syrinx_queue_delay_seconds_count{model=\"talks\"}"), 0);
  EXPECT_EQ(value("syrinx_audio_seconds_total{model=\"hears\",direction=\"in\"}"), 0);
  EXPECT_EQ(value("syrinx_audio_seconds_total{model=\"talks\",direction=\"out\"}"), 0);
}

TEST_F(ServiceMetrics, TellsOfTheProcess) {
  struct rlimit limit {};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_EQ(value("process_max_fds"), static_cast<double>(limit.rlim_cur));
  EXPECT_LT(value("process_open_fds"), static_cast<double>(limit.rlim_cur));
  EXPECT_GT(value("process_cpu_seconds_total"), 0);
  EXPECT_GT(value("process_virtual_memory_bytes"), value("process_resident_memory_bytes"));
}

}  // namespace
}  // namespace syrinx::server
