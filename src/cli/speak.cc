// syrinx speak: text to a file, to standard output or to the loudspeaker, through the installed library's interface.
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/signals.h"
#include "base/watched_file.h"
#include "cli/command.h"
#include "cli/dry_run.h"
#include "cli/knob_flags.h"
#include "cli/library.h"
#include "cli/output.h"
#include "cli/remote_parts.h"
#include "cli/speak_output.h"
#include "cli/text_feed.h"
#include "engine/families/default_models.h"
#include "engine/families/find_speech_files.h"
#include "engine/speech/finish_reason.h"
#include "engine/speech/speech_family.h"
#include "engine/speech/speech_files.h"
#include "store/paths.h"
#include "syrinx/engine.hpp"

namespace syrinx::cli {
namespace {

constexpr double kShowEveryMs = 100;

struct SpeakArguments {
  std::vector<std::string> text;
  std::string model;
  std::string voice;
  std::vector<std::string> cast;  // NAME=FILE
  std::string precision;
  std::string times;
  OutputOptions output;
  uint64_t seed = 0;
  int threads = 0;
  bool plain = false;
  bool json = false;
  bool dry_run = false;
  KnobFlags knobs{speech_knobs()};
};

bool from_standard_input(const SpeakArguments& arguments) {
  return arguments.text.empty() || (arguments.text.size() == 1 && arguments.text[0] == "-");
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

// Whether --cast gives a file that name.
bool is_cast(const SpeakArguments& arguments, const std::string& name) {
  return std::any_of(arguments.cast.begin(), arguments.cast.end(),
                     [&](const std::string& member) { return member.starts_with(name + "="); });
}

Status load(const SpeakArguments& arguments, Engine& engine) {
  LoadOptions options;
  if (!arguments.model.empty()) options.model = arguments.model.c_str();
  const Knobs given = arguments.knobs.given(Knob::Use::kLoad);
  const auto dictionary = given.text("dictionary"), lexicon = given.text("lexicon");
  if (dictionary) options.dictionary = dictionary->c_str();
  if (lexicon) options.lexicon = lexicon->c_str();
  // Names from --cast exist only after the model is loaded.
  if (!arguments.voice.empty() && !is_cast(arguments, arguments.voice)) options.voice = arguments.voice.c_str();
  options.precision = library_precision(arguments.precision);
  options.threads = arguments.threads;
  options.phonemes_only = arguments.knobs.given(Knob::Use::kRequest).flag("phonemes") ? 1 : 0;
  return to_status(engine.load(options), engine);
}

// The voices that marks of the text may name besides the installed ones.
Status add_cast(const SpeakArguments& arguments, Engine& engine) {
  for (const std::string& member : arguments.cast) {
    const size_t equals = member.find('=');
    if (equals == std::string::npos)
      return fail(Code::kInvalidArgument, "--cast '{}' names no file; give NAME=FILE, say ann=ann.wav", member);
    SYRINX_TRY(const WatchedFile file, WatchedFile::open(member.substr(equals + 1)));
    const auto bytes = file.bytes();
    const std::string_view content(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    const Status added = to_status(engine.add_voice(member.substr(0, equals).c_str(), content), engine);
    SYRINX_TRY_VOID(file.check_all());
    SYRINX_TRY_VOID(added);
  }
  return {};
}

Result<Session> start(const SpeakArguments& arguments, Engine& engine) {
  VoiceOptions options;
  if (!arguments.voice.empty()) options.voice = arguments.voice.c_str();
  options.seed = arguments.seed;
  options.plain = arguments.plain ? 1 : 0;
  const Knobs knobs = arguments.knobs.given(Knob::Use::kRequest);
  for (const auto& [name, value] : knobs.entries()) {
    const double* const number = std::get_if<double>(&value);
    const std::string* const text = std::get_if<std::string>(&value);
    if (number != nullptr && options.set_option(name.c_str(), *number) != SYRINX_OK)
      return fail(Code::kLimitExceeded, "too many options; leave '{}' out", name);
    if (text != nullptr && options.set_option(name.c_str(), text->c_str()) != SYRINX_OK)
      return fail(Code::kLimitExceeded, "too many options; leave '{}' out", name);
  }
  Session session;
  SYRINX_TRY_VOID(to_status(engine.start(options, session), engine));
  return session;
}

// When each word is heard, for subtitles and karaoke: one JSON object a line.
class TimesFile {
 public:
  static Result<TimesFile> open(const std::string& path) {
    TimesFile times;
    if (path == "-") times.to_ = To::kStandardOutput;
    if (path.empty() || path == "-") return times;
    SYRINX_TRY(times.file_, ScopedFile::create(path));
    times.to_ = To::kFile;
    return times;
  }
  Status write(const syrinx_chunk& chunk) {
    std::string lines;
    for (size_t i = 0; i < chunk.word_count; ++i) {
      const syrinx_word& word = chunk.words[i];
      Json line;
      line.set("word", word.text);
      line.set("start_s", word.start_s);
      line.set("end_s", word.end_s);
      line.set("source_begin", word.source_begin);
      line.set("source_end", word.source_end);
      lines += line.dump() + "\n";
    }
    if (to_ == To::kStandardOutput) return print(lines);
    return to_ == To::kFile ? file_.write(lines) : Status();
  }
  Status commit() { return to_ == To::kFile ? file_.commit() : Status(); }

 private:
  enum class To { kNowhere, kFile, kStandardOutput };
  ScopedFile file_;
  To to_ = To::kNowhere;
};

const char* finish_reason(const Statistics& statistics) {
  FinishCounts finished;
  finished.add(FinishReason::kLength, statistics.limited_pieces);
  finished.add(FinishReason::kSilence, statistics.silent_pieces);
  finished.add(FinishReason::kRepeats, statistics.repeating_pieces);
  return finish_reason_name(finished.worst());
}

std::string figures(const SpeakArguments& arguments, const syrinx_engine_facts& facts, const Statistics& statistics) {
  Json json;
  json.set("model", facts.model);
  json.set("voice", arguments.voice.empty() ? facts.default_voice : arguments.voice.c_str());
  json.set("precision", facts.precision);
  json.set("threads", facts.threads);
  json.set("load_ms", facts.load_ms);
  json.set("first_audio_ms", statistics.first_audio_ms);
  json.set("total_ms", statistics.total_ms);
  json.set("audio_seconds", statistics.audio_seconds);
  json.set("rtf", statistics.rtf);
  json.set("finish_reason", finish_reason(statistics));
  json.set("retried_pieces", statistics.retried_pieces);
  json.set("measured_pieces", statistics.measured_pieces);
  json.set("uneven_rate_pieces", statistics.uneven_rate_pieces);
  json.set("uneven_loudness_pieces", statistics.uneven_loudness_pieces);
  const bool is_measured = statistics.greatest_rate > 0;
  json.set("least_rate", is_measured ? Json(statistics.least_rate) : Json());
  json.set("greatest_rate", is_measured ? Json(statistics.greatest_rate) : Json());
  json.set("least_loudness_db", is_measured ? Json(statistics.least_loudness_db) : Json());
  json.set("greatest_loudness_db", is_measured ? Json(statistics.greatest_loudness_db) : Json());
  json.set("peak_rss_bytes", static_cast<int64_t>(peak_rss_bytes()));
  return json.dump() + "\n";
}

double times_real_time(const Statistics& statistics) { return statistics.rtf > 0 ? 1 / statistics.rtf : 0; }

// The figures for programs, or a line for people; and what could not be said.
Status tell(const SpeakArguments& arguments, const SpeechOutput& output, const syrinx_engine_facts& facts,
            const Statistics& statistics) {
  const bool stdout_taken = arguments.output.file == "-" || arguments.times == "-";
  if (!arguments.json || !stdout_taken) {
    if (statistics.dropped_characters > 0)
      note(fmt::format("note: {} characters of the text cannot be spoken and were left out",
                       statistics.dropped_characters));
    if (statistics.unknown_phonemes > 0)
      note(fmt::format("note: {} phonemes are not in the alphabet and were left out", statistics.unknown_phonemes));
    for (const auto& [pieces, why] : {std::pair(statistics.limited_pieces, "at their limit of time"),
                                      {statistics.silent_pieces, "since the model was silent and did not end them"},
                                      {statistics.repeating_pieces, "since the model repeated itself"}})
      if (pieces > 0)
        note(fmt::format("note: {} of {} chunks of the text were cut {}; try another --seed", pieces, statistics.pieces,
                         why));
    if (statistics.retried_pieces > 0)
      note(fmt::format("note: {} of {} chunks of the text were spoken once more with other draws",
                       statistics.retried_pieces, statistics.pieces));
    for (const auto& [pieces, how] : {std::pair(statistics.uneven_rate_pieces, "faster or slower"),
                                      {statistics.uneven_loudness_pieces, "louder or quieter"}})
      if (pieces > 0)
        note(fmt::format("note: {} of {} chunks of the text are much {} than those before", pieces, statistics.pieces,
                         how));
  }
  if (arguments.json) {
    const std::string line = figures(arguments, facts, statistics);
    if (!stdout_taken) return print(line);
    return ::write(STDERR_FILENO, line.data(), line.size()) < 0 ? fail(Code::kIo, "cannot write to standard error")
                                                                : Status();
  }
  if (is_terminal(STDERR_FILENO))
    note(fmt::format("{:.1f} s of speech to {}, {:.1f} times faster than real time, first audio after {:.0f} ms",
                     statistics.audio_seconds, output.where(), times_real_time(statistics), statistics.first_audio_ms));
  return {};
}

Status speak_all(const SpeakArguments& arguments, Session& session, SpeechOutput& output) {
  const bool standard_input = from_standard_input(arguments);
  TextFeed feed(session, standard_input ? STDIN_FILENO : TextFeed::kNoText);
  if (!standard_input) SYRINX_TRY_VOID(to_status(session.speak(joined(arguments.text)), session));
  SYRINX_TRY(TimesFile times, TimesFile::open(arguments.times));
  StatusLine line(arguments.json);
  Stopwatch since_shown;
  for (bool first = true;; first = false) {
    syrinx_chunk chunk;
    const syrinx_code code = session.next(chunk);
    SYRINX_TRY_VOID(feed.status());
    if (code != SYRINX_OK) return to_status(code, session);
    if (chunk.samples == nullptr) break;
    SYRINX_TRY_VOID(output.write({chunk.samples, chunk.sample_count}, cancel_flag()));
    SYRINX_TRY_VOID(times.write(chunk));
    if (first) give_back_unused_pages();  // the text's front end and the prompt are behind
    // Frames come faster than anybody reads.
    if (since_shown.elapsed_ms() < kShowEveryMs) continue;
    since_shown.restart();
    const Statistics so_far = session.statistics();
    line.show(fmt::format("{:.1f} s of speech, {:.1f} times faster than real time", so_far.audio_seconds,
                          times_real_time(so_far)));
  }
  SYRINX_TRY_VOID(output.finish(cancel_flag()));
  return times.commit();
}

// Before the model is loaded, which takes longer.
Status check(const SpeakArguments& arguments, const SpeechFamily& family) {
  for (const Knob::Use use : {Knob::Use::kLoad, Knob::Use::kRequest})
    SYRINX_TRY_VOID(check_knobs(arguments.knobs.given(use), family, KnobNames::kFlags));
  if (arguments.times.empty() || family.traits.word_times) return {};
  return fail(Code::kUnsupported, "{} does not tell when a word is heard; leave --times out", family.title);
}

Status run_dry(const SpeakArguments& arguments) {
  DryRun dry{.model = arguments.model,
             .voice = arguments.voice,
             .load = arguments.knobs.given(Knob::Use::kLoad),
             .request = arguments.knobs.given(Knob::Use::kRequest),
             .plain = arguments.plain,
             .text = {}};
  if (!from_standard_input(arguments)) dry.text = joined(arguments.text);
  return dry_run(dry);
}

Status run_speak(const SpeakArguments& arguments) {
  if (arguments.text.empty() && is_terminal(STDIN_FILENO))
    return fail(Code::kInvalidArgument, "no text was given; write it behind `syrinx speak`, or `-` to type it");
  if (arguments.dry_run) return run_dry(arguments);
  if (!arguments.times.empty() && arguments.times == arguments.output.file)
    return fail(Code::kInvalidArgument, "--out and --times both go to {}; give each a file of its own",
                arguments.times == "-" ? "the standard output" : "'" + arguments.times + "'");
  SYRINX_TRY_VOID(fetch_in_sight(arguments.model, arguments.voice, arguments.json));
  SYRINX_TRY(const UserPaths paths, user_paths());
  SYRINX_TRY(const SpeechFiles files, find_speech_files(arguments.model, models_folder(paths)));
  SYRINX_TRY_VOID(check(arguments, *files.family));
  SYRINX_TRY(const std::unique_ptr<SpeechOutput> output,
             SpeechOutput::open(arguments.output, files.family->traits.rate_hz));
  Engine engine;
  give_back_unused_pages();  // some sixty libraries have been bound
  SYRINX_TRY_VOID(load(arguments, engine));
  give_back_unused_pages();
  SYRINX_TRY_VOID(add_cast(arguments, engine));
  SYRINX_TRY(Session session, start(arguments, engine));
  Status status = speak_all(arguments, session, *output);
  if (!status) {
    // The piece in work is not waited for: main() ends the process without touching what its thread uses.
    if (status.error().code == Code::kCancelled) session.release();
    return status;
  }
  return tell(arguments, *output, engine.facts(), session.statistics());
}

void add_model_options(Command& command, SpeakArguments& arguments) {
  command
      .option("--model", arguments.model,
              (std::string("Name of an installed model, a path, or hf:// or https:// to a configuration; ") +
               kDefaultModel + " by default")
                  .c_str())
      .type("NAME|PATH");
  command
      .option("--precision", arguments.precision,
              "Arithmetic of the model, as far as its family has it; int8 by default")
      .one_of(kPrecisions);
  command.option("--threads", arguments.threads, "Threads to compute with; 0: as many as there are cores, up to 8")
      .type("N")
      .show_default();
}

void add_voice_options(Command& command, SpeakArguments& arguments) {
  command
      .option("--voice", arguments.voice,
              "A voice's name or file; where the family has them, a blend such as af_heart:0.6+am_adam:0.4, or a "
              "recording, which is cloned")
      .type("VOICE");
  command
      .option("--cast", arguments.cast,
              "A voice's file under a name that [voice: NAME] in the text calls; may be given several times")
      .type("NAME=FILE");
  command.flag("--plain", arguments.plain, "The text holds no marks: [pause:1s] and [voice: NAME] are read out");
  command.option("--seed", arguments.seed, "Seed of the noise: the same seed gives the same samples")
      .type("N")
      .show_default();
}

void add_output_options(Command& command, SpeakArguments& arguments) {
  command.option("-o,--out", arguments.output.file, "Write the audio to this file; - is standard output").type("FILE");
  command.option("--format", arguments.output.format, "By default told by the file's ending, else wav")
      .one_of({"wav", "pcm", "flac", "opus", "mp3", "aac"});
  command.flag("--play", arguments.output.play, "Play on the loudspeaker; the default without --out");
  command
      .option("--times", arguments.times,
              "Write the times of the words to this file, one JSON object a line; - is standard output")
      .type("FILE");
  command.flag("--json", arguments.json, "Print the figures as one JSON object on one line");
  command.flag("--dry-run", arguments.dry_run,
               "Print how the text would be read out, one JSON object a sentence; loads the lexicon alone");
}

}  // namespace

void add_speak(Command& tree) {
  auto arguments = std::make_shared<SpeakArguments>();
  Command command = tree.add("speak", "Speak text, as it arrives");
  command.option("text", arguments->text, "Text to speak; - or nothing reads standard input").type("TEXT");
  add_output_options(command, *arguments);
  add_voice_options(command, *arguments);
  arguments->knobs.add(command);
  add_model_options(command, *arguments);
  command.examples(
      "  syrinx speak \"Hello, world.\" --play\n"
      "  syrinx speak \"Hello, world.\" --out hello.wav --json\n"
      "  cat book.txt | syrinx speak - --voice bf_emma --out book.opus\n"
      "  syrinx speak \"[Syrinx](/sˈɪɹɪŋks/) speaks.\" --out - | aplay\n"
      "  syrinx speak --model models/english --voice me.wav \"In my own voice.\" --play\n"
      "  syrinx speak \"One moment. [pause:1.5s] [voice: am_adam] Here I am.\" --play\n"
      "  syrinx speak --model models/english --cast ann=ann.wav --cast bob=bob.wav - < dialogue.txt --out "
      "dialogue.flac\n"
      "  syrinx speak --dry-run 'Dr. Smith owes $5.'\n"
      "  syrinx speak --phonemes \"həlˈO wˈɜɹld.\" --speed 0.9 --out slow.flac");
  command.run([arguments] { return run_speak(*arguments); });
}

}  // namespace syrinx::cli
