#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <numeric>

#include "base/json.h"
#include "base/signals.h"
#include "bench/suite/peak_sample.h"
#include "bench/suite/qwen_measure.h"
#include "bench/suite/random_qwen_files.h"
#include "bench/suite/random_qwen_tts.h"
#include "engine/families/qwen_tts/qwen_model.h"
#include "models/qwen_tts/tokenizer.h"
#include "run_bench.h"

namespace syrinx::bench {
namespace {

namespace fs = std::filesystem;

class BenchQwenTts : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) /
              fmt::format("bench_qwen_tts_{}", ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    setenv("SYRINX_HOME", folder_.c_str(), 1);
  }
  void TearDown() override { fs::remove_all(folder_); }

  static Status run(std::vector<const char*> arguments) {
    arguments.insert(arguments.begin(), {"--config", "small", "--threads", "1", "--runs", "2", "--frames", "8"});
    return run_bench("qwen3-tts", std::move(arguments));
  }
  // The report that it prints with --json.
  static Json report(std::vector<const char*> arguments) {
    arguments.push_back("--json");
    testing::internal::CaptureStdout();
    const Status status = run(std::move(arguments));
    const std::string text = testing::internal::GetCapturedStdout();
    EXPECT_TRUE(status) << status.error().message;
    const Result<Json> report = parse_json(text, "the report");
    EXPECT_TRUE(report) << report.error().message;
    return report ? *report : Json();
  }

  fs::path folder_;
};

struct RandomConfigs {
  qwen_tts::Config model;
  qwen_tts::CodecConfig codec;
};
RandomConfigs random_configs(const std::string& name) {
  const auto texts = random_qwen_configs(name);
  EXPECT_TRUE(texts) << texts.error().message;
  const auto model = qwen_tts::read_config(texts->model, name);
  EXPECT_TRUE(model) << model.error().message;
  const auto codec = qwen_tts::read_codec_config(texts->codec, name);
  EXPECT_TRUE(codec) << codec.error().message;
  return {.model = *model, .codec = *codec};
}

size_t numbers(const std::vector<RandomQwenTensor>& tensors) {
  size_t sum = 0;
  for (const RandomQwenTensor& tensor : tensors)
    sum += std::accumulate(tensor.dims.begin(), tensor.dims.end(), size_t{1}, std::multiplies<>());
  return sum;
}

// Numbers of tools/checkpoints/qwen_tts.py, whose shapes are those of the maker's classes.
TEST(RandomQwenTts, AsManyTensorsAndNumbersAsThePublishedOnes) {
  const RandomConfigs small = random_configs("0.6b"), large = random_configs("1.7b");
  EXPECT_EQ(random_qwen_tensors(small.model).size(), 402U);
  EXPECT_EQ(numbers(random_qwen_tensors(small.model)), 905788672U);
  EXPECT_EQ(random_qwen_tensors(large.model).size(), 404U);
  EXPECT_EQ(small.model.speakers.size(), 9U);
  EXPECT_EQ(small.model.kind, qwen_tts::Kind::kCustomVoice);
  EXPECT_TRUE(large.model.takes_instruction());
  EXPECT_EQ(random_qwen_codec_tensors(small.codec.decoder).size(), 271U);
  EXPECT_EQ(numbers(random_qwen_codec_tensors(small.codec.decoder)), 114323137U);
  EXPECT_FALSE(random_qwen_configs("7b"));
}

// Bytes and operations of the specification, section 9.
TEST(QwenFrameCost, IsThatOfTheSpecification) {
  const RandomConfigs small = random_configs("0.6b"), large = random_configs("1.7b");
  const auto cost = [](const RandomConfigs& c, Precision precision) {
    return qwen_frame_cost(c.model, c.codec.decoder, precision);
  };
  EXPECT_NEAR(cost(small, Precision::kBf16).weight_bytes, 3309e6, 5e6);
  EXPECT_NEAR(cost(small, Precision::kInt8).weight_bytes, 1655e6, 3e6);
  EXPECT_NEAR(cost(large, Precision::kBf16).weight_bytes, 5316e6, 8e6);
  EXPECT_NEAR(cost(small, Precision::kInt8).codec_flop, 4.96e9, 0.02e9);
  EXPECT_LT(cost(small, Precision::kInt4).weight_bytes, cost(small, Precision::kInt8).weight_bytes);
}

TEST(QwenFrameCost, FloorAddsReadingAndArithmetic) {
  kernels::MachineLimits limits;
  limits.read_gb_per_s.all_threads = 50;
  limits.f32_gop_per_s.all_threads = 200;
  const QwenFrameCost cost{.weight_bytes = 100e6, .codec_flop = 400e6};
  EXPECT_DOUBLE_EQ(qwen_frame_floor(cost, limits).codec_f32_ms, 2 + 2);
  EXPECT_EQ(qwen_frame_floor(cost, limits).codec_bf16_ms, 0) << "no such peak";
  limits.bf16_gop_per_s.all_threads = 400;
  EXPECT_DOUBLE_EQ(qwen_frame_floor(cost, limits).codec_bf16_ms, 2 + 1);
  EXPECT_EQ(qwen_frame_floor(cost, limits).codec_int16_ms, 0) << "no such peak";
  limits.int8_dot_gop_per_s.all_threads = 1600;
  EXPECT_DOUBLE_EQ(qwen_frame_floor(cost, limits).codec_int16_ms, 2 + 0.5);
}

using Streams = std::vector<std::vector<ChunkArrival>>;

TEST(PeakSample, NanStaysWhateverFollows) {
  double peak = 0;
  note_peak(std::vector<float>{0.25f, -0.5f, 0.125f}, peak);
  EXPECT_EQ(peak, 0.5);
  note_peak(std::vector<float>{0.25f, std::numeric_limits<float>::quiet_NaN(), 0.75f}, peak);
  EXPECT_TRUE(std::isnan(peak));
  note_peak(std::vector<float>{0.25f}, peak);
  EXPECT_TRUE(std::isnan(peak));
}

// The second stream begins at 100 ms, the first one ends at 300.
TEST(QwenSteadyStep, CountsFramesWhileAllSpeak) {
  const Streams streams = {
      {{.ms = 10, .frames = 1}, {.ms = 120, .frames = 2}, {.ms = 160, .frames = 6}, {.ms = 300, .frames = 16}},
      {{.ms = 100, .frames = 1}, {.ms = 140, .frames = 5}, {.ms = 280, .frames = 17}, {.ms = 900, .frames = 18}}};
  ASSERT_TRUE(steady_step_ms(streams));
  EXPECT_DOUBLE_EQ(*steady_step_ms(streams), (180.0 + 180.0) / (14 + 16));
}

TEST(QwenSteadyStep, NoneWithoutTwoChunksOfEach) {
  const std::vector<ChunkArrival> early = {{.ms = 10, .frames = 1}, {.ms = 20, .frames = 3}, {.ms = 90, .frames = 9}};
  const std::vector<ChunkArrival> late = {{.ms = 80, .frames = 1}, {.ms = 85, .frames = 2}, {.ms = 95, .frames = 3}};
  EXPECT_TRUE(steady_step_ms(Streams{early}));
  EXPECT_FALSE(steady_step_ms(Streams{early, late})) << "one chunk of the first is left";
  EXPECT_FALSE(steady_step_ms(Streams{early, {}}));
}

TEST(RandomQwenTts, FullDiskIsRefused) {
  EXPECT_TRUE(check_room("some/place", 2'270'000'000, 2'270'000'000));
  const Status full = check_room("some/place", 2'270'000'000, 100'000'000);
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().code, Code::kIo);
  for (const char* part : {"'some/place'", "2270.0 MB", "100.0 MB", "SYRINX_HOME"})
    EXPECT_NE(full.error().message.find(part), std::string::npos) << full.error().message;
}

TEST_F(BenchQwenTts, SignalLeavesNoPartOfAFile) {
  const std::string folder = folder_ / "small";
  ThreadTeam team(1);
  request_cancel();
  const Status stopped = make_random_qwen(folder, "small", team);
  clear_cancel();
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, Code::kCancelled) << stopped.error().message;
  for (const auto& each : fs::recursive_directory_iterator(folder))
    EXPECT_TRUE(each.path().extension() != ".part" && each.path().extension() != ".safetensors") << each.path();
  EXPECT_TRUE(make_random_qwen(folder, "small", team));
}

TEST_F(BenchQwenTts, SameBytesForAnyTeamAndNoneWrittenTwice) {
  const std::string one = folder_ / "one", two = folder_ / "two";
  ThreadTeam alone(1), team(3);
  ASSERT_TRUE(make_random_qwen(one, "small", alone));
  ASSERT_TRUE(make_random_qwen(two, "small", team));
  const auto bytes = [](const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  for (const char* file :
       {"/config.json", "/generation_config.json", "/vocab.json", "/merges.txt", "/tokenizer_config.json",
        "/model.safetensors", "/speech_tokenizer/config.json", "/speech_tokenizer/model.safetensors"}) {
    EXPECT_FALSE(bytes(one + file).empty()) << file;
    EXPECT_TRUE(bytes(one + file) == bytes(two + file)) << file;
  }
  const auto written = fs::last_write_time(one + "/model.safetensors");
  ASSERT_TRUE(make_random_qwen(one, "small", team));
  EXPECT_EQ(fs::last_write_time(one + "/model.safetensors"), written);
}

TEST_F(BenchQwenTts, WordsOfTheTextsAreATokenEach) {
  const std::string folder = folder_ / "small";
  ThreadTeam team(1);
  ASSERT_TRUE(make_random_qwen(folder, "small", team));
  const auto model = QwenModel::load(folder, {});
  ASSERT_TRUE(model) << model.error().message;
  for (const SpokenText& text : kSpokenTexts) {
    const auto ids = (*model)->tokenizer().encode(text.text);
    ASSERT_TRUE(ids) << ids.error().message;
    EXPECT_GT(ids->size(), text.words) << text.name;
    EXPECT_LT(ids->size(), text.words * 5 / 4 + 2) << text.name;
  }
}

TEST_F(BenchQwenTts, JsonHasEveryFigure) {
  const Json r = report({"--streams", "1,3", "--stream-seconds", "0.4", "--word-seconds", "0.05", "--idle-seconds",
                         "0.05", "--rests", "5"});
  for (const char* key : {"rtf", "first_audio_ms", "load_ms", "floor_ms", "over_floor", "share_of_floor",
                          "floor_f32_ms", "peak_sample", "rested_frame_ms", "rested_over_p50"}) {
    ASSERT_NE(r.find(key), nullptr) << key;
    ASSERT_NE(r.find(key)->real(), nullptr) << key;
    EXPECT_GT(*r.find(key)->real(), 0) << key;
  }
  EXPECT_NEAR(*r.find("share_of_floor")->real() * *r.find("over_floor")->real(), 1, 1e-9);
  EXPECT_NEAR(*r.find("share_of_floor")->real() * *r.find("frame_ms")->find("median")->real(),
              *r.find("floor_ms")->real(), 1e-9);
  // Silence and numbers gone wild are neither.
  EXPECT_GT(*r.find("peak_sample")->real(), 1e-3);
  EXPECT_LE(*r.find("peak_sample")->real(), 1);
  EXPECT_GT(*r.find("peak_rss_bytes")->whole(), 1 << 20);
  EXPECT_EQ(*r.find("threads")->whole(), 1);
  EXPECT_EQ(*r.find("precision")->string(), "int8") << "what speak takes";
  EXPECT_EQ(*r.find("text")->string(), "medium");
  EXPECT_EQ(*r.find("frame_ms")->find("n")->whole(), 8);
  for (const char* stage : {"talker", "predictor", "codec", "sum"})
    EXPECT_GT(*r.find("stages_ms")->find(stage)->find("median")->real(), 0) << stage;
  ASSERT_EQ(r.find("streams")->array()->size(), 2U);
  EXPECT_EQ(*(*r.find("streams")->array())[1].find("streams")->whole(), 3);
  const double* const throughput = (*r.find("streams")->array())[1].find("throughput")->real();
  ASSERT_NE(throughput, nullptr) << "they are long enough once their time is doubled";
  EXPECT_GT(*throughput, 0);
  const Json::Array& rests = *r.find("rests")->array();
  ASSERT_EQ(rests.size(), 5U);
  EXPECT_EQ(*rests[3].find("before")->string(), "pages kept");
  EXPECT_EQ(*rests[4].find("before")->string(), "nothing") << "in turns";
  EXPECT_EQ(rests[4].find("next_ms")->array()->size(), 5U);
  ASSERT_EQ(r.find("chunks")->array()->size(), 4U) << "1, 2, 4 and 8 frames at once";
  EXPECT_TRUE(r.find("ablations")->array()->empty()) << "nobody asked for them";
}

TEST_F(BenchQwenTts, TextsAreAsLongAsTheyAreAskedFor) {
  const Json r = report({"--brief", "--texts", "short,medium", "--word-seconds", "0.08"});
  ASSERT_EQ(r.find("texts")->array()->size(), 2U);
  const Json& text = r.find("texts")->array()->front();
  EXPECT_EQ(*text.find("words")->whole(), 13);
  EXPECT_NEAR(*text.find("audio_seconds")->real(), 13 * 0.08, 1e-9);
  EXPECT_EQ(*text.find("frames")->real(), 13);
  for (const char* part : {"wall_ms", "prefill_ms", "generate_ms", "decode_ms", "first_byte_ms", "first_audible_ms"})
    EXPECT_EQ(*text.find(part)->find("n")->whole(), 2) << part;
  EXPECT_GE(*text.find("first_playable_ms")->find("median")->real(),
            *text.find("first_byte_ms")->find("median")->real());
  EXPECT_GE(*text.find("first_audible_ms")->find("median")->real(),
            *text.find("first_playable_ms")->find("median")->real());
  EXPECT_EQ(r.find("streams"), nullptr) << "a brief report has texts alone";
  EXPECT_TRUE(r.find("frame_ms")->is_null());
}

TEST_F(BenchQwenTts, TextOfTheUsersOwn) {
  const Json r = report({"--brief", "--text", "The quick brown fox.", "--word-seconds", "0.16"});
  ASSERT_EQ(r.find("texts")->array()->size(), 1U);
  const Json& text = r.find("texts")->array()->front();
  EXPECT_EQ(*text.find("words")->whole(), 4);
  EXPECT_EQ(*text.find("pieces")->whole(), 1);
  EXPECT_EQ(*text.find("frames")->real(), 8);
  EXPECT_EQ(*r.find("text")->string(), "own");
}

TEST_F(BenchQwenTts, InstalledModelByItsName) {
  fs::create_directories(folder_ / "data" / "models");
  fs::create_directory_symlink(fs::absolute(std::string(SYRINX_TEST_DATA) + "/qwen_tts/custom_voice"),
                               folder_ / "data" / "models" / "spoken");
  const Json r = report(
      {"--model", "spoken", "--precision", "f32", "--texts", "short", "--word-seconds", "0.05", "--streams", ""});
  EXPECT_EQ(*r.find("checkpoint")->string(), "spoken");
  EXPECT_GE(*r.find("frame_ms")->find("n")->whole(), 1);
}

TEST_F(BenchQwenTts, AblationsAreNamed) {
  const Json r = report({"--texts", "short", "--word-seconds", "0.02", "--streams", "", "--ablations"});
  std::vector<std::string> names;
  for (const Json& each : *r.find("ablations")->array()) names.push_back(*each.find("name")->string());
  EXPECT_EQ(names, (std::vector<std::string>{"the likeliest codes, no draws", "no penalty", "text beside the sound",
                                             "a long prompt", "f32", "bf16", "int4"}));
  EXPECT_GT(*(*r.find("ablations")->array())[3].find("positions")->whole(), 500);
  EXPECT_EQ(r.find("rested_frame_ms"), nullptr) << "it rests where it is asked to";
  ASSERT_EQ(r.find("twins")->array()->size(), 7U) << "six steps of the port's journal, and fused kernels";
  for (const Json& twin : *r.find("twins")->array())
    EXPECT_GT(*twin.find("before_ms")->find("median")->real(), 0) << *twin.find("name")->string();
}

TEST_F(BenchQwenTts, OnlySomeAblations) {
  const Json r =
      report({"--texts", "short", "--word-seconds", "0.02", "--streams", "", "--only-ablations", "penalty,bf16"});
  std::vector<std::string> names;
  for (const Json& each : *r.find("ablations")->array()) names.push_back(*each.find("name")->string());
  EXPECT_EQ(names, (std::vector<std::string>{"no penalty", "bf16"}));
  EXPECT_TRUE(r.find("twins")->array()->empty());
}

TEST_F(BenchQwenTts, TableOfAGivenCheckpoint) {
  const std::string model = std::string(SYRINX_TEST_DATA) + "/qwen_tts/custom_voice";
  testing::internal::CaptureStdout();
  const Status status = run({"--model", model.c_str(), "--precision", "f32", "--texts", "short", "--streams", "1",
                             "--word-seconds", "0.05", "--stream-seconds", "0.4"});
  const std::string text = testing::internal::GetCapturedStdout();
  ASSERT_TRUE(status) << status.error().message;
  for (const char* part : {"machine", "build", "wall, ms", "tok/s", "prefill", "generate", "decode", "first playable",
                           "first audible sample", "talker", "predictor", "codec, a frame of 8", "step of 1 stream",
                           "rtf", "real time each", "memory", "floor", "share of floor"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " is missing in\n" << text;
}

TEST_F(BenchQwenTts, NumbersThatMakeNoSense) {
  const std::vector<std::vector<const char*>> cases = {{"--runs", "0"},           {"--frames", "7"},
                                                       {"--threads", "100"},      {"--streams", "1,"},
                                                       {"--streams", "33"},       {"--texts", "short,"},
                                                       {"--word-seconds", "nan"}, {"--stream-seconds", "0"},
                                                       {"--texts", "huge"},       {"--precision", "f7"},
                                                       {"--config", "7b"},        {"--text", " "},
                                                       {"--idle-seconds", "-1"},  {"--only-ablations", "penalty,no"},
                                                       {"--rests", "0"}};
  for (const std::vector<const char*>& arguments : cases) {
    SCOPED_TRACE(arguments[1]);
    const Status status = run_bench("qwen3-tts", arguments);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, Code::kInvalidArgument) << status.error().message;
  }
  EXPECT_FALSE(fs::exists(folder_ / "cache" / "bench")) << "refused before a checkpoint is written";
}

TEST_F(BenchQwenTts, ModelThatIsNone) {
  const Status missing = run({"--model", "/no/such/checkpoint"});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Code::kNotFound) << missing.error().message;
  const std::string other = std::string(SYRINX_TEST_DATA) + "/pocket_tts/english";
  const Status wrong = run({"--model", other.c_str()});
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, Code::kUnsupported) << wrong.error().message;
}

}  // namespace
}  // namespace syrinx::bench
