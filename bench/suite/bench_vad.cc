#include "bench/suite/bench_vad.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/cpu_info.h"
#include "base/json.h"
#include "base/rng.h"
#include "base/signals.h"
#include "base/version.h"
#include "bench/suite/rounds.h"
#include "cli/output.h"
#include "engine/recognition/recognition_files.h"
#include "engine/speech/speech_files.h"
#include "kernels/describe_targets.h"
#include "models/silero/vad.h"
#include "store/installed_model.h"
#include "store/paths.h"

namespace syrinx::bench {
namespace {

constexpr int kMaxRuns = 1000, kMaxSeconds = 3600;

struct BenchVadArguments {
  std::string file;
  int seconds = 60;
  int runs = 7;
  bool json = false;
};

struct VadFigures {
  double load_ms = 0;
  Times window;     // each of all runs, one at a time
  Times recording;  // whole, one a run
};

// Its values cost no time, but silence would let the network run into denormals and out of them.
std::vector<float> noise(int seconds) {
  std::vector<float> samples(static_cast<size_t>(seconds) * silero::kSampleRateHz);
  Rng rng(1);
  for (float& sample : samples) sample = 0.1f * rng.normal();
  return samples;
}

Result<VadFigures> measure(const BenchVadArguments& arguments, const std::string& path) {
  VadFigures figures;
  const Stopwatch load;
  SYRINX_TRY(const auto vad, silero::SileroVad::load(path));
  figures.load_ms = load.elapsed_ms();
  const std::vector<float> samples = noise(arguments.seconds);
  const size_t windows = samples.size() / silero::kWindowSamples;
  silero::VadScratch scratch;
  float probability = 0;
  // The first run warms caches and is not counted.
  for (int run = 0; run <= arguments.runs; ++run) {
    silero::VadState state;
    for (size_t i = 0; i < windows; ++i) {
      const Stopwatch watch;
      vad->step(std::span(samples).subspan(i * silero::kWindowSamples, silero::kWindowSamples), state, scratch,
                {&probability, 1});
      if (run > 0) figures.window.add(watch.elapsed_ms());
    }
    const Stopwatch watch;
    silero::speech_probabilities(*vad, samples);
    if (run > 0) figures.recording.add(watch.elapsed_ms());
    if (cancel_requested()) return fail(Code::kCancelled, "stopped while measuring; the figures are not complete");
  }
  figures.window.sort();
  figures.recording.sort();
  return figures;
}

std::string as_json(const VadFigures& figures, size_t windows) {
  const auto us = [&figures](double share) { return 1000 * figures.window.at(share); };
  const auto per_window = [windows](double ms) { return 1000 * ms / static_cast<double>(windows); };
  Json json;
  json.set("window_us_p50", us(0.5)).set("window_us_p99", us(0.99)).set("window_us_p999", us(0.999));
  json.set("window_us_max", 1000 * figures.window.max()).set("recording_us", per_window(figures.recording.median()));
  json.set("recording_us_min", per_window(figures.recording.min()));
  json.set("recording_us_max", per_window(figures.recording.max()));
  json.set("load_ms", figures.load_ms).set("windows", windows).set("n", figures.recording.size());
  json.set("cpu", cpu_info().model).set("target", kernels::describe_chosen_target());
  json.set("build", fmt::format("{} {} {} {}", version(), commit(), build_type(), compiler()));
  return json.dump() + "\n";
}

std::string as_text(const VadFigures& figures, int seconds, size_t windows) {
  std::string text =
      fmt::format("machine  {}, {} cores, {}\nbuild    {} ({}, {}), {}\n", cpu_info().model, cpu_info().logical_cores,
                  kernels::describe_chosen_target(), version(), commit(), build_type(), compiler());
  text +=
      fmt::format("work     windows of 32 ms, {} s of sound, 1 thread, n = {}\n\n", seconds, figures.recording.size());
  const Times& window = figures.window;
  text += fmt::format("one window        {:8.1f} us   p99 {:.1f}, p99.9 {:.1f}, most {:.1f}\n", 1000 * window.median(),
                      1000 * window.at(0.99), 1000 * window.at(0.999), 1000 * window.max());
  const double whole = figures.recording.median(), scale = 1000 / static_cast<double>(windows);
  text += fmt::format("of a recording    {:8.1f} us   {:.1f} to {:.1f}; {:.5f} of its length\n", whole * scale,
                      figures.recording.min() * scale, figures.recording.max() * scale, whole / 1000 / seconds);
  return text + fmt::format("load              {:8.2f} ms\n", figures.load_ms);
}

Status run_bench_vad(const BenchVadArguments& arguments) {
  if (arguments.runs < 1 || arguments.runs > kMaxRuns || arguments.seconds < 1 || arguments.seconds > kMaxSeconds)
    return fail(Code::kInvalidArgument, "{} runs over {} s: give 1 to {} runs and at most {} s", arguments.runs,
                arguments.seconds, kMaxRuns, kMaxSeconds);
  std::string path = arguments.file;
  if (path.empty()) {
    SYRINX_TRY(const UserPaths paths, user_paths());
    path = voice_activity_file(models_folder(paths));
    if (path.empty()) return not_installed(kVoiceActivityModel);
  }
  SYRINX_TRY(const VadFigures figures, measure(arguments, path));
  const size_t windows = static_cast<size_t>(arguments.seconds) * silero::kSampleRateHz / silero::kWindowSamples;
  return cli::print(arguments.json ? as_json(figures, windows) : as_text(figures, arguments.seconds, windows));
}

}  // namespace

void add_bench_vad(cli::Command& bench) {
  auto arguments = std::make_shared<BenchVadArguments>();
  cli::Command command = bench.add("vad", "Time voice activity, window by window and for a recording");
  command.option("--file", arguments->file, "Silero's file; that of the installed silero-vad by default").type("FILE");
  command.option("--seconds", arguments->seconds, "Length of the sound, which is noise").type("N").show_default();
  command.option("--runs", arguments->runs, "Runs that are counted, after one that is not").type("N").show_default();
  command.flag("--json", arguments->json, "One JSON object on one line");
  command.examples("  syrinx bench vad\n  SYRINX_CPU=AVX2 syrinx bench vad --seconds 10 --json");
  command.run([arguments] { return run_bench_vad(*arguments); });
}

}  // namespace syrinx::bench
