#include "bench/suite/bench_whisper.h"

#include <memory>
#include <string>

#include "audio/decode/recording.h"
#include "audio/resample.h"
#include "base/clock.h"
#include "base/cpu_info.h"
#include "base/json.h"
#include "base/mapped_file.h"
#include "base/version.h"
#include "bench/suite/random_whisper.h"
#include "bench/suite/whisper_measure.h"
#include "cli/output.h"
#include "engine/speech/speech_engine.h"
#include "engine/threads.h"
#include "kernels/dispatch.h"
#include "store/paths.h"
#include "text/tokens/bpe_files.h"

namespace syrinx::bench {
namespace {

constexpr int kMaxThreads = 64, kMaxCount = 10000;
// Version of the folder of random checkpoints: raised when their bytes change.
constexpr int kRandomVersion = 1;

struct Arguments {
  std::string model, recording;
  std::string size = "base";
  std::string precision = precision_name(Precision::kInt8);
  int threads = 0;
  int runs = 5;
  int tokens = 100;
  int positions = 0;
  bool json = false;
};

struct Report {
  Arguments arguments;
  std::string checkpoint;
  int threads = 1;
  double load_ms = 0, audio_seconds = 0;
  WhisperFigures figures;
  WhisperFloor floor;
  Times heard_ms;
  Heard heard;  // of the last run
};

Status check(const Arguments& a) {
  if (a.threads < 0 || a.threads > kMaxThreads)
    return fail(Code::kInvalidArgument, "--threads {}: give 1 to {}, or 0 for the default", a.threads, kMaxThreads);
  if (a.runs < 1 || a.runs > kMaxCount)
    return fail(Code::kInvalidArgument, "--runs {}: give 1 to {}", a.runs, kMaxCount);
  return {};
}

Result<std::string> checkpoint_of(const Arguments& a) {
  if (!a.model.empty()) return a.model;
  SYRINX_TRY(const UserPaths paths, user_paths());
  const std::string folder = fmt::format("{}/bench/whisper-{}-{}", paths.cache, kRandomVersion, a.size);
  SYRINX_TRY_VOID(make_random_whisper(folder, a.size));
  return folder;
}

Result<whisper::Tokens> tokens_of(const whisper::Model& model) {
  const std::string path = model.folder() + "/tokenizer.json";
  SYRINX_TRY(const MappedFile file, MappedFile::open(path));
  SYRINX_TRY(const text::ByteBpe bpe,
             text::read_bpe_json({reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()}, path));
  return whisper::find_tokens(bpe, model.config().vocabulary, path);
}

Status measure_recording(const std::shared_ptr<const whisper::Model>& model, ThreadTeam& team, Report& report) {
  SYRINX_TRY(const whisper::Tokens tokens, tokens_of(*model));
  SYRINX_TRY(const Recording recording, read_recording(report.arguments.recording));
  SYRINX_TRY(const std::vector<float> samples, resample(recording.samples, recording.rate_hz, whisper::kSampleRateHz));
  report.audio_seconds = recording.seconds();
  for (int run = 0; run <= report.arguments.runs; ++run) {
    report.heard = hear(model, tokens, samples, team);
    if (run > 0) report.heard_ms.add(report.heard.total_ms);
  }
  report.heard_ms.sort();
  return {};
}

Result<Report> measure(const Arguments& arguments) {
  SYRINX_TRY_VOID(check(arguments));
  Report report;
  report.arguments = arguments;
  report.threads = arguments.threads == 0 ? default_threads() : arguments.threads;
  SYRINX_TRY(report.checkpoint, checkpoint_of(arguments));
  SYRINX_TRY(const Precision precision, parse_precision(arguments.precision));
  SYRINX_TRY(const UserPaths paths, user_paths());
  const Stopwatch watch;
  ThreadTeam packers(default_threads());
  SYRINX_TRY(const auto model, whisper::Model::load(report.checkpoint, {.precision = precision,
                                                                        .cache_folder = paths.cache + "/packed/bench",
                                                                        .team = &packers}));
  report.load_ms = watch.elapsed_ms();
  const size_t most = model->config().audio_positions, room = model->config().text_positions;
  if (arguments.positions < 0 || static_cast<size_t>(arguments.positions) > most)
    return fail(Code::kInvalidArgument, "--positions {}: give 1 to {}, or 0 for all", arguments.positions, most);
  if (arguments.tokens < 1 || static_cast<size_t>(arguments.tokens) > room)
    return fail(Code::kInvalidArgument, "--tokens {}: give 1 to {}", arguments.tokens, room);
  ThreadTeam team(report.threads);
  if (!arguments.recording.empty()) {
    SYRINX_TRY_VOID(measure_recording(model, team, report));
    return report;
  }
  const WhisperWork work{.runs = static_cast<size_t>(arguments.runs),
                         .tokens = static_cast<size_t>(arguments.tokens),
                         .positions = static_cast<size_t>(arguments.positions)};
  SYRINX_TRY(report.figures, measure_whisper(model, team, work));
  // Last, since it takes memory of its own.
  report.floor = whisper_floor(whisper_cost(model->config(), work.positions), precision, kernels::measure_limits(team));
  return report;
}

Json times_json(const Times& times) {
  Json json;
  return json.set("median", times.median()).set("min", times.min()).set("max", times.max()).set("n", times.size());
}

Json report_json(const Report& r) {
  Json json;
  json.set("checkpoint", r.checkpoint).set("precision", r.arguments.precision).set("threads", r.threads);
  json.set("load_ms", r.load_ms).set("cpu", cpu_info().model).set("target", kernels::chosen_target_name());
  json.set("build", fmt::format("{} {} {} {}", version(), commit(), build_type(), compiler()));
  if (!r.arguments.recording.empty()) {
    json.set("audio_seconds", r.audio_seconds).set("run_ms", times_json(r.heard_ms));
    json.set("mel_ms", r.heard.mel_ms).set("encode_ms", r.heard.encode_ms).set("decode_ms", r.heard.decode_ms);
    return json.set("tokens", Json::Array(r.heard.tokens.begin(), r.heard.tokens.end()));
  }
  const WhisperFigures& f = r.figures;
  json.set("mel_ms", times_json(f.mel)).set("encode_ms", times_json(f.encode));
  json.set("prefill_ms", times_json(f.prefill));
  Json::Array steps;
  for (const StepFigures& step : f.steps)
    steps.push_back(Json().set("batch", step.batch).set("token_ms", times_json(step.token)));
  json.set("steps", std::move(steps)).set("peak_rss_bytes", f.peak_rss_bytes);
  return json.set("encode_floor_ms", r.floor.encode_ms).set("token_floor_ms", r.floor.token_ms);
}

std::string row(const std::string& name, const Times& times, double floor_ms = 0) {
  std::string text = fmt::format("  {:<34}{:>9.3f}{:>9.3f}{:>9.3f}{:>7}", name, times.median(), times.min(),
                                 times.max(), times.size());
  if (floor_ms > 0)
    text += fmt::format("  {:.0f} % of the limit, {:.3f} ms", 100 * floor_ms / times.median(), floor_ms);
  return text + "\n";
}

std::string report_text(const Report& r) {
  std::string text =
      fmt::format("machine  {}, {} cores, {}\nbuild    {} ({}, {}), {}\n", cpu_info().model, cpu_info().logical_cores,
                  kernels::chosen_target_name(), version(), commit(), build_type(), compiler());
  text += fmt::format("model    {}, {}, {} threads, loaded in {:.0f} ms\n\n", r.checkpoint, r.arguments.precision,
                      r.threads, r.load_ms);
  text += fmt::format("  {:<34}{:>9}{:>9}{:>9}{:>7}\n", "ms", "median", "min", "max", "n");
  if (!r.arguments.recording.empty()) {
    text += row(fmt::format("{:.1f} s, {} tokens", r.audio_seconds, r.heard.tokens.size()), r.heard_ms);
    return text + fmt::format("  the last one: mel {:.1f}, encoder {:.1f}, decoder {:.1f}\n", r.heard.mel_ms,
                              r.heard.encode_ms, r.heard.decode_ms);
  }
  text += row("log-mel", r.figures.mel) + row("encoder", r.figures.encode, r.floor.encode_ms);
  text += row("prompt of 4 tokens", r.figures.prefill);
  for (const StepFigures& step : r.figures.steps)
    text += row(fmt::format("a token of {}", step.batch), step.token, r.floor.token_ms);
  return text + fmt::format("\nmemory   {:.0f} MB at most\n", static_cast<double>(r.figures.peak_rss_bytes) * 1e-6);
}

Status run_bench_whisper(const Arguments& arguments) {
  SYRINX_TRY(const Report report, measure(arguments));
  return cli::print(arguments.json ? report_json(report).dump() + "\n" : report_text(report));
}

}  // namespace

void add_bench_whisper(cli::Command& bench) {
  auto a = std::make_shared<Arguments>();
  cli::Command command = bench.add("whisper", "Time Whisper: spectrum, encoder, tokens, recordings");
  command.option("--model", a->model, "A checkpoint; random numbers of the published shapes by default").type("PATH");
  command.option("--size", a->size, "Which random checkpoint; it is kept in the cache folder")
      .one_of(random_whisper_names())
      .show_default();
  command.option("--precision", a->precision, "Arithmetic").one_of({"f32", "bf16", "int8"}).show_default();
  command.option("--threads", a->threads, "Threads; 0: the default of speak").type("N").show_default();
  command.option("--runs", a->runs, "Runs that are counted, after one that is not").type("N").show_default();
  command.option("--tokens", a->tokens, "Tokens of each run of steps").type("N").show_default();
  command.option("--positions", a->positions, "Positions of the window, 20 ms each; 0: all").type("N").show_default();
  command
      .option("--recording", a->recording,
              "Instead: decode this sound greedily in whole windows, in English, without times; needs --model")
      .type("FILE");
  command.flag("--json", a->json, "One JSON object on one line");
  command.examples("  syrinx bench whisper --threads 2\n  syrinx bench whisper --size turbo --precision bf16 --json");
  command.run([a] { return run_bench_whisper(*a); });
}

}  // namespace syrinx::bench
