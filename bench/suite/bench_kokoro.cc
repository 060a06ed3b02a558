#include "bench/suite/bench_kokoro.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/cpu_info.h"
#include "base/json.h"
#include "base/mapped_file.h"
#include "base/memory.h"
#include "base/signals.h"
#include "base/thread_team.h"
#include "base/version.h"
#include "cli/output.h"
#include "engine/families/find_speech_files.h"
#include "engine/families/kokoro/kokoro_family.h"
#include "engine/families/kokoro/lexicon_files.h"
#include "engine/speech/speech_engine.h"
#include "engine/speech/speech_files.h"
#include "engine/threads.h"
#include "kernels/describe_targets.h"
#include "models/kokoro/model.h"
#include "models/kokoro/pieces.h"
#include "models/kokoro/vocabulary.h"
#include "models/kokoro/voice.h"
#include "store/paths.h"
#include "text/speech/split.h"

namespace syrinx::bench {
namespace {

struct BenchKokoroArguments {
  std::string model;
  std::string voice = kDefaultVoice;
  std::string voice_file;
  std::string text;
  std::string phonemes;
  std::string precision = "int8";
  int threads = 0;
  int runs = 7;
  float speed = 1.0f;
  bool without_cache = false;
  bool json = false;
};

struct Figures {
  std::vector<double> rtf, first_ms, total_ms;  // one a run
  double load_ms = 0;
  double audio_seconds = 0;
  size_t pieces = 0;
  size_t ids = 0;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}
double smallest(const std::vector<double>& values) { return *std::min_element(values.begin(), values.end()); }
double largest(const std::vector<double>& values) { return *std::max_element(values.begin(), values.end()); }

// Phonemes are one piece (cut only where the model's limit asks for it); text is cut as `speak` would.
Result<std::vector<g2p::Phonemized>> plan(const BenchKokoroArguments& arguments, const SpeechFiles& files,
                                          const std::string& cache_folder) {
  if (!arguments.phonemes.empty()) {
    g2p::Phonemized whole;
    whole.phonemes = arguments.phonemes;
    whole.words.push_back({{0, whole.phonemes.size()}, {0, whole.phonemes.size()}, g2p::WordKind::kEscape});
    return kokoro::split_for_model(whole);
  }
  g2p::G2pFiles lexicon = lexicon_files(files.lexicon, arguments.voice.starts_with('b'));
  lexicon.cache_dir = cache_folder;
  SYRINX_TRY(const auto front_end, g2p::EnglishG2p::load(lexicon));
  std::vector<g2p::Phonemized> sentences;
  for (const text::Range range : text::split_sentences(arguments.text)) {
    SYRINX_TRY(g2p::Phonemized sentence,
               front_end->phonemize(std::string_view(arguments.text).substr(range.begin, range.size()), range.begin));
    sentences.push_back(std::move(sentence));
  }
  return kokoro::plan_pieces(sentences);
}

Result<Figures> measure(const BenchKokoroArguments& arguments, int threads) {
  SYRINX_TRY(const UserPaths paths, user_paths());
  SYRINX_TRY(const SpeechFiles files, find_speech_files(arguments.model, models_folder(paths)));
  const std::string cache_folder = arguments.without_cache ? std::string() : packed_folder(paths, files);
  SYRINX_TRY(const std::vector<g2p::Phonemized> pieces, plan(arguments, files, cache_folder));
  if (pieces.empty()) return fail(Code::kInvalidArgument, "there is nothing to say; give --text or --phonemes");

  Figures figures;
  const Stopwatch load_watch;
  SYRINX_TRY(MappedFile file, MappedFile::open(files.checkpoint));
  const auto precision = arguments.precision == "f32" ? kokoro::Precision::kF32 : kokoro::Precision::kInt8;
  SYRINX_TRY(const auto model,
             kokoro::Model::load(std::move(file), {.precision = precision, .cache_dir = cache_folder}));
  figures.load_ms = load_watch.elapsed_ms();
  const std::string& voice_name = arguments.voice_file.empty() ? arguments.voice : arguments.voice_file;
  SYRINX_TRY(const kokoro::Voice voice, kokoro::load_voice(files.voices, voice_name, model->style_width()));

  ThreadTeam team(threads);
  kokoro::Synthesizer synthesizer(model, team);
  kokoro::PieceOutput output;
  // The first run warms caches and memory and is not counted.
  for (int run = 0; run <= arguments.runs; ++run) {
    const Stopwatch watch;
    double first_ms = 0;
    size_t samples = 0;
    figures.ids = 0;
    for (const g2p::Phonemized& piece : pieces) {
      if (cancel_requested()) return fail(Code::kCancelled, "stopped");
      const kokoro::Tokens tokens = kokoro::tokenize(piece.phonemes);
      if (tokens.ids.empty()) continue;
      kokoro::PieceInput input;
      input.ids = tokens.ids;
      input.style = voice.style(tokens.symbols);
      input.speed = arguments.speed;
      SYRINX_TRY_VOID(synthesizer.synthesize(input, output));
      if (samples == 0) first_ms = watch.elapsed_ms();
      samples += output.samples.size();
      figures.ids += tokens.ids.size();
    }
    if (samples == 0) return fail(Code::kInvalidArgument, "no phoneme of the text is in the model's alphabet");
    figures.audio_seconds = static_cast<double>(samples) / kokoro::kSampleRateHz;
    if (run == 0) continue;
    figures.total_ms.push_back(watch.elapsed_ms());
    figures.first_ms.push_back(first_ms);
    figures.rtf.push_back(figures.total_ms.back() / 1000 / figures.audio_seconds);
  }
  figures.pieces = pieces.size();
  return figures;
}

Status run_bench_kokoro(const BenchKokoroArguments& arguments) {
  if (arguments.runs < 1 || arguments.runs > 1000 || arguments.threads < 0 || arguments.threads > 64)
    return fail(Code::kInvalidArgument, "{} runs with {} threads: give 1 to 1000 runs and at most 64 threads",
                arguments.runs, arguments.threads);
  if (arguments.text.empty() == arguments.phonemes.empty())
    return fail(Code::kInvalidArgument, "give either --text or --phonemes");
  const int threads = arguments.threads == 0 ? default_threads() : arguments.threads;
  SYRINX_TRY(const Figures figures, measure(arguments, threads));
  const auto rss = static_cast<int64_t>(peak_rss_bytes());
  if (arguments.json) {
    Json json;
    json.set("rtf", median(figures.rtf));
    json.set("rtf_min", smallest(figures.rtf));
    json.set("rtf_max", largest(figures.rtf));
    json.set("rtf_runs", Json::Array(figures.rtf.begin(), figures.rtf.end()));
    json.set("first_audio_ms", median(figures.first_ms));
    json.set("load_ms", figures.load_ms);
    json.set("peak_rss_bytes", rss);
    json.set("audio_seconds", figures.audio_seconds);
    json.set("total_ms", median(figures.total_ms));
    json.set("precision", arguments.precision);
    json.set("threads", threads);
    json.set("n", arguments.runs);
    json.set("pieces", figures.pieces);
    json.set("ids", figures.ids);
    json.set("cpu", cpu_info().model);
    json.set("target", kernels::describe_chosen_target());
    json.set("build", fmt::format("{} {} {} {}", version(), commit(), build_type(), compiler()));
    return cli::print(json.dump() + "\n");
  }
  const auto row = [](const char* name, const std::vector<double>& values, const char* unit) {
    return fmt::format("{:<14}{:>9.4g} {:>9.4g} {:>9.4g}  {}\n", name, median(values), smallest(values),
                       largest(values), unit);
  };
  std::string text =
      fmt::format("machine  {}, {} cores, {}\nbuild    {} ({}, {}), {}\n", cpu_info().model, cpu_info().logical_cores,
                  kernels::describe_chosen_target(), version(), commit(), build_type(), compiler());
  text += fmt::format("work     {} ids in {} pieces, {:.3f} s of sound, {}, {} threads, n = {}\n\n", figures.ids,
                      figures.pieces, figures.audio_seconds, arguments.precision, threads, arguments.runs);
  text += fmt::format("{:<14}{:>9} {:>9} {:>9}\n", "", "median", "min", "max");
  text += row("rtf", figures.rtf, "time / sound") + row("first piece", figures.first_ms, "ms") +
          row("all", figures.total_ms, "ms");
  text += fmt::format("\nload {:.0f} ms, peak memory {:.0f} MB\n", figures.load_ms, static_cast<double>(rss) * 1e-6);
  return cli::print(text);
}

}  // namespace

void add_bench_kokoro(cli::Command& bench) {
  auto arguments = std::make_shared<BenchKokoroArguments>();
  cli::Command command = bench.add("kokoro", "Time the model on one text, piece by piece");
  command.option("--model", arguments->model, "Name of an installed model, or a path; kokoro by default")
      .type("NAME|PATH");
  command.option("--voice", arguments->voice, "A voice of the model").type("VOICE").show_default();
  command.option("--voice-file", arguments->voice_file, "A voice file instead").type("FILE");
  command.option("--text", arguments->text, "English text, cut into pieces as speak does").type("TEXT");
  command.option("--phonemes", arguments->phonemes, "Phonemes, as one piece").type("TEXT");
  command.option("--threads", arguments->threads, "Threads; 0: the default of speak").type("N").show_default();
  command.option("--runs", arguments->runs, "Runs that are counted, after one that is not").type("N").show_default();
  command.option("--precision", arguments->precision, "Arithmetic of the model").one_of({"int8", "f32"}).show_default();
  command.option("--speed", arguments->speed, "Pace, as in speak").type("X").show_default();
  command.flag("--no-cache", arguments->without_cache, "Pack the weights anew and keep nothing");
  command.flag("--json", arguments->json, "One JSON object on one line");
  command.examples(
      "  syrinx bench kokoro --text \"The quick brown fox jumps over the lazy dog.\"\n"
      "  syrinx bench kokoro --phonemes \"həlˈO wˈɜɹld.\" --threads 1 --precision f32 --json");
  command.run([arguments] { return run_bench_kokoro(*arguments); });
}

}  // namespace syrinx::bench
