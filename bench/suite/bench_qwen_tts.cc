#include "bench/suite/bench_qwen_tts.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "base/cpu_info.h"
#include "base/json.h"
#include "base/version.h"
#include "bench/suite/number_list.h"
#include "bench/suite/qwen_measure.h"
#include "bench/suite/random_qwen_tts.h"
#include "cli/output.h"
#include "engine/families/qwen_tts/qwen_engine.h"
#include "engine/speech/speech_files.h"
#include "engine/threads.h"
#include "kernels/describe_targets.h"
#include "kernels/dispatch.h"
#include "store/paths.h"

namespace syrinx::bench {
namespace {

constexpr int kMaxThreads = 64, kMaxRuns = 1000, kMaxFrames = 2000, kMaxRests = 100;
constexpr float kMaxWordSeconds = 10, kMaxIdleSeconds = 3600;
// Version of the folder of random checkpoints: raised when their bytes change.
constexpr int kRandomVersion = 1;

struct Arguments {
  std::string model;
  std::string config = "0.6b";
  std::string voice;
  std::string precision = precision_name(QwenEngine::kDefaultPrecision);
  std::string texts = "short,medium,long";
  std::string text;
  std::string streams = "1,2,4,8";
  int threads = 0;
  int runs = 3;
  int frames = 50;
  float word_seconds = 0.25f;
  float stream_seconds = 2.5f;
  float idle_seconds = 0;
  int rests = 3;
  bool ablations = false;
  std::string only_ablations;
  bool brief = false;
  bool json = false;
  bool without_cache = false;
};

struct Report {
  Arguments arguments;
  QwenWork work;
  QwenFigures figures;
  kernels::MachineLimits limits;
  QwenFrameCost cost;
  QwenFrameFloor floor;

  // With the codec at the peak of the arithmetic that it multiplies in.
  double floor_ms() const {
    const double narrow = std::max(floor.codec_bf16_ms, floor.codec_int16_ms);  // one of them at most
    return narrow > 0 ? narrow : floor.codec_f32_ms;
  }
  double share_of_floor() const { return floor_ms() / figures.stages.front().frame.median(); }
  // The text that a plain "rtf" means.
  const QwenTextFigures& headline() const {
    const auto medium = std::ranges::find_if(
        figures.texts, [](const QwenTextFigures& each) { return std::string_view(each.text.name) == "medium"; });
    return medium != figures.texts.end() ? *medium : figures.texts.front();
  }
};

double rtf(const QwenTextFigures& text, double wall_ms) { return wall_ms / 1e3 / text.audio_seconds; }

// Frames a second.
double rate(const QwenTextFigures& text) { return text.frames * 1e3 / text.wall.median(); }

double deviation(const Times& times) {
  if (times.size() < 2) return 0;
  double mean = 0, sum = 0;
  for (const double ms : times.values()) mean += ms / static_cast<double>(times.size());
  for (const double ms : times.values()) sum += (ms - mean) * (ms - mean);
  return std::sqrt(sum / static_cast<double>(times.size() - 1));
}

// Seconds of sound of all streams in a second; 0: their step is not known.
double throughput(const Report& r, const QwenStreamsFigures& s) {
  if (s.step.empty()) return 0;
  return static_cast<double>(s.streams) * r.figures.frame_ms / s.step.median();
}

double over_median(const Report& r, double frame_ms) { return frame_ms / r.figures.stages.front().frame.median(); }

// Frames that stand right behind their rest.
Times rested_frames(const Report& r) {
  Times times;
  for (const QwenRest& rest : r.figures.rests)
    if (rest.end == RestEnd::kPlain) times.add(rest.frame.sum());
  times.sort();
  return times;
}

size_t streams_at_real_time(const Report& r) {
  size_t most = 0;
  for (const QwenStreamsFigures& s : r.figures.streams)
    if (!s.step.empty() && s.step.median() <= r.figures.frame_ms) most = std::max(most, s.streams);
  return most;
}

// A text of the user's own stays the arguments'.
Result<std::vector<SpokenText>> texts_of(const Arguments& a) {
  std::vector<SpokenText> texts;
  if (!a.text.empty()) {
    std::istringstream words(a.text);
    const auto count = std::distance(std::istream_iterator<std::string>(words), {});
    if (count == 0) return fail(Code::kInvalidArgument, "--text: it holds no word; give some");
    texts.push_back({.name = "own", .words = static_cast<size_t>(count), .text = a.text.c_str()});
    return texts;
  }
  const std::string& names = a.texts;
  for (size_t at = 0; at <= names.size();) {
    const size_t end = std::min(names.find(',', at), names.size());
    const std::string name = names.substr(at, end - at);
    const auto* const found =
        std::ranges::find_if(kSpokenTexts, [&name](const SpokenText& text) { return name == text.name; });
    if (found == kSpokenTexts.end())
      return fail(Code::kInvalidArgument, "--texts: there is no text '{}'; give some of short,medium,long", name);
    texts.push_back(*found);
    at = end + 1;
  }
  return texts;
}

Status check_numbers(const Arguments& a) {
  if (a.threads < 0 || a.threads > kMaxThreads)
    return fail(Code::kInvalidArgument, "--threads {}: give 1 to {}, or 0 for the default", a.threads, kMaxThreads);
  if (a.runs < 1 || a.runs > kMaxRuns) return fail(Code::kInvalidArgument, "--runs {}: give 1 to {}", a.runs, kMaxRuns);
  if (a.frames < 8 || a.frames > kMaxFrames)
    return fail(Code::kInvalidArgument, "--frames {}: give 8 to {}", a.frames, kMaxFrames);
  for (const auto& [name, value] :
       {std::pair{"--word-seconds", a.word_seconds}, {"--stream-seconds", a.stream_seconds}})
    if (!(value > 0 && value <= kMaxWordSeconds))
      return fail(Code::kInvalidArgument, "{} {}: give more than 0, {} at most", name, value, kMaxWordSeconds);
  if (!(a.idle_seconds >= 0 && a.idle_seconds <= kMaxIdleSeconds))
    return fail(Code::kInvalidArgument, "--idle-seconds {}: give 0 to {}", a.idle_seconds, kMaxIdleSeconds);
  if (a.rests < 1 || a.rests > kMaxRests)
    return fail(Code::kInvalidArgument, "--rests {}: give 1 to {}", a.rests, kMaxRests);
  return {};
}

Result<std::vector<std::string>> ablations_of(const Arguments& a) {
  const std::vector<std::string> all(std::begin(kQwenAblations), std::end(kQwenAblations));
  if (a.only_ablations.empty()) return a.ablations ? all : std::vector<std::string>();
  std::vector<std::string> chosen;
  std::istringstream words(a.only_ablations);
  for (std::string word; std::getline(words, word, ',');) {
    if (std::ranges::find(all, word) == all.end())
      return fail(Code::kInvalidArgument, "--only-ablations '{}' is none of these: {}", word, fmt::join(all, ", "));
    chosen.push_back(word);
  }
  return chosen;
}

Result<QwenWork> work_of(const Arguments& a) {
  SYRINX_TRY_VOID(check_numbers(a));
  QwenWork work;
  SYRINX_TRY(work.precision, parse_precision(a.precision));
  SYRINX_TRY(work.texts, texts_of(a));
  SYRINX_TRY(work.streams, number_list("--streams", a.streams));
  for (const size_t streams : work.streams)
    if (streams < 1 || streams > QwenEngine::kMaxSessions)
      return fail(Code::kInvalidArgument, "--streams {}: give 1 to {}", streams, QwenEngine::kMaxSessions);
  work.voice = a.voice;
  work.threads = a.threads == 0 ? default_threads() : a.threads;
  work.runs = static_cast<size_t>(a.runs);
  work.frames = a.brief ? 0 : static_cast<size_t>(a.frames);
  work.word_seconds = static_cast<double>(a.word_seconds);
  work.stream_seconds = static_cast<double>(a.stream_seconds);
  SYRINX_TRY(work.ablations, ablations_of(a));
  work.idle_seconds = static_cast<double>(a.idle_seconds);
  work.rests = static_cast<size_t>(a.rests);
  if (a.brief) {
    work.streams.clear();
    work.ablations.clear();
  }
  return work;
}

Result<std::string> checkpoint_of(const Arguments& a, const UserPaths& paths) {
  if (!a.model.empty()) return a.model;
  const std::string folder = fmt::format("{}/bench/qwen3-tts-{}-{}", paths.cache, kRandomVersion, a.config);
  ThreadTeam team(default_threads());
  SYRINX_TRY_VOID(make_random_qwen(folder, a.config, team));
  return folder;
}

Result<Report> measure(const Arguments& a) {
  SYRINX_TRY(QwenWork work, work_of(a));
  SYRINX_TRY(const UserPaths paths, user_paths());
  SYRINX_TRY(work.checkpoint, checkpoint_of(a, paths));
  work.models_folder = models_folder(paths);
  if (!a.without_cache) work.cache_folder = paths.cache + "/packed/bench";
  Report report{.arguments = a, .work = std::move(work), .figures = {}, .limits = {}, .cost = {}, .floor = {}};
  SYRINX_TRY(report.figures, measure_qwen(report.work));
  if (a.brief) return report;
  ThreadTeam team(report.work.threads);
  report.limits = kernels::measure_limits(team);
  report.cost = qwen_frame_cost(report.figures.config, report.figures.codec, report.work.precision);
  report.floor = qwen_frame_floor(report.cost, report.limits);
  if (!report.figures.codec_reads_bf16) report.floor.codec_bf16_ms = 0;
  if (!report.figures.codec_reads_int16) report.floor.codec_int16_ms = 0;
  return report;
}

Json times_json(const Times& times) {
  Json json;
  if (times.empty()) return json;
  json.set("median", times.median()).set("min", times.min()).set("max", times.max()).set("p99", times.at(0.99));
  return json.set("n", times.size());
}

Json text_json(const QwenTextFigures& t) {
  Json json;
  json.set("text", t.text.name).set("words", t.text.words).set("pieces", t.pieces).set("frames", t.frames);
  json.set("wall_ms", times_json(t.wall)).set("wall_deviation_ms", deviation(t.wall));
  json.set("audio_seconds", t.audio_seconds).set("rtf", rtf(t, t.wall.median())).set("frames_per_s", rate(t));
  json.set("rss_bytes", t.rss_bytes).set("prefill_ms", times_json(t.prefill));
  json.set("generate_ms", times_json(t.generate)).set("decode_ms", times_json(t.decode));
  json.set("first_byte_ms", times_json(t.first_byte)).set("first_playable_ms", times_json(t.playable));
  return json.set("first_audible_ms", times_json(t.audible));
}

Json stages_json(const QwenStages& s) {
  Json json;
  json.set("name", s.name).set("positions", s.positions).set("prompt_ms", s.prompt.median());
  json.set("talker", times_json(s.talker)).set("predictor", times_json(s.predictor)).set("codec", times_json(s.codec));
  return json.set("sum", times_json(s.frame));
}

Json::Array rests_json(const std::vector<QwenRest>& rests) {
  Json::Array items;
  for (const QwenRest& rest : rests) {
    Json item;
    item.set("before", rest_end_name(rest.end)).set("before_ms", rest.end_ms).set("frame_ms", rest.frame.sum());
    item.set("talker_ms", rest.frame.talker_ms).set("predictor_ms", rest.frame.predictor_ms);
    item.set("codec_ms", rest.frame.codec_ms).set("minor_faults", rest.minor_faults);
    item.set("major_faults", rest.major_faults).set("stolen_ms", rest.stolen_ms).set("read_ms", rest.read_ms);
    Json::Array next;
    for (const double ms : rest.next.values()) next.push_back(ms);
    item.set("read_again_ms", rest.read_again_ms).set("next_ms", std::move(next));
    items.push_back(std::move(item));
  }
  return items;
}

void add_measured(Json& json, const Report& r) {
  Json::Array texts, streams, chunks, ablations, twins;
  for (const QwenTextFigures& each : r.figures.texts) texts.push_back(text_json(each));
  for (const QwenStreamsFigures& each : r.figures.streams) {
    Json item;
    item.set("streams", each.streams).set("step_ms", times_json(each.step));
    item.set("throughput", each.step.empty() ? Json() : Json(throughput(r, each)));
    streams.push_back(std::move(item));
  }
  for (const QwenChunkFigures& each : r.figures.chunks) {
    Json item;
    item.set("frames", each.frames).set("codec_ms", times_json(each.codec));
    chunks.push_back(std::move(item));
  }
  for (size_t i = 1; i < r.figures.stages.size(); ++i) ablations.push_back(stages_json(r.figures.stages[i]));
  for (const QwenTwin& each : r.figures.twins) {
    Json item;
    item.set("name", each.name).set("before_ms", times_json(each.before)).set("product_ms", times_json(each.product));
    twins.push_back(std::move(item));
  }
  json.set("texts", std::move(texts));
  if (r.arguments.brief) return;
  json.set("stages_ms", stages_json(r.figures.stages.front())).set("chunks", std::move(chunks));
  json.set("streams", std::move(streams)).set("streams_at_real_time", streams_at_real_time(r));
  json.set("streams_peak_rss_bytes", r.figures.streams_rss_bytes).set("ablations", std::move(ablations));
  json.set("twins", std::move(twins));
  if (const Times rested = rested_frames(r); !rested.empty()) {
    json.set("rested_frame_ms", rested.median()).set("rested_over_p50", over_median(r, rested.median()));
    json.set("rests", rests_json(r.figures.rests));
  }
  json.set("floor_ms", r.floor_ms()).set("over_floor", 1 / r.share_of_floor());
  json.set("share_of_floor", r.share_of_floor()).set("floor_f32_ms", r.floor.codec_f32_ms);
  if (r.floor.codec_bf16_ms > 0) json.set("bf16_gop_per_s", r.limits.bf16_gop_per_s.all_threads);
  if (r.floor.codec_int16_ms > 0) json.set("int16_gop_per_s", r.limits.int8_dot_gop_per_s.all_threads / 2);
  json.set("weight_bytes", r.cost.weight_bytes).set("codec_flop", r.cost.codec_flop);
  json.set("read_gb_per_s", r.limits.read_gb_per_s.all_threads);
  json.set("f32_gop_per_s", r.limits.f32_gop_per_s.all_threads).set("peak_sample", r.figures.peak_sample);
}

Json report_json(const Report& r) {
  const QwenTextFigures& t = r.headline();
  Json json;
  json.set("rtf", rtf(t, t.wall.median())).set("rtf_min", rtf(t, t.wall.min())).set("rtf_max", rtf(t, t.wall.max()));
  json.set("first_audio_ms", t.first_byte.median()).set("peak_rss_bytes", r.figures.peak_rss_bytes);
  json.set("threads", r.work.threads).set("precision", r.arguments.precision).set("n", r.work.runs);
  json.set("frame_ms", r.arguments.brief ? Json() : times_json(r.figures.stages.front().frame));
  json.set("load_ms", r.figures.load_ms).set("text", t.text.name);
  add_measured(json, r);
  json.set("checkpoint", r.work.checkpoint)
      .set("cpu", cpu_info().model)
      .set("target", kernels::describe_chosen_target());
  return json.set("build", fmt::format("{} {} {} {}", version(), commit(), build_type(), compiler()));
}

std::string share(const Times& part, const QwenTextFigures& text) {
  const double sum = text.prefill.median() + text.generate.median() + text.decode.median();
  return fmt::format("{:.0f} ({:.0f} %)", part.median(), sum > 0 ? 100 * part.median() / sum : 0);
}

std::string port_table(const Report& r) {
  std::string text =
      fmt::format("{:<8}{:>6}{:>10}{:>8}{:>10}{:>7}{:>7}{:>7}{:>14}{:>15}{:>15}\n", "text", "words", "wall, ms", "+-",
                  "audio, s", "RTF", "tok/s", "MB", "prefill, ms", "generate, ms", "decode, ms");
  for (const QwenTextFigures& t : r.figures.texts)
    text += fmt::format("{:<8}{:>6}{:>10.0f}{:>8.0f}{:>10.2f}{:>7.3f}{:>7.1f}{:>7.0f}{:>14}{:>15}{:>15}\n", t.text.name,
                        t.text.words, t.wall.median(), deviation(t.wall), t.audio_seconds, rtf(t, t.wall.median()),
                        rate(t), static_cast<double>(t.rss_bytes) * 1e-6, share(t.prefill, t), share(t.generate, t),
                        share(t.decode, t));
  return text + fmt::format("n = {}; wall: median, RTF: wall / audio, tok/s: frames of {:.0f} ms a second\n",
                            r.work.runs, r.figures.frame_ms);
}

std::string row(const std::string& name, const Times& times) {
  if (times.empty()) return {};
  return fmt::format("  {:<34}{:>10.2f}{:>10.2f}{:>10.2f}{:>10.2f}{:>7}\n", name, times.median(), times.min(),
                     times.max(), times.at(0.99), times.size());
}

std::string row_or(const std::string& name, const Times& times, const char* none) {
  return times.empty() ? fmt::format("  {:<34}{:>10}\n", name, none) : row(name, times);
}

std::string own_table(const Report& r) {
  std::string text = fmt::format("\n  {:<34}{:>10}{:>10}{:>10}{:>10}{:>7}\n", "ms", "p50", "min", "max", "p99", "n");
  for (const QwenTextFigures& t : r.figures.texts) {
    text += row(fmt::format("{}: first byte", t.text.name), t.first_byte);
    text += row("  first playable", t.playable) + row_or("  first audible sample", t.audible, "never");
  }
  if (r.arguments.brief) return text;
  const QwenStages& own = r.figures.stages.front();
  text += row(fmt::format("prompt of {} positions", own.positions), own.prompt) + row("frame", own.frame);
  text += row("  talker", own.talker) + row("  predictor", own.predictor) + row("  codec", own.codec);
  for (const QwenChunkFigures& c : r.figures.chunks)
    text += row(fmt::format("codec, a frame of {}", c.frames), c.codec);
  for (const QwenStreamsFigures& s : r.figures.streams)
    text += row_or(fmt::format("step of {} stream{}", s.streams, s.streams == 1 ? "" : "s"), s.step, "too short");
  return text;
}

std::string streams_text(const Report& r) {
  std::string text;
  for (const QwenStreamsFigures& s : r.figures.streams) {
    if (s.step.empty()) continue;
    text += fmt::format("{}{} x {:.2f}", text.empty() ? "" : ", ", s.streams,
                        throughput(r, s) / static_cast<double>(s.streams));
  }
  if (text.empty()) return {};
  return fmt::format("streams  {} of real time each; {} at real time; {:.0f} MB at most\n", text,
                     streams_at_real_time(r), static_cast<double>(r.figures.streams_rss_bytes) * 1e-6);
}

std::string twin_table(const Report& r) {
  if (r.figures.twins.empty()) return {};
  std::string text = fmt::format("\n  {:<34}{:>10}{:>10}\n", "ms a frame (p50), matrices left out", "before", "here");
  for (const QwenTwin& t : r.figures.twins)
    text += fmt::format("  {:<34}{:>10.4f}{:>10.4f}\n", t.name, t.before.median(), t.product.median());
  return text;
}

std::string ablation_table(const Report& r) {
  if (r.figures.stages.size() < 2) return {};
  std::string text = fmt::format("\n  {:<34}{:>9}{:>10}{:>9}{:>11}{:>9}{:>9}\n", "ablation, ms (p50)", "prompt",
                                 "positions", "talker", "predictor", "codec", "frame");
  for (const QwenStages& s : r.figures.stages)
    text += fmt::format("  {:<34}{:>9.1f}{:>10}{:>9.2f}{:>11.2f}{:>9.2f}{:>9.2f}\n", s.name, s.prompt.median(),
                        s.positions, s.talker.median(), s.predictor.median(), s.codec.median(), s.frame.median());
  return text;
}

std::string floor_text(const Report& r) {
  const bool is_bf16 = r.floor.codec_bf16_ms > 0, is_int16 = r.floor.codec_int16_ms > 0;
  const double peak = is_int16  ? r.limits.int8_dot_gop_per_s.all_threads / 2
                      : is_bf16 ? r.limits.bf16_gop_per_s.all_threads
                                : r.limits.f32_gop_per_s.all_threads;
  std::string text = fmt::format(
      "floor    {:.1f} ms a frame: {:.0f} MB of weights at {:.1f} GB/s, then {:.2f} GFLOP of the codec at {:.0f} "
      "GFLOP/s, the {} peak\n",
      r.floor_ms(), r.cost.weight_bytes * 1e-6, r.limits.read_gb_per_s.all_threads, r.cost.codec_flop * 1e-9, peak,
      is_int16  ? "int16"
      : is_bf16 ? "bf16"
                : "f32");
  if (is_int16 || is_bf16)
    text += fmt::format("         {:.1f} ms at the f32 peak of {:.0f} GFLOP/s\n", r.floor.codec_f32_ms,
                        r.limits.f32_gop_per_s.all_threads);
  return text + fmt::format("share of floor  {:.2f}: floor / frame, which takes {:.1f} ms\n", r.share_of_floor(),
                            r.figures.stages.front().frame.median());
}

std::string rest_text(const Report& r) {
  const Times rested = rested_frames(r);
  if (rested.empty()) return {};
  std::string text = fmt::format("\n  {:<14}{:>6}{:>8}{:>8}{:>10}{:>7}{:>14}{:>8}{:>20}  {}\n", "before, ms", "",
                                 "frame", "talker", "predictor", "codec", "faults, major", "stolen",
                                 fmt::format("reads of {} MB", kRestReadBytes >> 20), "frames behind it");
  for (const QwenRest& rest : r.figures.rests) {
    text += fmt::format("  {:<14}{:>6.0f}{:>8.1f}{:>8.1f}{:>10.1f}{:>7.1f}{:>9}{:>5}{:>8.0f}{:>12.1f}{:>8.1f} ",
                        rest_end_name(rest.end), rest.end_ms, rest.frame.sum(), rest.frame.talker_ms,
                        rest.frame.predictor_ms, rest.frame.codec_ms, rest.minor_faults, rest.major_faults,
                        rest.stolen_ms, rest.read_ms, rest.read_again_ms);
    for (const double ms : rest.next.values()) text += fmt::format(" {:.0f}", ms);
    text += "\n";
  }
  return text + fmt::format(
                    "idle     a frame behind {} s of rest takes {:.1f} ms (n = {}), {:.2f} times the p50 of a "
                    "running stream\n",
                    r.arguments.idle_seconds, rested.median(), rested.size(), over_median(r, rested.median()));
}

std::string report_text(const Report& r) {
  const QwenTextFigures& t = r.headline();
  std::string text =
      fmt::format("machine  {}, {} cores, {}\nbuild    {} ({}, {}), {}\n", cpu_info().model, cpu_info().logical_cores,
                  kernels::describe_chosen_target(), version(), commit(), build_type(), compiler());
  text += fmt::format("model    {}, {}, {} threads\n\n", r.work.checkpoint, r.arguments.precision, r.work.threads);
  text += port_table(r) + own_table(r) + ablation_table(r) + twin_table(r);
  text += fmt::format("\nrtf      {:.4f} ({:.4f} to {:.4f}), {}: time / sound\n", rtf(t, t.wall.median()),
                      rtf(t, t.wall.min()), rtf(t, t.wall.max()), t.text.name);
  text += streams_text(r);
  text += fmt::format("memory   {:.0f} MB at most for one stream; load {:.0f} ms\n",
                      static_cast<double>(r.figures.peak_rss_bytes) * 1e-6, r.figures.load_ms);
  return r.arguments.brief ? text : text + rest_text(r) + floor_text(r);
}

std::vector<std::string> precision_names() {
  std::vector<std::string> names;
  for (const Precision precision : kAllPrecisions) names.emplace_back(precision_name(precision));
  return names;
}

Status run_bench_qwen_tts(const Arguments& arguments) {
  SYRINX_TRY(const Report report, measure(arguments));
  return cli::print(arguments.json ? report_json(report).dump() + "\n" : report_text(report));
}

}  // namespace

void add_bench_qwen_tts(cli::Command& bench) {
  auto a = std::make_shared<Arguments>();
  cli::Command command = bench.add("qwen3-tts", "Time Qwen3-TTS: texts, first sound, frames by stage, streams");
  command
      .option("--model", a->model, "A checkpoint or an installed model; random numbers of published shapes by default")
      .type("MODEL");
  command.option("--config", a->config, "Which random checkpoint; it is kept in the cache folder")
      .one_of(random_qwen_names())
      .show_default();
  command.option("--voice", a->voice, "Voice of the texts; the checkpoint's default").type("VOICE");
  command.option("--precision", a->precision, "Arithmetic of talker and code predictor")
      .one_of(precision_names())
      .show_default();
  command.option("--threads", a->threads, "Threads; 0: the default of speak").type("N").show_default();
  command.option("--runs", a->runs, "Runs of each text and of each number of streams").type("N").show_default();
  command.option("--texts", a->texts, "Texts of 13, 53 and 115 words").type("A,B,...").show_default();
  command.option("--text", a->text, "A text of your own instead of these").type("TEXT");
  command.option("--word-seconds", a->word_seconds, "Sound for each word of a text").type("S").show_default();
  command.option("--frames", a->frames, "Frames whose stages are timed").type("N").show_default();
  command.option("--streams", a->streams, "Numbers of streams that speak together").type("A,B,...").show_default();
  command.option("--stream-seconds", a->stream_seconds, "Sound of each of them").type("S").show_default();
  command.option("--idle-seconds", a->idle_seconds, "Rest before more frames of the stages; 0: none")
      .type("S")
      .show_default();
  command
      .option("--rests", a->rests,
              "So many rests, in turns: with nothing, busy cores or pages read at the end, pages kept")
      .type("N")
      .show_default();
  command.flag("--ablations", a->ablations, "Frames in each precision, without draws, behind a long prompt, ...");
  command
      .option("--only-ablations", a->only_ablations,
              "Some of draws, penalty, text, prompt, twins, f32, bf16, int8, int4")
      .type("A,B,...");
  command.flag("--brief", a->brief, "Only the texts");
  command.flag("--json", a->json, "One JSON object on one line");
  command.flag("--no-cache", a->without_cache,
               "Pack the weights anew and keep them in memory of this process; else as speak does");
  command.examples(
      "  syrinx bench qwen3-tts --threads 2\n"
      "  syrinx bench qwen3-tts --model ./Qwen3-TTS-12Hz-0.6B-CustomVoice --ablations --json");
  command.run([a] { return run_bench_qwen_tts(*a); });
}

}  // namespace syrinx::bench
