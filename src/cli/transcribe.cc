// syrinx transcribe: recordings, streams and the microphone to text.
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "audio/decode/pcm_stream.h"
#include "audio/decode/sound_file.h"
#include "base/in_quotes.h"
#include "base/signals.h"
#include "cli/command.h"
#include "cli/knob_flags.h"
#include "cli/output.h"
#include "cli/transcribe_files.h"
#include "cli/transcribe_live.h"
#include "engine/families/default_models.h"
#include "engine/families/families.h"
#include "engine/families/find_recognition_files.h"
#include "engine/recognition/recognition_files.h"
#include "engine/schedule/compute.h"
#include "engine/speech/speech_engine.h"
#include "engine/speech/speech_files.h"
#include "engine/threads.h"

namespace syrinx::cli {
namespace {

constexpr int kMaxJobs = 64;
constexpr std::string_view kSeparate = "separate";  // of --channels
constexpr int kMinChunkMs = 10, kMaxChunkMs = 5000;

struct TranscribeArguments {
  std::vector<std::string> files;
  std::string model, language, precision;
  std::string format, times, out, out_dir;
  std::string raw, device;
  KnobFlags knobs{recognition_knobs()};
  float seconds = 0;
  int threads = 0, jobs = 0;
  int rate_hz = 0;       // 0: not given
  std::string channels;  // of raw samples; or kSeparate
  int chunk_ms = 80;
  bool stream = false, realtime = false, chunks = false, microphone = false;
  VoiceActivityChanges voice;
  EndpointChanges endpoints;
  bool all_sound = false, force = false;
};

bool is_live(const TranscribeArguments& arguments) { return arguments.stream || arguments.microphone; }

// Combinations that make no sense.
Status check(const TranscribeArguments& a) {
  const auto wrong = [](const char* sentence) { return fail(Code::kInvalidArgument, "{}", sentence); };
  if (a.microphone && !a.files.empty()) return wrong("--microphone takes no file; give one or the other");
  if (!a.microphone && a.files.empty() && is_terminal(STDIN_FILENO))
    return wrong("no audio was given; name a file behind `syrinx transcribe`, - for standard input, or --microphone");
  if (a.stream && a.files.size() > 1) return wrong("--stream takes one file; leave it out, or give one");
  if (is_live(a) && (!a.out.empty() || !a.out_dir.empty()))
    return wrong("--stream and --microphone write to standard output; redirect it in place of --out");
  if (!a.stream && a.realtime) return wrong("--realtime needs --stream");
  if (!is_live(a) &&
      (a.endpoints.silence_after_speech_s || a.endpoints.silence_s || a.endpoints.max_utterance_s || a.endpoints.off))
    return wrong("--end-silence, --idle-silence, --max-utterance and --no-endpoint need --stream or --microphone");
  if (a.endpoints.off && (a.endpoints.silence_after_speech_s || a.endpoints.silence_s))
    return wrong("with --no-endpoint no silence ends an utterance; leave --end-silence and --idle-silence out");
  if (a.all_sound && a.voice.any())
    return wrong("with --all-sound there is no voice activity to set; leave --vad-... out");
  if (!is_live(a) && a.chunks) return wrong("--chunks needs --stream or --microphone");
  if (a.chunks && a.format != "json") return wrong("--chunks writes JSON lines; add --format json");
  if (!a.microphone && (!a.device.empty() || a.seconds != 0)) return wrong("--device and --seconds need --microphone");
  const Knobs of_streams = a.knobs.given(Knob::Use::kLoad);
  if (!is_live(a) && (of_streams.has("look_ahead") || of_streams.has("stream_window")))
    return wrong("--look-ahead and --stream-window need --stream or --microphone");
  if (a.raw.empty() && a.rate_hz != 0) return wrong("--rate is for raw samples; say which with --raw");
  if (!a.raw.empty() && a.rate_hz == 0) return wrong("raw samples have no rate; give it with --rate");
  const bool separate = a.channels == kSeparate;
  if (a.raw.empty() && !a.channels.empty() && !separate)
    return wrong("--channels N is for raw samples; say which with --raw, or give --channels separate");
  if (separate && (is_live(a) || !a.raw.empty()))
    return wrong("--channels separate is for whole recordings; leave --raw, --stream and --microphone out");
  if (separate && (a.files.empty() || std::find(a.files.begin(), a.files.end(), "-") != a.files.end()))
    return wrong(
        "--channels separate reads a recording for each channel, and standard input is read once; name a file");
  if (!(a.seconds >= 0)) return wrong("--seconds must be positive");
  if (a.jobs < 0 || a.jobs > kMaxJobs)
    return fail(Code::kInvalidArgument, "--jobs {}: give 1 to {}, or 0 for the default", a.jobs, kMaxJobs);
  if (a.chunk_ms < kMinChunkMs || a.chunk_ms > kMaxChunkMs)
    return fail(Code::kInvalidArgument, "--chunk-ms {}: give {} to {}", a.chunk_ms, kMinChunkMs, kMaxChunkMs);
  return {};
}

Result<std::optional<PcmFormat>> raw_format(const TranscribeArguments& arguments) {
  if (arguments.raw.empty()) return std::nullopt;
  SYRINX_TRY(PcmFormat format, parse_pcm_format(arguments.raw));
  format.rate_hz = arguments.rate_hz;
  format.channels = 1;
  const char* const end = arguments.channels.data() + arguments.channels.size();
  const auto [behind, error] = std::from_chars(arguments.channels.data(), end, format.channels);
  if (!arguments.channels.empty() && (error != std::errc() || behind != end))
    return fail(Code::kInvalidArgument, "--channels {}: give a number, or separate", in_quotes(arguments.channels));
  return format;
}

// `compute`: whose threads it uses; null: the process's, at which models take turns.
Result<std::shared_ptr<Recogniser>> load(const TranscribeArguments& arguments, int threads,
                                         std::shared_ptr<Compute> compute = {}) {
  SYRINX_TRY(const UserPaths paths, user_paths());
  RecogniserOptions options;
  SYRINX_TRY(options.files, find_recognition_files(arguments.model, models_folder(paths)));
  if (!arguments.precision.empty()) {
    SYRINX_TRY(options.precision, parse_precision(arguments.precision));
  }
  options.knobs = arguments.knobs.given(Knob::Use::kLoad);
  for (const Knob::Use use : {Knob::Use::kLoad, Knob::Use::kRequest})
    SYRINX_TRY_VOID(check_knobs(arguments.knobs.given(use), *options.files.family, KnobNames::kFlags));
  options.threads = threads;
  options.compute = std::move(compute);
  options.warm_up = is_live(arguments);
  options.cache_folder = packed_folder(paths, options.files);
  return load_recogniser(std::move(options));
}

TranscribeOptions options_of(const TranscribeArguments& arguments, TranscriptFormat format, TranscriptTimes times) {
  TranscribeOptions options;
  const bool in_order = arguments.channels == kSeparate;  // of time
  options.segment_times = format != TranscriptFormat::kText || times != TranscriptTimes::kNone || in_order;
  options.language = arguments.language;
  options.words = times >= TranscriptTimes::kWord;
  options.tokens = times == TranscriptTimes::kToken;
  options.subtitles = format == TranscriptFormat::kSrt || format == TranscriptFormat::kVtt;
  options.voice_activity = !arguments.all_sound;
  options.voice = arguments.voice;
  options.endpoints = arguments.endpoints;
  options.knobs = arguments.knobs.given(Knob::Use::kRequest);
  return options;
}

// A file as a stream; Ctrl-C ends it between two blocks.
SoundSource file_source(const std::string& path, const std::optional<PcmFormat>& raw) {
  return [=](const SoundSink& sink) -> Status {
    SoundSink stoppable = sink;
    stoppable.add = [&](std::span<const float> samples) -> Status {
      if (cancel_requested()) return fail(Code::kCancelled, "stopped while listening");
      return sink.add(samples);
    };
    stoppable.looked = [](uint64_t) -> Status {
      if (cancel_requested()) return fail(Code::kCancelled, "stopped while reading");
      return {};
    };
    return raw ? read_raw_file(path, *raw, stoppable) : read_sound(path, kTranscribeLimits, stoppable);
  };
}

Status run_live(const TranscribeArguments& arguments, TranscriptFormat format, TranscriptTimes times,
                const std::optional<PcmFormat>& raw) {
  LiveTask task{.format = format, .times = times, .options = options_of(arguments, format, times)};
  task.chunk_ms = arguments.chunk_ms;
  task.realtime = arguments.realtime;
  task.chunks = arguments.chunks;
  const std::string file = arguments.files.empty() ? "-" : arguments.files.front();
  SoundSource source = file_source(file, raw);
  if (arguments.microphone)
    source = microphone(arguments.device, arguments.seconds);
  else if (file == "-")
    source = [raw](const SoundSink& sink) { return read_pipe(STDIN_FILENO, raw, sink); };
  SYRINX_TRY(const std::shared_ptr<Recogniser> recogniser, load(arguments, arguments.threads));
  return transcribe_live(task, *recogniser, source, live_output(task));
}

Status run_files(const TranscribeArguments& arguments, TranscriptFormat format, TranscriptTimes times,
                 const std::optional<PcmFormat>& raw) {
  SYRINX_TRY(const int threads, choose_threads(arguments.threads));
  TranscribeTask task;
  task.files = arguments.files.empty() ? std::vector<std::string>{"-"} : arguments.files;
  task.out = arguments.out;
  task.out_dir = arguments.out_dir;
  task.raw = raw;
  task.format = format;
  task.times = times;
  task.options = options_of(arguments, format, times);
  task.separate = arguments.channels == kSeparate;
  task.force = arguments.force;
  // One thread a file keeps all cores busier than several threads at one, where there are files enough.
  const int files = static_cast<int>(std::min<size_t>(task.files.size(), kMaxJobs));
  task.jobs = std::min(files, arguments.jobs == 0 ? threads : arguments.jobs);
  return transcribe_files(task, [&] {
    return load(arguments, std::max(1, threads / task.jobs), task.jobs > 1 ? std::make_shared<Compute>() : nullptr);
  });
}

Status run_transcribe(const TranscribeArguments& arguments) {
  SYRINX_TRY_VOID(check(arguments));
  SYRINX_TRY(const TranscriptFormat format,
             parse_transcript_format(arguments.format.empty() ? "text" : arguments.format));
  SYRINX_TRY(const TranscriptTimes times, parse_transcript_times(arguments.times));
  if (times == TranscriptTimes::kToken && (format == TranscriptFormat::kSrt || format == TranscriptFormat::kVtt))
    return fail(Code::kInvalidArgument, "a subtitle has a segment or a word; --timestamps token is for text and json");
  SYRINX_TRY(const std::optional<PcmFormat> raw, raw_format(arguments));
  return is_live(arguments) ? run_live(arguments, format, times, raw) : run_files(arguments, format, times, raw);
}

void add_model_options(Command& command, TranscribeArguments& arguments) {
  command
      .option(
          "--model", arguments.model,
          (std::string("Name of an installed recogniser, or a path; ") + kDefaultRecogniser + " by default").c_str())
      .type("NAME|PATH");
  command
      .option("--language", arguments.language,
              "Its code or English name, say de, pt-BR or german; by default the model finds out")
      .type("CODE");
  command.option("--precision", arguments.precision, "Arithmetic of the model; by default its family's")
      .one_of({"int8", "bf16", "f32"});
  command.option("--threads", arguments.threads, "Threads to compute with; 0: as many as there are cores, up to 8")
      .type("N")
      .show_default();
  arguments.knobs.add(command);
}

void add_voice_options(Command& command, TranscribeArguments& arguments) {
  command.flag("--all-sound", arguments.all_sound, "Also what the voice activity model takes for no speech");
  VoiceActivityChanges& voice = arguments.voice;
  command.option("--vad-threshold", voice.threshold, "Probability from which sound is speech; 0.5").type("P");
  command.option("--vad-min-speech", voice.min_speech_ms, "Shorter speech is none; 100").type("MS");
  command.option("--vad-min-silence", voice.min_silence_ms, "Shorter silence is kept; 1000").type("MS");
  command.option("--vad-pad", voice.speech_pad_ms, "Kept on both sides of speech; 400").type("MS");
  EndpointChanges& endpoints = arguments.endpoints;
  command
      .option("--end-silence", endpoints.silence_after_speech_s,
              "Of a stream: silence after speech that ends an utterance; 0.6 or 1.2, as the family needs")
      .type("S");
  command
      .option(
          "--idle-silence", endpoints.silence_s,
          "Of a stream: silence, behind speech too, with which it begins anew; 2.4 or inf (never), as the family needs")
      .type("S");
  command
      .option(
          "--max-utterance", endpoints.max_utterance_s,
          "Of a stream: its longest utterance, at most 3600; 60 or 20, as the family needs, 3600 with --no-endpoint")
      .type("S");
  command.flag("--no-endpoint", endpoints.off,
               "Of a stream: neither silence nor a model's own tokens end an utterance");
}

void add_output_options(Command& command, TranscribeArguments& arguments) {
  command.option("--format", arguments.format, "Of the transcript; text by default")
      .one_of({"text", "json", "srt", "vtt"});
  command.option("--timestamps", arguments.times, "When each segment, word or token was said; tokens in text and JSON")
      .one_of({"segment", "word", "token"});
  command.option("-o,--out", arguments.out, "Write the transcript of the only file here; - is standard output")
      .type("FILE");
  command
      .option("--out-dir", arguments.out_dir,
              "Write each file's transcript to this folder; without it those of several files go beside them")
      .type("FOLDER");
  command.flag("--force", arguments.force, "Also transcribe what is done already, and write over files that are there");
  command.option("--jobs", arguments.jobs, "Files at once; 0: as many as threads").type("N").show_default();
}

void add_live_options(Command& command, TranscribeArguments& arguments) {
  command.flag("--stream", arguments.stream,
               "Transcribe audio as it arrives, from standard input (WAV or --raw) or a file");
  command.flag("--realtime", arguments.realtime, "With --stream: read no faster than real time");
  command.option("--chunk-ms", arguments.chunk_ms, "Sound that the recogniser is given at once")
      .type("MS")
      .show_default();
  command.flag("--chunks", arguments.chunks, "With --format json: a line with the latency of each chunk, too");
  command.flag("--microphone", arguments.microphone, "Text from the microphone, until Ctrl-C");
  command.option("--device", arguments.device, "Part of a microphone's name; by default the system's").type("NAME");
  command.option("--seconds", arguments.seconds, "Stop the microphone after so long").type("S");
  command.option("--raw", arguments.raw, "The audio is raw little-endian samples of this kind")
      .one_of({"s16", "f32", "mulaw", "alaw"});
  command.option("--rate", arguments.rate_hz, "Of raw samples, in Hz").type("HZ");
  command
      .option("--channels", arguments.channels,
              "Of raw samples, 1 by default; or separate: each channel of a recording by itself, segments labelled")
      .type("N|separate");
}

}  // namespace

void add_transcribe(Command& tree) {
  auto arguments = std::make_shared<TranscribeArguments>();
  Command command = tree.add("transcribe", "Turn recordings, streams and the microphone into text");
  command.option("files", arguments->files, "Recordings; - or nothing reads standard input").type("FILE");
  add_output_options(command, *arguments);
  add_model_options(command, *arguments);
  add_voice_options(command, *arguments);
  add_live_options(command, *arguments);
  command.examples(
      "  syrinx transcribe meeting.mp3\n"
      "  syrinx transcribe talk.wav --format srt --out talk.srt\n"
      "  syrinx transcribe recordings/*.flac --format json --out-dir transcripts\n"
      "  arecord -f S16_LE -r 16000 | syrinx transcribe --stream\n"
      "  syrinx transcribe --microphone");
  command.run([arguments] { return run_transcribe(*arguments); });
}

}  // namespace syrinx::cli
