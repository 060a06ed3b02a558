#include "bench/suite/bench_transducer.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "audio/decode/recording.h"
#include "audio/resample.h"
#include "base/clock.h"
#include "base/cpu_info.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/signals.h"
#include "base/version.h"
#include "bench/suite/rounds.h"
#include "bench/suite/stream_deadlines.h"
#include "cli/output.h"
#include "engine/families/transducer/transducer_frames.h"
#include "engine/speech/speech_engine.h"
#include "engine/threads.h"
#include "kernels/describe_targets.h"
#include "kernels/dispatch.h"
#include "models/transducer/encoder.h"
#include "models/transducer/head_decoder.h"
#include "models/transducer/model.h"
#include "models/transducer/stream_encoder.h"

namespace syrinx::bench {
namespace {

constexpr size_t kMostStreams = 256;

struct BenchTransducerArguments {
  std::string model;
  std::string precision = "int8";
  std::string cache;
  std::string recording;
  int threads = 0;
  int runs = 5;
  float seconds = 11;
  bool stream = false, real_time = false, labels = false;
  int look_ahead = -1;
  int streams = 1;
  int chunks = 2000;
  bool json = false;

  std::optional<int> asked_look_ahead() const { return look_ahead < 0 ? std::nullopt : std::optional(look_ahead); }
};

struct Figures {
  double load_ms = 0;
  double chunk_ms = 0;     // of sound
  Times features, encode;  // of the recording
  Times decode;            // with --labels
  size_t labels = 0;
  double sound_s = 0;
  Rounds chunk, empty;  // a step, and a loop of the same length that computes nothing
  std::vector<DeadlineTrial> trials;
};

// Noise that swells and fades as speech does.
std::vector<float> noise(size_t samples) {
  std::mt19937 generator(7);
  std::normal_distribution<float> normal;
  std::vector<float> out(samples);
  for (size_t i = 0; i < samples; ++i)
    out[i] = 0.05f * normal(generator) * (1.0f + std::sin(static_cast<float>(i % 16000) * 0.0012f));
  return out;
}

Result<std::vector<float>> sound(const BenchTransducerArguments& arguments) {
  constexpr int kRateHz = 16000;
  if (arguments.recording.empty()) return noise(static_cast<size_t>(arguments.seconds * kRateHz));
  SYRINX_TRY(const Recording recording, read_recording(arguments.recording));
  return resample(recording.samples, recording.rate_hz, kRateHz);
}

Status measure_recording(const transducer::Model& model, const BenchTransducerArguments& arguments, ThreadTeam& team,
                         Figures& figures) {
  SYRINX_TRY(const std::vector<float> samples, sound(arguments));
  figures.sound_s = static_cast<double>(samples.size()) / 16000;
  const transducer::Features& features = *model.features();
  const size_t frames = features.frames(samples.size()), columns = features.config().mels;
  if (frames == 0) return fail(Code::kInvalidArgument, "{} s hold no frame of features", figures.sound_s);
  std::vector<float> mels(frames * columns);
  const View<float, 2> view(mels.data(), {frames, columns});
  nn::Runner runner(team);
  transducer::Encoder encoder(model.encoder(), runner);
  constexpr size_t kBlockFrames = 256;
  transducer::HeadDecoder decoder(model.decoder(), runner, {}, 1, kBlockFrames);
  std::vector<transducer::Emission> found;
  // The first run makes the table of positions and warms memory; it is not counted.
  for (int run = 0; run <= arguments.runs; ++run) {
    if (cancel_requested()) return fail(Code::kCancelled, "stopped");
    const Stopwatch features_watch;
    features.compute(samples, view, team);
    const double features_ms = features_watch.elapsed_ms();
    const Stopwatch encode_watch;
    const View<const float, 2> encoded = encoder.encode(view);
    const double encode_ms = encode_watch.elapsed_ms();
    const Stopwatch decode_watch;
    if (arguments.labels) {
      transducer::HeadState state(*model.decoder());
      found.clear();
      const transducer::HeadDecoder::Job job{&state, encoded, &found};
      decoder.decode({&job, 1});
    }
    if (run == 0) continue;
    figures.features.add(features_ms);
    figures.encode.add(encode_ms);
    if (arguments.labels) figures.decode.add(decode_watch.elapsed_ms());
  }
  figures.labels = found.size();
  figures.features.sort();
  figures.encode.sort();
  figures.decode.sort();
  return {};
}

double recording_rtf(const Figures& figures) {
  const double decode_ms = figures.decode.empty() ? 0 : figures.decode.median();
  return (figures.features.median() + figures.encode.median() + decode_ms) / 1000 / figures.sound_s;
}

// Length of a chunk's audio.
double chunk_ms(const transducer::Model& model, transducer::AttentionContext context) {
  return 1000 * model.config().frame_s() * static_cast<double>(context.right + 1);
}

Status measure_stream(const transducer::Model& model, const BenchTransducerArguments& arguments, ThreadTeam& team,
                      Figures& figures) {
  const transducer::EncoderConfig& config = model.config().encoder;
  SYRINX_TRY(const transducer::AttentionContext context,
             transducer::choose_context(model.config().encoder, arguments.asked_look_ahead()));
  nn::Runner runner(team);
  const auto streams = static_cast<size_t>(arguments.streams);
  transducer::StreamEncoder encoder(model.encoder(), runner, context, streams);
  std::mt19937 generator(7);
  std::normal_distribution<float> normal(-8, 3);
  std::vector<float> mels(transducer::chunk_mels(config, context) * config.mels);
  for (float& value : mels) value = normal(generator);
  std::vector<std::unique_ptr<transducer::EncoderState>> states;
  for (size_t n = 0; n < streams; ++n)
    states.push_back(std::make_unique<transducer::EncoderState>(config, context, transducer::StreamMode::kExact));
  std::vector<transducer::StreamEncoder::Input> inputs(streams);
  std::vector<transducer::StreamEncoder::Output> outputs(streams);
  CoreWaits waits(team);
  const size_t warm = 100;  // fills the caches of attention
  for (size_t i = 0; i < static_cast<size_t>(arguments.chunks) + warm; ++i) {
    if (cancel_requested()) return fail(Code::kCancelled, "stopped");
    const size_t count =
        i == 0 ? transducer::first_chunk_mels(config, context) : transducer::chunk_mels(config, context);
    for (size_t n = 0; n < streams; ++n) inputs[n] = {states[n].get(), {mels.data(), {count, config.mels}}, false};
    waits.since_last();
    const Stopwatch watch;
    encoder.step(inputs, outputs);
    if (i >= warm) figures.chunk.add(watch.elapsed_ms(), waits);
  }
  figures.chunk.sort();
  figures.chunk_ms = chunk_ms(model, context);
  figures.empty = empty_rounds(team, figures.chunk.all.median(), figures.chunk.all.size());
  return {};
}

Status measure_deadlines(const transducer::Model& model, const BenchTransducerArguments& arguments, ThreadTeam& team,
                         Figures& figures) {
  SYRINX_TRY(const transducer::AttentionContext context,
             transducer::choose_context(model.config().encoder, arguments.asked_look_ahead()));
  if (!ChunkedFrames::fits(model))
    return fail(Code::kUnsupported, "the model normalises whole recordings: it cannot be streamed chunk by chunk");
  figures.chunk_ms = chunk_ms(model, context);
  constexpr float kEverythingBlank = -1000;
  const DeadlineWork work{.model = model,
                          .context = context,
                          .options = {.blank_penalty = arguments.labels ? 0 : kEverythingBlank},
                          .team = team,
                          .seconds = static_cast<double>(arguments.seconds)};
  if (arguments.streams == 0) {
    SYRINX_TRY(figures.trials, find_streams(work, kMostStreams));
    return {};
  }
  SYRINX_TRY(DeadlineTrial trial, run_streams(work, static_cast<size_t>(arguments.streams)));
  figures.trials.push_back(std::move(trial));
  return {};
}

std::string row(const char* name, const Times& times) {
  return fmt::format("{:<14}{:>9.3f} {:>9.3f} {:>9.3f} {:>9.3f}  ms\n", name, times.median(), times.at(0.99),
                     times.at(0.999), times.max());
}

Json quantiles(const Times& times) {
  Json json;
  json.set("p50_ms", times.median()).set("p99_ms", times.at(0.99)).set("p999_ms", times.at(0.999));
  json.set("max_ms", times.max()).set("n", times.size());
  return json;
}

// The greatest number of streams that missed no deadline; 0: none did.
size_t greatest(const std::vector<DeadlineTrial>& trials) {
  size_t most = 0;
  for (const DeadlineTrial& trial : trials)
    if (trial.misses == 0) most = std::max(most, trial.streams);
  return most;
}

Json trials_json(const Figures& figures) {
  std::vector<Json> list;
  for (const DeadlineTrial& trial : figures.trials) {
    Json json = quantiles(trial.ms);
    json.set("streams", trial.streams).set("misses", trial.misses).set("chunks_per_step", trial.step_chunks);
    list.push_back(std::move(json.set("labels_per_s", trial.labels_per_s)));
  }
  Json json;
  json.set("chunk_ms", figures.chunk_ms).set("trials", list).set("streams_without_a_miss", greatest(figures.trials));
  return json;
}

std::string trials_text(const Figures& figures) {
  std::string text = fmt::format("{:>7} {:>9} {:>9} {:>9} {:>9}  {:>7} {:>12} {:>9}\n", "streams", "p50 ms", "p99",
                                 "p99.9", "max", "misses", "chunks/step", "labels/s");
  for (const DeadlineTrial& trial : figures.trials)
    text += fmt::format("{:>7} {:>9.3f} {:>9.3f} {:>9.3f} {:>9.3f}  {:>7} {:>12.2f} {:>9.2f}\n", trial.streams,
                        trial.ms.median(), trial.ms.at(0.99), trial.ms.at(0.999), trial.ms.max(), trial.misses,
                        trial.step_chunks, trial.labels_per_s);
  return text + fmt::format("\nchunks of {:.0f} ms, each due before the next: {} streams without a miss\n",
                            figures.chunk_ms, greatest(figures.trials));
}

Json rounds_json(const Rounds& rounds) {
  Json json = quantiles(rounds.all);
  // Without the rounds in which the machine took a core away, where the kernel tells.
  if (!rounds.undisturbed.empty()) json.set("undisturbed", quantiles(rounds.undisturbed));
  return json;
}

std::string as_json(const BenchTransducerArguments& arguments, int threads, const Figures& figures) {
  Json json;
  json.set("precision", arguments.precision).set("threads", threads).set("load_ms", figures.load_ms);
  if (arguments.real_time) {
    json.set("seconds", static_cast<double>(arguments.seconds)).set("real_time", trials_json(figures));
  } else if (arguments.stream) {
    json.set("streams", arguments.streams).set("chunk_ms", figures.chunk_ms);
    json.set("chunk", rounds_json(figures.chunk)).set("empty", rounds_json(figures.empty));
  } else {
    json.set("audio_seconds", figures.sound_s);
    json.set("features", quantiles(figures.features)).set("encode", quantiles(figures.encode));
    if (arguments.labels) json.set("decode", quantiles(figures.decode)).set("labels", figures.labels);
    json.set("rtf", recording_rtf(figures));
  }
  json.set("peak_rss_bytes", peak_rss_bytes()).set("cpu", cpu_info().model);
  json.set("target", kernels::chosen_target_name());
  return json.dump() + "\n";
}

std::string as_text(const BenchTransducerArguments& arguments, int threads, const Figures& figures) {
  std::string text =
      fmt::format("machine  {}, {} cores, {}\nbuild    {} ({}, {}), {}\n", cpu_info().model, cpu_info().logical_cores,
                  kernels::describe_chosen_target(), version(), commit(), build_type(), compiler());
  text += fmt::format("work     {}, {} threads, load {:.0f} ms, peak memory {:.0f} MB\n\n", arguments.precision,
                      threads, figures.load_ms, static_cast<double>(peak_rss_bytes()) * 1e-6);
  if (arguments.real_time) return text + trials_text(figures);
  text += fmt::format("{:<14}{:>9} {:>9} {:>9} {:>9}\n", "", "p50", "p99", "p99.9", "max");
  if (arguments.stream) {
    text += row("chunk", figures.chunk.all) + row("empty loop", figures.empty.all);
    // Without the rounds in which the machine took a core away, where the kernel tells.
    if (!figures.chunk.undisturbed.empty()) text += row("  undisturbed", figures.chunk.undisturbed);
    if (!figures.empty.undisturbed.empty()) text += row("  undisturbed", figures.empty.undisturbed);
    return text + fmt::format("\n{} streams, chunks of {:.0f} ms: {:.3f} of real time\n", arguments.streams,
                              figures.chunk_ms, figures.chunk.all.median() / figures.chunk_ms);
  }
  text += row("features", figures.features) + row("encoder", figures.encode);
  if (arguments.labels) text += row("decoder", figures.decode) + fmt::format("\n{} labels", figures.labels);
  return text + fmt::format("\n{:.1f} s of sound: time / sound {:.4f}\n", figures.sound_s, recording_rtf(figures));
}

Status run_bench_transducer(const BenchTransducerArguments& arguments) {
  if (arguments.threads < 0 || arguments.threads > 64 || arguments.runs < 1 || arguments.runs > 1000 ||
      arguments.chunks < 1 || arguments.chunks > 1000000 || arguments.streams < (arguments.real_time ? 0 : 1) ||
      arguments.streams > static_cast<int>(kMostStreams) || !(arguments.seconds > 0 && arguments.seconds <= 3600))
    return fail(Code::kInvalidArgument,
                "give at most 64 threads, 1000 runs, 1000000 chunks, 256 streams and 3600 seconds, and at least one");
  SYRINX_TRY(const Precision precision, parse_precision(arguments.precision));
  const int threads = arguments.threads == 0 ? default_threads() : arguments.threads;
  Figures figures;
  const Stopwatch watch;
  ThreadTeam packers(default_threads());
  SYRINX_TRY(const auto model,
             transducer::Model::load(arguments.model,
                                     {.precision = precision, .cache_folder = arguments.cache, .team = &packers}));
  figures.load_ms = watch.elapsed_ms();
  ThreadTeam team(threads);
  const auto measure = arguments.real_time ? measure_deadlines : arguments.stream ? measure_stream : measure_recording;
  SYRINX_TRY_VOID(measure(*model, arguments, team, figures));
  return cli::print(arguments.json ? as_json(arguments, threads, figures) : as_text(arguments, threads, figures));
}

}  // namespace

void add_bench_transducer(cli::Command& bench) {
  auto arguments = std::make_shared<BenchTransducerArguments>();
  cli::Command command = bench.add("transducer", "Time the encoder of a FastConformer model");
  command.option("--model", arguments->model, "A .nemo file, or a folder of one").type("PATH").required();
  command.option("--precision", arguments->precision, "Arithmetic of the large matrices")
      .one_of({"int8", "bf16", "f32"})
      .show_default();
  command.option("--cache", arguments->cache, "A folder for packed weights; none is kept by default").type("FOLDER");
  command.option("--threads", arguments->threads, "Threads; 0: the default of transcribe").type("N").show_default();
  command.option("--seconds", arguments->seconds, "Length of the recording, or of each stream in real time")
      .type("S")
      .show_default();
  command.option("--recording", arguments->recording, "This sound, whole, instead of --seconds of noise").type("FILE");
  command.option("--runs", arguments->runs, "Runs that are counted, after one that is not").type("N").show_default();
  command.flag("--stream", arguments->stream, "Chunks of streams instead of a whole recording");
  command
      .option("--look-ahead", arguments->look_ahead, "Frames that a stream looks ahead; -1: the model's first choice")
      .type("N");
  command.flag("--real-time", arguments->real_time,
               "Streams whose chunks come at the pace of speech for --seconds, each due before its next one");
  command.flag("--labels", arguments->labels,
               "Also decode. In real time: what the model finds in noise; else blanks win, as random weights find "
               "labels everywhere");
  command
      .option("--streams", arguments->streams, "Streams in a step; with --real-time 0 finds how many miss no deadline")
      .type("N")
      .show_default();
  command.option("--chunks", arguments->chunks, "Chunks that are counted, after 100 that are not")
      .type("N")
      .show_default();
  command.flag("--json", arguments->json, "One JSON object on one line");
  command.examples(
      "  syrinx bench transducer --model parakeet-tdt_ctc-110m.nemo --seconds 60\n"
      "  syrinx bench transducer --model streaming.nemo --stream --look-ahead 0 --threads 2 --chunks 10000\n"
      "  syrinx bench transducer --model streaming.nemo --real-time --streams 0 --threads 2 --seconds 5");
  command.run([arguments] { return run_bench_transducer(*arguments); });
}

}  // namespace syrinx::bench
