#include "bench/suite/bench_steps.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "audio/decode/recording.h"
#include "audio/resample.h"
#include "base/clock.h"
#include "base/cpu_info.h"
#include "base/json.h"
#include "base/mapped_file.h"
#include "base/signals.h"
#include "base/version.h"
#include "bench/suite/step_probe.h"
#include "cli/output.h"
#include "engine/families/families.h"
#include "engine/families/find_recognition_files.h"
#include "engine/families/find_speech_files.h"
#include "engine/schedule/compute.h"
#include "engine/threads.h"
#include "kernels/describe_targets.h"
#include "store/paths.h"

namespace syrinx::bench {
namespace {

constexpr int kMaxRuns = 1000;
// The machine by itself: jobs of a length that is known.
constexpr int kMachineJobs = 500;
constexpr double kMachineJobMs = 1;
// About 12 s of speech, of which a family makes one long piece of text if it makes pieces.
constexpr const char* kText =
    "The little boat went out of the harbour early in the morning, passed the lighthouse at the end of the long pier, "
    "and was seen by nobody until the evening, when it came back with the tide, its sails torn and its deck white with "
    "salt.";

struct Arguments {
  std::string speech, recognition, voice, recording, text = kText, precision;
  int threads = 0;
  int runs = 5;
  bool json = false;
};

// One kind of work, and the steps of all its runs.
struct Row {
  std::string name;
  Times steps;    // of all runs
  Times longest;  // the longest step of each run
};

class Suite {
 public:
  Suite(const Arguments& arguments, std::shared_ptr<Compute> compute)
      : arguments_(arguments), compute_(std::move(compute)) {}

  // Runs the work as often as is asked for, a probe beside it.  `prepare` comes before each run, without one.
  Status measure(const std::string& name, const std::function<Status()>& work,
                 const std::function<Status()>& prepare = {});
  // Jobs of 1 ms of all threads: what lasts longer, the machine has taken.
  Status measure_machine();
  Status measure_speech();
  Status measure_recognition();
  const std::vector<Row>& rows() const { return rows_; }

 private:
  Result<std::shared_ptr<SpeechEngine>> load_speech(const UserPaths& paths) const;
  Status speak(SpeechEngine& engine, const std::string& voice) const;
  Status transcribe(Recogniser& recogniser, std::span<const float> sound) const;
  Status hear_stream(Recogniser& recogniser, std::span<const float> sound) const;

  const Arguments& arguments_;
  const std::shared_ptr<Compute> compute_;
  std::vector<Row> rows_;
};

Status Suite::measure(const std::string& name, const std::function<Status()>& work,
                      const std::function<Status()>& prepare) {
  Row row{.name = name, .steps = {}, .longest = {}};
  for (int run = 0; run < arguments_.runs; ++run) {
    if (cancel_requested()) return fail(Code::kCancelled, "stopped while measuring; the figures are not complete");
    if (prepare) SYRINX_TRY_VOID(prepare());
    StepProbe probe(compute_->scheduler());
    SYRINX_TRY_VOID(work());
    const Times waits = probe.stop();
    for (const double ms : waits.values()) row.steps.add(ms);
    row.longest.add(waits.empty() ? 0 : waits.max());
  }
  row.steps.sort();
  row.longest.sort();
  rows_.push_back(std::move(row));
  return {};
}

Status Suite::measure_machine() {
  ThreadTeam team = compute_->team(arguments_.threads);
  StepQueue queue(compute_->scheduler());
  return measure("jobs of 1 ms", [&]() -> Status {
    StepQueue::Turn turn(queue);
    for (int job = 0; job < kMachineJobs; ++job) {
      team.run([](int) {
        for (const Stopwatch watch; watch.elapsed_ms() < kMachineJobMs;) {
        }
      });
      turn.give_way();
    }
    return {};
  });
}

std::optional<Precision> precision_of(const std::string& name) {
  const auto precision = parse_precision(name);
  return precision ? std::optional(*precision) : std::nullopt;
}

Result<std::shared_ptr<SpeechEngine>> Suite::load_speech(const UserPaths& paths) const {
  SpeechEngineOptions options;
  SYRINX_TRY(options.files, find_speech_files(arguments_.speech, models_folder(paths)));
  options.precision = precision_of(arguments_.precision);
  options.threads = arguments_.threads;
  options.cache_folder = packed_folder(paths, options.files);
  options.first_voice = arguments_.voice;
  options.compute = compute_;
  return load_speech_engine(std::move(options));
}

Status Suite::speak(SpeechEngine& engine, const std::string& voice) const {
  SpeakOptions options;
  options.voice = voice;
  SYRINX_TRY(const auto session, engine.start(options));
  SYRINX_TRY_VOID(session->speak(arguments_.text));
  for (SpeechChunk chunk;;) {
    SYRINX_TRY(const bool more, session->next(chunk));
    if (!more) return {};
  }
}

Status Suite::measure_speech() {
  SYRINX_TRY(const UserPaths paths, user_paths());
  std::shared_ptr<SpeechEngine> engine;
  SYRINX_TRY_VOID(measure(
      "load a model",
      [&]() -> Status {
        SYRINX_TRY(engine, load_speech(paths));
        return {};
      },
      [&]() -> Status {
        engine.reset();
        return {};
      }));
  SYRINX_TRY_VOID(speak(*engine, arguments_.voice));  // warms memory
  SYRINX_TRY_VOID(measure("speak a text", [&] { return speak(*engine, arguments_.voice); }));
  if (!engine->clones() || arguments_.recording.empty()) return {};
  SYRINX_TRY(const MappedFile file, MappedFile::open(arguments_.recording));
  SYRINX_TRY_VOID(measure("clone a voice", [&] { return engine->add_voice("probe", file.bytes()); }));
  std::string exported;
  SYRINX_TRY_VOID(measure("export a voice", [&]() -> Status {
    SYRINX_TRY(exported, engine->export_voice("probe"));
    return {};
  }));
  const auto content = std::as_bytes(std::span(exported));
  return measure("read an exported voice", [&] { return engine->add_voice("again", content); });
}

Status Suite::transcribe(Recogniser& recogniser, std::span<const float> sound) const {
  TranscribeOptions options;
  options.words = true;
  SYRINX_TRY(const Transcript transcript, recogniser.transcribe(sound, options, {}));
  return {};
}

Status Suite::hear_stream(Recogniser& recogniser, std::span<const float> sound) const {
  constexpr size_t kPush = kRecognitionRateHz / 10;
  TranscribeOptions options;
  options.words = true;
  SYRINX_TRY(const auto stream, recogniser.start(options));
  std::vector<RecognitionEvent> events;
  for (; !sound.empty(); sound = sound.subspan(std::min(kPush, sound.size()))) {
    events.clear();
    SYRINX_TRY_VOID(stream->push(sound.first(std::min(kPush, sound.size())), events));
  }
  return stream->finish(events);
}

Status Suite::measure_recognition() {
  if (arguments_.recording.empty())
    return fail(Code::kInvalidArgument, "--recognition needs a recording; give one with --recording");
  SYRINX_TRY(const UserPaths paths, user_paths());
  SYRINX_TRY(const Recording recording, read_recording(arguments_.recording));
  SYRINX_TRY(const std::vector<float> sound, resample(recording.samples, recording.rate_hz, kRecognitionRateHz));
  RecogniserOptions options;
  SYRINX_TRY(options.files, find_recognition_files(arguments_.recognition, models_folder(paths)));
  options.precision = precision_of(arguments_.precision);
  options.threads = arguments_.threads;
  options.cache_folder = packed_folder(paths, options.files);
  options.compute = compute_;
  options.warm_up = true;
  std::shared_ptr<Recogniser> recogniser;
  SYRINX_TRY_VOID(measure(
      "load and warm up",
      [&]() -> Status {
        SYRINX_TRY(recogniser, load_recogniser(options));
        return {};
      },
      [&]() -> Status {
        recogniser.reset();
        return {};
      }));
  SYRINX_TRY_VOID(measure("transcribe a recording", [&] { return transcribe(*recogniser, sound); }));
  return measure("hear a stream", [&] { return hear_stream(*recogniser, sound); });
}

std::string as_json(const std::vector<Row>& rows, const Arguments& arguments) {
  Json::Array works;
  for (const Row& row : rows) {
    Json work;
    work.set("work", row.name).set("steps", row.steps.size());
    if (!row.steps.empty()) work.set("p50_ms", row.steps.median()).set("p99_ms", row.steps.at(0.99));
    work.set("longest_ms", row.longest.max()).set("longest_of_a_run_ms", row.longest.median());
    works.push_back(std::move(work));
  }
  Json json;
  json.set("works", std::move(works)).set("threads", arguments.threads).set("n", arguments.runs);
  json.set("cpu", cpu_info().model).set("target", kernels::describe_chosen_target());
  json.set("build", fmt::format("{} {} {} {}", version(), commit(), build_type(), compiler()));
  return json.dump() + "\n";
}

std::string as_text(const std::vector<Row>& rows, const Arguments& arguments) {
  std::string text =
      fmt::format("machine  {}, {} cores, {}\nbuild    {} ({}, {}), {}\n", cpu_info().model, cpu_info().logical_cores,
                  kernels::describe_chosen_target(), version(), commit(), build_type(), compiler());
  text += fmt::format("work     {} threads, n = {}; longest: the median and the greatest of the runs\n\n{:<26}{:>8}",
                      arguments.threads, arguments.runs, "steps, ms", "n");
  text += fmt::format("{:>9}{:>9}{:>9}{:>9}\n", "p50", "p99", "longest", "most");
  for (const Row& row : rows) {
    text += fmt::format("{:<26}{:>8}", row.name, row.steps.size());
    text += row.steps.empty() ? fmt::format("{:>18}", "")
                              : fmt::format("{:>9.2f}{:>9.2f}", row.steps.median(), row.steps.at(0.99));
    text += fmt::format("{:>9.2f}{:>9.2f}\n", row.longest.median(), row.longest.max());
  }
  return text;
}

Status run_bench_steps(Arguments arguments) {
  if (arguments.runs < 1 || arguments.runs > kMaxRuns || arguments.threads < 0 || arguments.threads > 64)
    return fail(Code::kInvalidArgument, "{} runs with {} threads: give 1 to {} runs and at most 64 threads",
                arguments.runs, arguments.threads, kMaxRuns);
  if (arguments.speech.empty() == arguments.recognition.empty())
    return fail(Code::kInvalidArgument, "give either --speech or --recognition, a model each");
  if (arguments.threads == 0) arguments.threads = default_threads();
  Suite suite(arguments, std::make_shared<Compute>());
  SYRINX_TRY_VOID(suite.measure_machine());
  SYRINX_TRY_VOID(arguments.speech.empty() ? suite.measure_recognition() : suite.measure_speech());
  return cli::print(arguments.json ? as_json(suite.rows(), arguments) : as_text(suite.rows(), arguments));
}

}  // namespace

void add_bench_steps(cli::Command& bench) {
  auto a = std::make_shared<Arguments>();
  cli::Command command = bench.add("steps", "Time for how long each kind of work keeps a live frame waiting");
  command.option("--speech", a->speech, "A model that speaks").type("MODEL");
  command.option("--recognition", a->recognition, "A model that transcribes").type("MODEL");
  command.option("--voice", a->voice, "Voice of the text").type("VOICE");
  command.option("--recording", a->recording, "What is transcribed, or cloned where the model does").type("FILE");
  command.option("--text", a->text, "What is spoken; one long sentence by default").type("TEXT");
  command.option("--precision", a->precision, "Arithmetic; the model's own by default")
      .one_of({"f32", "bf16", "int8", "int4"});
  command.option("--threads", a->threads, "Threads; 0: the default of speak").type("N").show_default();
  command.option("--runs", a->runs, "Runs of each kind of work").type("N").show_default();
  command.flag("--json", a->json, "One JSON object on one line");
  command.examples(
      "  syrinx bench steps --speech kokoro\n"
      "  syrinx bench steps --recognition whisper-base --recording me.wav --json");
  command.run([a] { return run_bench_steps(*a); });
}

}  // namespace syrinx::bench
