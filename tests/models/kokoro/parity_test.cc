// Every stage of Kokoro against the numpy reference in double precision (tests/data/kokoro/README.md, which the maker's
// own code agrees with), on the small checkpoint in both published formats; then the rules of a step.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>

#include "../safetensors_arrays.h"
#include "allocation_count.h"
#include "models/kokoro/checkpoint.h"
#include "models/kokoro/model.h"
#include "models/kokoro/source.h"

namespace syrinx::kokoro {
namespace {

std::string data(const std::string& name) { return std::string(SYRINX_TEST_DATA) + "/kokoro/" + name; }

using Stages = std::map<std::string, std::vector<float>>;

struct Reference : SafetensorsArrays {
  explicit Reference(const std::string& name) : SafetensorsArrays(data(name)) {}
};

std::shared_ptr<const Model> load(const std::string& name, Precision precision, const std::string& cache = "") {
  auto file = MappedFile::open(data(name));
  EXPECT_TRUE(file.has_value()) << file.error().message;
  auto model = Model::load(std::move(*file), {.precision = precision, .cache_dir = cache});
  EXPECT_TRUE(model.has_value()) << model.error().message;
  return *model;
}

double relative_rms(const std::vector<float>& x, const std::vector<float>& y) {
  EXPECT_EQ(x.size(), y.size());
  if (x.size() != y.size() || x.empty()) return 1e9;
  double error = 0, power = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    error += std::pow(static_cast<double>(x[i]) - y[i], 2);
    power += std::pow(static_cast<double>(y[i]), 2);
  }
  return std::sqrt(error / power);
}

struct Speaking {
  Reference reference{"tiny_reference.safetensors"};
  std::vector<int32_t> tokens = reference.get<int32_t>("tokens");
  std::vector<float> style = reference.get("style");
  std::vector<int32_t> durations = reference.get<int32_t>("durations");

  PieceInput input(bool forced) const {
    PieceInput in{.ids = std::span(tokens).subspan(1, tokens.size() - 2), .style = style};
    if (forced) in.durations = durations;
    return in;
  }
  // Runs with the reference's source spectrum in place of ours: angles of empty bins are rounding noise to everyone.
  Stages stages(const std::shared_ptr<const Model>& model, int threads, bool forced, PieceOutput& out) const {
    ThreadTeam team(threads);
    Synthesizer synthesizer(model, team);
    Stages seen;
    const std::vector<float> har = reference.get("har");
    synthesizer.set_probe([&](const char* stage, size_t rows, size_t columns, float* values) {
      seen[stage].assign(values, values + rows * columns);
      if (std::string_view(stage) == "har") std::copy(har.begin(), har.end(), values);
    });
    const Status status = synthesizer.synthesize(input(forced), out);
    EXPECT_TRUE(status.has_value()) << status.error().message;
    seen["audio"] = out.samples;
    return seen;
  }
};

// Our name of a stage, the reference's, and what f32 and int8 may differ by (relative RMS).
struct Bound {
  const char *ours, *theirs;
  double f32, int8;
};
constexpr Bound kBounds[] = {
    {"bert", "bert", 1e-5, 0.03},
    {"duration_encoder", "duration_encoder", 1e-5, 0.05},
    {"duration_raw", "duration_raw", 1e-5, 0.05},
    {"text", "text_encoder", 1e-5, 0.04},
    {"asr", "asr", 1e-5, 0.04},
    {"f0", "f0", 1e-4, 0.15},
    {"n", "n", 1e-4, 0.20},
    {"decoder", "decoder_front", 1e-4, 0.30},
    {"audio", "audio", 1e-4, 0.10},
};

class Parity : public ::testing::TestWithParam<const char*> {};

TEST_P(Parity, EveryStageAgreesInF32) {
  const Speaking s;
  PieceOutput out;
  const Stages stages = s.stages(load(GetParam(), Precision::kF32), 2, false, out);
  EXPECT_EQ(out.durations, s.durations);
  for (const Bound& b : kBounds) EXPECT_LE(relative_rms(stages.at(b.ours), s.reference.get(b.theirs)), b.f32) << b.ours;
  // Magnitudes of the source, and the spectrum before the sine of its phases.
  const auto magnitudes = [](const std::vector<float>& rows) {
    std::vector<float> out_values;
    for (size_t i = 0; i < rows.size(); ++i)
      if (i % 22 < 11) out_values.push_back(rows[i]);
    return out_values;
  };
  EXPECT_LE(relative_rms(magnitudes(stages.at("har")), magnitudes(s.reference.get("har"))), 1e-3);
  EXPECT_LE(relative_rms(magnitudes(stages.at("spectrum")), magnitudes(s.reference.get("spectrum"))), 1e-4);
}

TEST_P(Parity, Int8StaysWithinItsBounds) {
  const Speaking s;
  PieceOutput out;
  const Stages stages = s.stages(load(GetParam(), Precision::kInt8), 2, true, out);
  for (const Bound& b : kBounds)
    EXPECT_LE(relative_rms(stages.at(b.ours), s.reference.get(b.theirs)), b.int8) << b.ours;
}

INSTANTIATE_TEST_SUITE_P(Formats, Parity, ::testing::Values("tiny.onnx", "tiny.pth", "tiny_parametrized.pth"));

TEST(Kokoro, ThreadsAndRepetitionDoNotChangeASample) {
  const Speaking s;
  for (const Precision precision : {Precision::kF32, Precision::kInt8}) {
    const auto model = load("tiny.onnx", precision);
    std::vector<float> first;
    for (const int threads : {1, 2, 3}) {
      ThreadTeam team(threads);
      Synthesizer synthesizer(model, team);
      for (int i = 0; i < 2; ++i) {
        PieceOutput out;
        ASSERT_TRUE(synthesizer.synthesize(s.input(false), out).has_value());
        if (first.empty()) first = out.samples;
        EXPECT_EQ(out.samples, first) << threads << " threads, turn " << i;
      }
    }
  }
}

TEST(Kokoro, CutPiecesGiveTheSameSamples) {
  const Speaking s;
  for (const Precision precision : {Precision::kF32, Precision::kInt8}) {
    const auto model = load("tiny.onnx", precision);
    for (const int threads : {1, 2}) {
      ThreadTeam team(threads);
      Synthesizer synthesizer(model, team);
      PieceInput input = s.input(false);
      input.noise = true;
      PieceOutput whole, cut;
      ASSERT_TRUE(synthesizer.synthesize(input, whole).has_value());
      int jobs = 0;
      ASSERT_TRUE(synthesizer.synthesize(input, cut, {}, [&jobs] { ++jobs; }).has_value());
      EXPECT_GT(jobs, 100);
      EXPECT_EQ(cut.samples, whole.samples);
      EXPECT_EQ(cut.durations, whole.durations);
    }
  }
}

TEST(Kokoro, APieceDoesNotDependOnThoseBefore) {
  const Speaking s;
  const auto model = load("tiny.onnx", Precision::kInt8);
  ThreadTeam team(2);
  Synthesizer used(model, team), fresh(model, team);
  PieceOutput out, expected;
  PieceInput shorter = s.input(false), longer = s.input(false);
  const std::vector<int32_t> ids(40, 83);
  longer.ids = ids;
  shorter.ids = shorter.ids.first(2);
  ASSERT_TRUE(used.synthesize(longer, out).has_value());
  ASSERT_TRUE(used.synthesize(shorter, out).has_value());
  ASSERT_TRUE(fresh.synthesize(shorter, expected).has_value());
  EXPECT_EQ(out.samples, expected.samples);
}

TEST(Kokoro, StopsBetweenStagesAndLeavesNothingBehind) {
  const Speaking s;
  const auto model = load("tiny.onnx", Precision::kInt8);
  ThreadTeam team(2);
  Synthesizer synthesizer(model, team), fresh(model, team);
  PieceOutput out, expected;
  ASSERT_TRUE(fresh.synthesize(s.input(false), expected));
  for (int stages = 0;; ++stages) {
    int left = stages;
    const Status status = synthesizer.synthesize(s.input(false), out, [&left] { return left-- > 0; });
    if (status) {
      EXPECT_GE(stages, 8) << "asked too seldom";
      break;
    }
    EXPECT_EQ(status.error().code, Code::kCancelled);
    ASSERT_TRUE(synthesizer.synthesize(s.input(false), out));
    EXPECT_EQ(out.samples, expected.samples);
  }
  EXPECT_EQ(out.samples, expected.samples);
}

TEST(Kokoro, NothingIsAllocatedOnceWarm) {
  const Speaking s;
  for (const Precision precision : {Precision::kF32, Precision::kInt8}) {
    const auto model = load("tiny.onnx", precision);
    ThreadTeam team(2);
    Synthesizer synthesizer(model, team);
    PieceOutput out;
    ASSERT_TRUE(synthesizer.synthesize(s.input(false), out).has_value());
    ASSERT_TRUE(synthesizer.synthesize(s.input(false), out).has_value());
    const size_t before = allocation_count();
    for (int i = 0; i < 10; ++i) (void)synthesizer.synthesize(s.input(false), out);
    EXPECT_EQ(allocation_count() - before, 0u);
  }
}

TEST(Kokoro, NoiseIsSeeded) {
  const Speaking s;
  const auto model = load("tiny.onnx", Precision::kF32);
  ThreadTeam team(1);
  Synthesizer synthesizer(model, team);
  const auto speak = [&](bool noise, uint64_t seed) {
    PieceInput in = s.input(true);
    in.noise = noise;
    in.seed = seed;
    PieceOutput out;
    EXPECT_TRUE(synthesizer.synthesize(in, out).has_value());
    return out.samples;
  };
  EXPECT_EQ(speak(true, 1), speak(true, 1));
  EXPECT_NE(speak(true, 1), speak(true, 2));
  EXPECT_NE(speak(true, 1), speak(false, 1));
}

TEST(Kokoro, SpeedDividesDurations) {
  const Speaking s;
  const auto model = load("tiny.onnx", Precision::kF32);
  ThreadTeam team(1);
  Synthesizer synthesizer(model, team);
  PieceInput in = s.input(false);
  in.speed = 0.25f;
  PieceOutput slow;
  ASSERT_TRUE(synthesizer.synthesize(in, slow).has_value());
  const std::vector<float> raw = s.reference.get("duration_raw");
  for (size_t i = 0; i < raw.size(); ++i)
    EXPECT_EQ(slow.durations[i], std::max(1, static_cast<int>(std::nearbyint(raw[i] / 0.25f))));
}

TEST(Kokoro, RefusesInvalidInput) {
  const Speaking s;
  const auto model = load("tiny.onnx", Precision::kF32);
  ThreadTeam team(1);
  Synthesizer synthesizer(model, team);
  PieceOutput out;
  const auto code = [&](const PieceInput& in) {
    const Status status = synthesizer.synthesize(in, out);
    return status ? Code::kInternal : status.error().code;
  };
  PieceInput in = s.input(false);
  in.ids = {};
  EXPECT_EQ(code(in), Code::kLimitExceeded);
  const std::vector<int32_t> many(511, 50), stranger{178}, negative{-1};
  in.ids = many;
  EXPECT_EQ(code(in), Code::kLimitExceeded);
  in.ids = stranger;
  EXPECT_EQ(code(in), Code::kInvalidArgument);
  in.ids = negative;
  EXPECT_EQ(code(in), Code::kInvalidArgument);
  in = s.input(false);
  in.style = in.style.first(3);
  EXPECT_EQ(code(in), Code::kInvalidArgument);
  for (const float speed : {0.0f, 0.2f, 5.0f, NAN}) {
    in = s.input(false);
    in.speed = speed;
    EXPECT_EQ(code(in), Code::kInvalidArgument);
  }
  in = s.input(true);
  in.durations = in.durations.first(2);
  EXPECT_EQ(code(in), Code::kInvalidArgument);
  std::vector<int32_t> nothing(s.durations.size(), 0);
  in = s.input(true);
  in.durations = nothing;
  EXPECT_EQ(code(in), Code::kInvalidArgument);
  std::vector<int32_t> endless(s.durations.size(), 5000);
  in = s.input(true);
  in.durations = endless;
  EXPECT_EQ(code(in), Code::kLimitExceeded);
  in = s.input(false);
  in.max_frames = in.ids.size();  // it has two silences, too
  EXPECT_EQ(code(in), Code::kLimitExceeded);
  std::vector<float> broken = s.style;
  broken[1] = NAN;
  in = s.input(false);
  in.style = broken;
  EXPECT_EQ(code(in), Code::kInvalidArgument);
}

TEST(Kokoro, PackedCacheIsUsedAndADamagedOneIsMadeAgain) {
  const Speaking s;
  std::string folder = ::testing::TempDir() + "syrinx-cache-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const auto speak = [&] {
    ThreadTeam team(1);
    Synthesizer synthesizer(load("tiny.onnx", Precision::kInt8, folder), team);
    PieceOutput out;
    EXPECT_TRUE(synthesizer.synthesize(s.input(false), out).has_value());
    return out.samples;
  };
  const std::vector<float> packed = speak();
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".packed") files.push_back(entry.path());
  ASSERT_EQ(files.size(), 1u);
  const auto written = std::filesystem::last_write_time(files[0]);
  const auto size = std::filesystem::file_size(files[0]);
  EXPECT_EQ(speak(), packed);
  EXPECT_EQ(std::filesystem::last_write_time(files[0]), written);
  std::filesystem::resize_file(files[0], size / 2);
  EXPECT_EQ(speak(), packed);
  EXPECT_EQ(std::filesystem::file_size(files[0]), size) << "made again";
  // One byte in the middle of the arrays.
  std::string whole;
  {
    std::ifstream in(files[0], std::ios::binary);
    whole.assign(std::istreambuf_iterator<char>(in), {});
    std::string damaged = whole;
    char& byte = damaged[damaged.find_first_not_of('\0', damaged.size() / 2)];
    byte = static_cast<char>(byte ^ 1);
    std::ofstream(files[0], std::ios::binary) << damaged;
  }
  EXPECT_EQ(speak(), packed);
  {
    std::ifstream in(files[0], std::ios::binary);
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), whole) << "made again";
  }
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 2) << "the cache and the stamp";
  std::filesystem::remove_all(folder);
  EXPECT_EQ(speak(), packed) << "a cache that cannot be written is done without";
}

TEST(Source, PhaseHoldsAfterElevenSeconds) {
  const Reference reference("tiny_source.safetensors");
  const std::vector<float> f0 = reference.get("f0"), expected = reference.get("tail");
  auto file = MappedFile::open(data("tiny.onnx"));
  ASSERT_TRUE(file.has_value());
  const auto checkpoint = Checkpoint::open(std::move(*file));
  ASSERT_TRUE(checkpoint.has_value()) << checkpoint.error().message;
  const std::string name = "decoder.generator.m_source.l_linear";
  std::vector<float> mix = (*checkpoint)->read(name + ".weight", {1, 9})->dequantised();
  mix.push_back((*checkpoint)->read(name + ".bias", {1})->dequantised()[0]);
  Source source;
  std::vector<float> out(f0.size() * 300);
  source.run(f0.data(), 1, f0.size(), mix.data(), {}, out);
  ASSERT_LE(expected.size(), out.size());
  double worst = 0;
  const size_t offset = out.size() - expected.size();
  for (size_t i = 0; i < expected.size(); ++i)
    worst = std::max(worst, std::abs(static_cast<double>(out[offset + i]) - expected[i]));
  EXPECT_LE(worst, 1e-3);
}

}  // namespace
}  // namespace syrinx::kokoro
