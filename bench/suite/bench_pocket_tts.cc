#include "bench/suite/bench_pocket_tts.h"

#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/cpu_info.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/version.h"
#include "bench/suite/bytes_a_weight.h"
#include "bench/suite/number_list.h"
#include "bench/suite/pocket_measure.h"
#include "bench/suite/random_pocket_tts.h"
#include "cli/output.h"
#include "engine/families/pocket_tts/pocket_engine.h"
#include "engine/speech/speech_engine.h"
#include "engine/threads.h"
#include "kernels/describe_targets.h"
#include "kernels/dispatch.h"
#include "models/mimi/weights.h"
#include "models/pocket_tts/flow_head.h"
#include "store/paths.h"

namespace syrinx::bench {
namespace {

constexpr int kMaxThreads = 64;
constexpr int kMaxCount = 100000;
// Version of the folder of random checkpoints: raised when their bytes change.
constexpr int kRandomVersion = 1;

struct Arguments {
  std::string model;
  std::string config = "english";
  std::string precision = precision_name(PocketEngine::kDefaultPrecision);
  std::string streams = "1,2,4,8,16";
  int threads = 0;
  int runs = 7;
  int frames = 100;
  int tokens = 41;
  int voice_frames = 125;
  int first_sounds = 100;
  float recording_seconds = 11;
  bool brief = false;
  bool json = false;
  bool without_cache = false;
};

struct Report {
  Arguments arguments;
  std::string checkpoint;
  int threads = 1;
  double load_ms = 0;
  double audio_seconds = 0;  // of a run
  PocketFigures figures;
  kernels::MachineLimits limits;
  double bytes_a_weight = 4;
  FrameCost cost;
  FrameFloor floor;
  Rounds empty;

  double rtf(double ms) const { return ms / 1000 / audio_seconds; }
};

Result<size_t> in_range(const char* name, int value, int least) {
  if (value < least || value > kMaxCount)
    return fail(Code::kInvalidArgument, "{} {}: give {} to {}", name, value, least, kMaxCount);
  return static_cast<size_t>(value);
}

Result<PocketWork> work_of(const Arguments& a) {
  if (a.threads < 0 || a.threads > kMaxThreads)
    return fail(Code::kInvalidArgument, "--threads {}: give 1 to {}, or 0 for the default", a.threads, kMaxThreads);
  if (!(a.recording_seconds >= 0 && a.recording_seconds <= 60))
    return fail(Code::kInvalidArgument, "--recording {}: give 0 to 60 seconds", a.recording_seconds);
  PocketWork work;
  SYRINX_TRY(work.runs, in_range("--runs", a.runs, 1));
  SYRINX_TRY(work.frames, in_range("--frames", a.frames, 2));
  SYRINX_TRY(work.tokens, in_range("--tokens", a.tokens, 1));
  SYRINX_TRY(work.voice_frames, in_range("--voice-frames", a.voice_frames, 1));
  SYRINX_TRY(work.first_sounds, in_range("--first-sounds", a.first_sounds, 1));
  SYRINX_TRY(work.streams, number_list("--streams", a.streams));
  work.recording_seconds = a.recording_seconds;
  work.stages = !a.brief;
  if (a.brief) work.recording_seconds = 0, work.streams.clear();
  return work;
}

Result<std::string> checkpoint_of(const Arguments& arguments) {
  if (!arguments.model.empty()) return arguments.model;
  SYRINX_TRY_VOID(random_pocket_config(arguments.config));
  SYRINX_TRY(const UserPaths paths, user_paths());
  const std::string folder = fmt::format("{}/bench/pocket-tts-{}-{}", paths.cache, kRandomVersion, arguments.config);
  SYRINX_TRY_VOID(make_random_pocket(folder, arguments.config));
  return folder;
}

Result<Report> measure(const Arguments& arguments) {
  SYRINX_TRY(const PocketWork work, work_of(arguments));
  Report report;
  report.arguments = arguments;
  report.threads = arguments.threads == 0 ? default_threads() : arguments.threads;
  SYRINX_TRY(report.checkpoint, checkpoint_of(arguments));
  SYRINX_TRY(const Precision precision, parse_precision(arguments.precision));
  report.bytes_a_weight = bytes_a_weight(precision);
  std::string cache;
  if (!arguments.without_cache) {
    SYRINX_TRY(const UserPaths paths, user_paths());
    cache = paths.cache + "/packed/bench";
  }
  const Stopwatch watch;
  ThreadTeam packers(default_threads());
  SYRINX_TRY(const auto model,
             pocket::Model::load(report.checkpoint,
                                 {.locate = {}, .cache_dir = cache, .precision = precision, .team = &packers}));
  report.load_ms = watch.elapsed_ms();
  ThreadTeam team(report.threads);
  SYRINX_TRY(report.figures, measure_pocket(*model, team, work));
  report.audio_seconds =
      static_cast<double>(work.frames * model->config().mimi.frame_samples()) / pocket::kSampleRateHz;
  const bool matching = model->config().flow_lm.head == pocket::HeadType::kFlowMatching;
  report.cost = frame_cost(model->config(), matching ? pocket::kMinFlowMatchingEvaluations : 1);
  if (arguments.brief) return report;
  // Last, since it takes memory of its own.
  report.limits = kernels::measure_limits(team);
  report.floor = frame_floor(report.cost, report.bytes_a_weight, report.limits);
  if (!mimi::reads_bf16(*model->decoder())) report.floor.codec_bf16_ms = 0;
  report.empty = empty_rounds(team, report.figures.first_sound.all.median(), work.first_sounds);
  return report;
}

Json times_json(const Times& times) {
  Json json;
  if (times.empty()) return json;
  return json.set("median", times.median())
      .set("min", times.min())
      .set("max", times.max())
      .set("p99", times.at(0.99))
      .set("n", times.size());
}

// The same, and what of it was the machine's doing.
Json rounds_json(const Rounds& rounds) {
  Json json = times_json(rounds.all);
  if (!rounds.known) return json;
  return json.set("caller_lost_core", rounds.caller_lost)
      .set("others_lost_core", rounds.others_lost)
      .set("undisturbed", times_json(rounds.undisturbed));
}

Json report_json(const Report& r) {
  const PocketFigures& f = r.figures;
  Json stages, streams = Json::Array(), json;
  stages.set("text", times_json(f.text)).set("flow_lm", times_json(f.flow_lm)).set("head", times_json(f.head));
  stages.set("codec", times_json(f.codec)).set("sum", times_json(f.stages));
  for (const StreamsFigures& s : f.streams) {
    Json item;
    item.set("streams", s.streams).set("round_ms", times_json(s.round));
    streams.array()->push_back(std::move(item));
  }
  json.set("rtf", r.rtf(f.run.median())).set("first_audio_ms", f.first_sound.all.median());
  json.set("first_audio_p99_ms", f.first_sound.all.at(0.99)).set("peak_rss_bytes", f.peak_rss_bytes);
  json.set("rss_bytes", f.rss_bytes).set("threads", r.threads).set("precision", r.arguments.precision);
  json.set("rtf_min", r.rtf(f.run.min())).set("rtf_max", r.rtf(f.run.max())).set("n", f.run.size());
  json.set("frames", r.arguments.frames).set("tokens", r.arguments.tokens);
  json.set("voice_frames", r.arguments.voice_frames).set("load_ms", r.load_ms);
  Json first = rounds_json(f.first_sound);
  const std::vector<double>& samples = f.first_sound.all.values();
  first.set("samples", Json::Array(samples.begin(), samples.end()));
  json.set("first_sound_ms", std::move(first)).set("run_ms", times_json(f.run));
  json.set("frame_ms", times_json(f.frame));
  json.set("prompt_ms", times_json(f.prompt)).set("stages_ms", std::move(stages));
  json.set("encoder_load_ms", f.encoder_load_ms).set("recording_seconds", r.arguments.recording_seconds);
  json.set("encode_ms", times_json(f.encode)).set("encode_prompt_ms", times_json(f.encode_prompt));
  json.set("streams", std::move(streams)).set("peak_sample", f.peak_sample);
  json.set("checkpoint", r.checkpoint).set("cpu", cpu_info().model).set("target", kernels::describe_chosen_target());
  json.set("build", fmt::format("{} {} {} {}", version(), commit(), build_type(), compiler()));
  if (r.arguments.brief) return json;
  json.set("floor_ms", r.floor.codec_f32_ms).set("over_floor", f.frame.median() / r.floor.codec_f32_ms);
  if (r.floor.codec_bf16_ms > 0) {
    json.set("floor_bf16_ms", r.floor.codec_bf16_ms).set("over_floor_bf16", f.frame.median() / r.floor.codec_bf16_ms);
    json.set("bf16_gop_per_s", r.limits.bf16_gop_per_s.all_threads);
  }
  json.set("flow_lm_weights", r.cost.flow_lm_weights);
  json.set("bytes_a_weight", r.bytes_a_weight).set("codec_flop", r.cost.codec_flop);
  json.set("read_gb_per_s", r.limits.read_gb_per_s.all_threads);
  json.set("f32_gop_per_s", r.limits.f32_gop_per_s.all_threads);
  return json.set("empty_loop_ms", rounds_json(r.empty));
}

std::string row(const char* name, const Times& times) {
  if (times.empty()) return {};
  return fmt::format("  {:<34}{:>9.3f}{:>9.3f}{:>9.3f}{:>9.3f}{:>7}\n", name, times.median(), times.min(), times.max(),
                     times.at(0.99), times.size());
}

double spread(const Times& times) { return times.at(0.99) / times.median(); }

// How far the slowest rounds are from the usual one, and in how many the machine had taken a core.
std::string jitter(const Rounds& rounds) {
  std::string text = fmt::format("{:.3f}", spread(rounds.all));
  if (!rounds.known) return text + "; this kernel does not tell whether a core was lost\n";
  text += fmt::format("; of {} rounds {} lost the caller's core, {} another", rounds.all.size(), rounds.caller_lost,
                      rounds.others_lost);
  if (rounds.undisturbed.empty()) return text + "\n";
  return text + fmt::format("; the others alone {:.3f}\n", spread(rounds.undisturbed));
}

std::string floor_text(const Report& r) {
  const double frame_ms = r.figures.frame.median();
  std::string text = fmt::format(
      "floor    {:.3f} ms a frame, codec at the f32 peak: {:.1f} M weights of {} bytes at {:.1f} GB/s, {:.3f} GFLOP of "
      "codec at {:.0f} GFLOP/s; a frame takes {:.2f} times that\n",
      r.floor.codec_f32_ms, r.cost.flow_lm_weights * 1e-6, r.bytes_a_weight, r.limits.read_gb_per_s.all_threads,
      r.cost.codec_flop * 1e-9, r.limits.f32_gop_per_s.all_threads, frame_ms / r.floor.codec_f32_ms);
  if (r.floor.codec_bf16_ms > 0)
    text += fmt::format("         {:.3f} ms, codec at the bf16 peak: {:.0f} GFLOP/s; a frame takes {:.2f} times that\n",
                        r.floor.codec_bf16_ms, r.limits.bf16_gop_per_s.all_threads, frame_ms / r.floor.codec_bf16_ms);
  return text;
}

std::string report_text(const Report& r) {
  const PocketFigures& f = r.figures;
  std::string text =
      fmt::format("machine  {}, {} cores, {}\nbuild    {} ({}, {}), {}\n", cpu_info().model, cpu_info().logical_cores,
                  kernels::describe_chosen_target(), version(), commit(), build_type(), compiler());
  text += fmt::format("model    {}, {}, {} threads\n", r.checkpoint, r.arguments.precision, r.threads);
  text += fmt::format("work     {} tokens, voice of {} frames, {} frames = {:.2f} s of sound\n\n", r.arguments.tokens,
                      r.arguments.voice_frames, r.arguments.frames, r.audio_seconds);
  text += fmt::format("  {:<34}{:>9}{:>9}{:>9}{:>9}{:>7}\n", "ms", "median", "min", "max", "p99", "n");
  text += row("first sound", f.first_sound.all) + row("all frames", f.run) + row("voice: prompt", f.prompt);
  text += row("recording: codec", f.encode) + row("recording: language model", f.encode_prompt);
  text += row("frame", f.frame) + row("text, stage by stage", f.text) + row("frame, stage by stage", f.stages);
  text += row("  language model", f.flow_lm) + row("  head", f.head) + row("  codec", f.codec);
  for (const StreamsFigures& s : f.streams)
    text += row(fmt::format("a frame of {} stream{}", s.streams, s.streams == 1 ? "" : "s").c_str(), s.round);
  text += row("empty loop", r.empty.all);
  text += fmt::format("\nrtf      {:.4f} ({:.4f} to {:.4f}): time / sound\n", r.rtf(f.run.median()), r.rtf(f.run.min()),
                      r.rtf(f.run.max()));
  text += fmt::format("load     {:.0f} ms{}\n", r.load_ms,
                      f.encode.empty() ? "" : fmt::format(", the encoder {:.0f} ms more", f.encoder_load_ms));
  text += fmt::format("memory   {:.0f} MB at most, {:.0f} MB resident, without the encoder\n",
                      static_cast<double>(f.peak_rss_bytes) * 1e-6, static_cast<double>(f.rss_bytes) * 1e-6);
  if (!r.arguments.brief) text += floor_text(r);
  text += fmt::format("jitter   p99 / p50 of a frame {:.3f}\n", spread(f.frame));
  text += "         of the first sound " + jitter(f.first_sound);
  if (!r.arguments.brief) text += "         of the empty loop  " + jitter(r.empty);
  return text;
}

std::vector<std::string> precision_names() {
  std::vector<std::string> names;
  for (const Precision precision : kAllPrecisions) names.emplace_back(precision_name(precision));
  return names;
}

Status run_bench_pocket_tts(const Arguments& arguments) {
  SYRINX_TRY(const Report report, measure(arguments));
  return cli::print(arguments.json ? report_json(report).dump() + "\n" : report_text(report));
}

}  // namespace

void add_bench_pocket_tts(cli::Command& bench) {
  auto a = std::make_shared<Arguments>();
  cli::Command command = bench.add("pocket-tts", "Time Pocket TTS: first sound, frames by stage, voices, streams");
  command.option("--model", a->model, "A checkpoint; random numbers of the published shapes by default").type("PATH");
  command.option("--config", a->config, "Which random checkpoint; it is kept in the cache folder")
      .one_of(random_pocket_names())
      .show_default();
  command.option("--precision", a->precision, "Arithmetic of language model and codec")
      .one_of(precision_names())
      .show_default();
  command.option("--threads", a->threads, "Threads; 0: the default of speak").type("N").show_default();
  command.option("--runs", a->runs, "Runs that are counted, after one that is not").type("N").show_default();
  command.option("--frames", a->frames, "Frames of 80 ms that each run speaks, 2 at least").type("N").show_default();
  command.option("--tokens", a->tokens, "Tokens of the text").type("N").show_default();
  command.option("--voice-frames", a->voice_frames, "Frames of the voice").type("N").show_default();
  command.option("--first-sounds", a->first_sounds, "How often the first sound is timed").type("N").show_default();
  command.option("--recording", a->recording_seconds, "Length of the recording that is cloned; 0: none")
      .type("SECONDS")
      .show_default();
  command.option("--streams", a->streams, "Numbers of streams that speak together; empty: none")
      .type("N,N")
      .show_default();
  command.flag("--brief", a->brief, "Only load, prompt, first sound and runs");
  command.flag("--json", a->json, "One JSON object on one line");
  command.flag("--no-cache", a->without_cache,
               "Pack the weights anew and keep them in memory of this process; else as speak does");
  command.examples(
      "  syrinx bench pocket-tts --threads 2\n"
      "  syrinx bench pocket-tts --config english_2m --threads 1 --streams 1,8 --json");
  command.run([a] { return run_bench_pocket_tts(*a); });
}

}  // namespace syrinx::bench
