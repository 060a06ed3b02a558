#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>
#include <thread>

#include "base/cpu_info.h"
#include "base/json.h"
#include "bench/suite/pocket_measure.h"
#include "bench/suite/random_pocket_tts.h"
#include "bench/suite/rounds.h"
#include "kernels/row_conv.h"
#include "models/pocket_tts/config_file.h"
#include "run_bench.h"

namespace syrinx::bench {
namespace {

namespace fs = std::filesystem;

class BenchPocketTts : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) /
              fmt::format("bench_pocket_tts_{}", ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    setenv("SYRINX_HOME", folder_.c_str(), 1);
  }
  void TearDown() override { fs::remove_all(folder_); }

  static Status run(std::vector<const char*> arguments) { return run_bench("pocket-tts", std::move(arguments)); }

  fs::path folder_;
};

pocket::Config random_config(const std::string& name) {
  const auto yaml = random_pocket_config(name);
  EXPECT_TRUE(yaml) << yaml.error().message;
  const auto parsed = pocket::parse_config(*yaml, name);
  EXPECT_TRUE(parsed) << parsed.error().message;
  EXPECT_TRUE(parsed->warnings.empty()) << name;
  return parsed->config;
}

// docs/pocket_tts.md has these numbers of the published checkpoints.
TEST(RandomPocketTts, AsManyTensorsAndNumbersAsThePublishedOnes) {
  struct Published {
    const char* name;
    size_t tensors, numbers;
  };
  constexpr std::array<Published, 8> kPublished = {{{"english", 214, 109502146},
                                                    {"english_24l", 358, 336068290},
                                                    {"english_2026-01", 213, 117856962},
                                                    {"english_drifting", 202, 108712386},
                                                    {"english_18m", 303, 27923058},
                                                    {"english_7m", 304, 16611666},
                                                    {"english_2m", 224, 11671934},
                                                    {"flow_matching", 208, 109107266}}};
  ASSERT_EQ(random_pocket_names().size(), kPublished.size());
  for (const Published& published : kPublished) {
    const std::vector<RandomTensor> tensors = random_pocket_tensors(random_config(published.name));
    size_t numbers = 0;
    for (const RandomTensor& tensor : tensors)
      numbers += std::accumulate(tensor.dims.begin(), tensor.dims.end(), size_t{1}, std::multiplies<>());
    EXPECT_EQ(tensors.size(), published.tensors) << published.name;
    EXPECT_EQ(numbers, published.numbers) << published.name;
  }
  EXPECT_FALSE(random_pocket_config("klingon"));
}

// Multiply-adds of the convolutions and weights of the layers from the specification, sections 1 and 4.1.
TEST(PocketFrameCost, IsThatOfTheSpecification) {
  const FrameCost english = frame_cost(random_config("english"), 1);
  EXPECT_NEAR(english.codec_flop, 2 * 262.5e6, 2 * 0.1e6);
  EXPECT_NEAR(english.flow_lm_weights, 84.45e6, 0.05e6);
  const FrameCost small = frame_cost(random_config("english_2m"), 1);
  EXPECT_NEAR(small.codec_flop, 2 * 30.4e6, 2 * 0.1e6);
  EXPECT_NEAR(frame_cost(random_config("english_18m"), 1).codec_flop, 2 * 66.2e6, 2 * 0.1e6);
  const FrameCost matching = frame_cost(random_config("flow_matching"), 16);
  EXPECT_GT(matching.flow_lm_weights, english.flow_lm_weights + 15 * 7.8e6);
}

TEST(PocketFrameCost, FloorAddsReadingAndArithmetic) {
  kernels::MachineLimits limits;
  limits.read_gb_per_s.all_threads = 50;
  limits.f32_gop_per_s.all_threads = 200;
  const FrameCost cost{.flow_lm_weights = 100e6, .codec_flop = 400e6};
  EXPECT_DOUBLE_EQ(frame_floor(cost, 1, limits).codec_f32_ms, 2 + 2);
  EXPECT_DOUBLE_EQ(frame_floor(cost, 4, limits).codec_f32_ms, 8 + 2);
  EXPECT_EQ(frame_floor(cost, 1, limits).codec_bf16_ms, 0) << "no such peak";
  limits.bf16_gop_per_s.all_threads = 400;
  EXPECT_DOUBLE_EQ(frame_floor(cost, 1, limits).codec_f32_ms, 2 + 2);
  EXPECT_DOUBLE_EQ(frame_floor(cost, 1, limits).codec_bf16_ms, 2 + 1);
}

// Some kernels and sandboxes do not count how long a thread waits for a core.
bool kernel_tells() { return std::ifstream("/proc/thread-self/schedstat").good(); }

TEST(PocketRounds, EmptyOnesTakeTheTimeThatIsAskedFor) {
  ThreadTeam team(2);
  const Rounds rounds = empty_rounds(team, 2.0, 20);
  EXPECT_EQ(rounds.all.size(), 20U);
  // A quick round is one whose steps were counted while something else had the core.
  EXPECT_GT(rounds.all.max(), 1.0);
  EXPECT_EQ(rounds.known, kernel_tells());
  EXPECT_EQ(rounds.undisturbed.size() + rounds.caller_lost + rounds.others_lost, rounds.known ? 20U : 0U);
}

// Two teams that want every core: one of them must wait.
TEST(PocketRounds, ALostCoreIsSeen) {
  const int cores = cpu_info().logical_cores;
  std::atomic<bool> stop{false};
  std::vector<std::thread> busy;
  for (int i = 0; i < 2 * cores; ++i)
    busy.emplace_back([&stop] {
      while (!stop.load(std::memory_order_relaxed)) continue;
    });
  ThreadTeam team(cores);
  Rounds rounds = empty_rounds(team, 10, 20);
  for (int tries = 1; tries < 50 && rounds.known && rounds.undisturbed.size() == 20; ++tries)
    rounds = empty_rounds(team, 10, 20);
  stop = true;
  for (std::thread& thread : busy) thread.join();
  ASSERT_EQ(rounds.known, kernel_tells());
  EXPECT_EQ(rounds.caller_lost + rounds.others_lost > 0, rounds.known);
  EXPECT_LT(rounds.undisturbed.size(), 20U);
}

TEST(PocketTimes, QuantilesAreValuesThatWereMeasured) {
  Times times;
  for (int i = 100; i >= 1; --i) times.add(i);
  times.sort();
  EXPECT_EQ(times.min(), 1);
  EXPECT_EQ(times.median(), 50);
  EXPECT_EQ(times.at(0.99), 99);
  EXPECT_EQ(times.at(1.0), 100);
  EXPECT_EQ(times.max(), 100);
}

TEST_F(BenchPocketTts, SameBytesAndNoneWrittenTwice) {
  const std::string one = folder_ / "one", two = folder_ / "two";
  ASSERT_TRUE(make_random_pocket(one, "english_2m"));
  ASSERT_TRUE(make_random_pocket(two, "english_2m"));
  const auto bytes = [](const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  for (const char* file : {"/config.yaml", "/tokenizer.json", "/model.safetensors"})
    EXPECT_TRUE(bytes(one + file) == bytes(two + file)) << file;
  const auto written = fs::last_write_time(one + "/model.safetensors");
  ASSERT_TRUE(make_random_pocket(one, "english_2m"));
  EXPECT_EQ(fs::last_write_time(one + "/model.safetensors"), written);
}

TEST_F(BenchPocketTts, JsonHasEveryFigureAndTheModelSpeaks) {
  testing::internal::CaptureStdout();
  const Status status = run({"--config", "english_2m", "--threads", "1", "--runs", "1", "--frames", "8",
                             "--first-sounds", "5", "--recording", "0.5", "--streams", "1,3", "--json"});
  const std::string text = testing::internal::GetCapturedStdout();
  ASSERT_TRUE(status) << status.error().message;
  const Result<Json> report = parse_json(text, "the report");
  ASSERT_TRUE(report) << report.error().message;
  for (const char* key : {"rtf", "first_audio_ms", "load_ms", "floor_ms", "over_floor", "peak_sample"}) {
    ASSERT_NE(report->find(key), nullptr) << key;
    ASSERT_NE(report->find(key)->real(), nullptr) << key;
    EXPECT_GT(*report->find(key)->real(), 0) << key;
  }
  ASSERT_EQ(report->find("floor_bf16_ms") != nullptr, kernels::bf16_rows_are_faster());
  if (kernels::bf16_rows_are_faster()) {
    for (const char* key : {"floor_bf16_ms", "over_floor_bf16", "bf16_gop_per_s"})
      EXPECT_GT(*report->find(key)->real(), 0) << key;
    EXPECT_NE(*report->find("floor_bf16_ms")->real(), *report->find("floor_ms")->real());
  }
  // A tenth of full scale is what the weights are drawn for; silence and numbers gone wild are neither.
  EXPECT_GT(*report->find("peak_sample")->real(), 0.02);
  EXPECT_LT(*report->find("peak_sample")->real(), 2);
  EXPECT_GT(*report->find("peak_rss_bytes")->whole(), 1 << 20);
  EXPECT_EQ(*report->find("threads")->whole(), 1);
  EXPECT_EQ(*report->find("precision")->string(), "int8") << "what speak takes";
  for (const char* key : {"first_sound_ms", "empty_loop_ms"}) {
    const Json& rounds = *report->find(key);
    ASSERT_NE(rounds.find("undisturbed"), nullptr) << key;
    const Json* const undisturbed = rounds.find("undisturbed")->find("n");
    EXPECT_EQ((undisturbed != nullptr ? *undisturbed->whole() : 0) + *rounds.find("caller_lost_core")->whole() +
                  *rounds.find("others_lost_core")->whole(),
              5)
        << key;
  }
  ASSERT_EQ(report->find("streams")->array()->size(), 2U);
  for (const char* stage : {"text", "flow_lm", "head", "codec", "sum"})
    EXPECT_NE(report->find("stages_ms")->find(stage)->find("median"), nullptr) << stage;
}

TEST_F(BenchPocketTts, TableOfAGivenCheckpoint) {
  const std::string model = std::string(SYRINX_TEST_DATA) + "/pocket_tts/english";
  testing::internal::CaptureStdout();
  const Status status = run({"--model", model.c_str(), "--precision", "f32", "--threads", "2", "--runs", "1",
                             "--frames", "8", "--first-sounds", "5", "--recording", "0", "--streams", ""});
  const std::string text = testing::internal::GetCapturedStdout();
  ASSERT_TRUE(status) << status.error().message;
  for (const char* part : {"machine", "build", "first sound", "language model", "codec", "rtf", "memory", "floor",
                           "codec at the f32 peak", "of the empty loop", "lost the caller's core"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " is missing in\n" << text;
  EXPECT_EQ(text.find("recording: codec"), std::string::npos);
  EXPECT_EQ(text.find("bf16 peak"), std::string::npos) << "a codec in f32 has one floor";
}

TEST_F(BenchPocketTts, BriefSkipsSlowMeasurements) {
  const std::string model = std::string(SYRINX_TEST_DATA) + "/pocket_tts/english";
  testing::internal::CaptureStdout();
  const Status status = run({"--model", model.c_str(), "--threads", "1", "--runs", "1", "--frames", "2",
                             "--first-sounds", "3", "--brief", "--json"});
  const std::string text = testing::internal::GetCapturedStdout();
  ASSERT_TRUE(status) << status.error().message;
  const Result<Json> report = parse_json(text, "the report");
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->find("first_sound_ms")->find("samples")->array()->size(), 3U);
  EXPECT_GT(*report->find("rtf")->real(), 0);
  EXPECT_EQ(report->find("floor_ms"), nullptr);
  EXPECT_TRUE(report->find("encode_ms")->is_null());
}

TEST_F(BenchPocketTts, NumbersThatMakeNoSense) {
  const std::string model = std::string(SYRINX_TEST_DATA) + "/pocket_tts/english";
  const std::vector<std::vector<const char*>> cases = {
      {"--runs", "0"},      {"--frames", "1"},  {"--frames", "5000"}, {"--threads", "100"},   {"--streams", "1,"},
      {"--streams", "100"}, {"--streams", "x"}, {"--tokens", "-1"},   {"--recording", "nan"}, {"--precision", "f7"}};
  for (std::vector<const char*> arguments : cases) {
    SCOPED_TRACE(arguments[1]);
    arguments.insert(arguments.begin(), {"--model", model.c_str()});
    const Status status = run(arguments);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, Code::kInvalidArgument) << status.error().message;
  }
  const Status missing = run({"--model", "/no/such/checkpoint"});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Code::kNotFound) << missing.error().message;
}

}  // namespace
}  // namespace syrinx::bench
