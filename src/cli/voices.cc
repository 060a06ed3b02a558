// syrinx voices: the voices of a model, from the names of its files; syrinx voices export: a recording becomes a voice
// file.
#include <unistd.h>

#include <memory>
#include <string>

#include "base/clock.h"
#include "base/json.h"
#include "cli/command.h"
#include "cli/library.h"
#include "cli/output.h"
#include "cli/remote_parts.h"
#include "engine/families/default_models.h"
#include "engine/families/find_speech_files.h"
#include "engine/speech/speech_family.h"
#include "engine/speech/speech_files.h"
#include "store/paths.h"
#include "syrinx/engine.hpp"

namespace syrinx::cli {
namespace {

struct VoicesArguments {
  std::string model;
  bool json = false;
  bool names = false;
};

struct ExportArguments {
  std::string model;
  std::string voice;
  std::string file;
  std::string precision = "f32";  // as the maker's programs compute it
  int threads = 0;
};

std::string as_json(const std::vector<VoiceEntry>& voices, const std::string& default_voice) {
  Json::Array list;
  for (const VoiceEntry& voice : voices) {
    Json item;
    item.set("name", voice.name);
    const auto add = [&](const char* key, const std::string& value) {
      if (!value.empty()) item.set(key, value);
    };
    add("language", voice.language);
    add("language_code", voice.language_code);
    add("gender", voice.gender);
    add("path", voice.path);
    add("kind", voice.kind);
    item.set("default", voice.name == default_voice);
    list.push_back(std::move(item));
  }
  return Json(std::move(list)).dump() + "\n";
}

// One line a voice, under the name of its language where it has one.
std::string as_text(const std::vector<VoiceEntry>& voices, const std::string& default_voice) {
  std::string text, language;
  for (const VoiceEntry& voice : voices) {
    if (voice.language != language)
      text += fmt::format("{}{}{}\n", text.empty() ? "" : "\n", voice.language,
                          voice.reads_text ? "" : " (from phonemes only)");
    language = voice.language;
    text += fmt::format("{}{:<16}{}{}\n", language.empty() ? "" : "  ", voice.name,
                        voice.gender.empty() ? voice.kind : voice.gender,
                        voice.name == default_voice ? ", the default" : "");
  }
  return text;
}

std::string names_of(const std::vector<VoiceEntry>& voices) {
  std::string text;
  for (const VoiceEntry& voice : voices) text += voice.name + "\n";
  return text;
}

Status run_voices(const VoicesArguments& arguments) {
  SYRINX_TRY(const UserPaths paths, user_paths());
  SYRINX_TRY(const SpeechFiles files, find_speech_files(arguments.model, models_folder(paths)));
  SYRINX_TRY(const std::vector<VoiceEntry> voices, files.family->voices(files));
  const std::string default_voice = files.family->default_voice(files);
  if (arguments.json) return print(as_json(voices, default_voice));
  if (voices.empty() && !arguments.names && files.family->traits.clones)
    note(fmt::format("note: no voices lie in '{}/voices'; `syrinx voices export` puts recordings there", files.voices));
  return print(arguments.names ? names_of(voices) : as_text(voices, default_voice));
}

Status run_export(const ExportArguments& arguments) {
  SYRINX_TRY_VOID(fetch_in_sight(arguments.model, arguments.voice, /*quiet=*/false));
  // Before the model is loaded, which takes longer.
  SYRINX_TRY(const UserPaths paths, user_paths());
  SYRINX_TRY(const SpeechFiles files, find_speech_files(arguments.model, models_folder(paths)));
  if (files.family->traits.clones) SYRINX_TRY_VOID(files.family->find_voice(files, arguments.voice));
  Engine engine;
  LoadOptions options;
  options.model = arguments.model.c_str();
  options.threads = arguments.threads;
  options.phonemes_only = has_knob(*files.family, "phonemes") ? 1 : 0;  // no text is read
  options.precision = library_precision(arguments.precision);
  SYRINX_TRY_VOID(to_status(engine.load(options), engine));
  const Stopwatch watch;
  SYRINX_TRY_VOID(to_status(engine.export_voice(arguments.voice.c_str(), arguments.file.c_str()), engine));
  if (is_terminal(STDERR_FILENO))
    note(fmt::format("'{}' written in {:.1f} s", arguments.file, watch.elapsed_ms() / 1000));
  return {};
}

void add_export(Command& voices) {
  auto arguments = std::make_shared<ExportArguments>();
  Command command = voices.add("export", "Make a voice file from a recording, for a model that clones voices");
  command.option("voice", arguments->voice, "The recording (wav, flac, mp3, ogg; its first 30 s are used), or a voice")
      .type("RECORDING")
      .required();
  command.option("out", arguments->file, "The voice file, NAME.safetensors").type("FILE").required();
  command.option("--model", arguments->model, "The model for the voice: a folder, configuration or weights")
      .type("NAME|PATH")
      .required();
  command.option("--precision", arguments->precision, "Arithmetic of the model").one_of(kPrecisions).show_default();
  command.option("--threads", arguments->threads, "Threads to compute with; 0: as many as there are cores, up to 8")
      .type("N")
      .show_default();
  command.examples(
      "  syrinx voices export --model models/english me.wav models/english/voices/me.safetensors\n"
      "  syrinx speak --model models/english --voice me \"In my own voice.\" --play");
  command.run([arguments] { return run_export(*arguments); });
}

}  // namespace

void add_voices(Command& tree) {
  auto arguments = std::make_shared<VoicesArguments>();
  Command command = tree.add("voices", "List the voices of a model");
  command
      .option("--model", arguments->model,
              (std::string("Name of an installed model, or a path; ") + kDefaultModel + " by default").c_str())
      .type("NAME|PATH");
  const Option json = command.flag("--json", arguments->json, "One JSON array on one line");
  command.flag("--names", arguments->names, "Names alone, one a line").excludes(json);
  command.examples(
      "  syrinx voices\n"
      "  syrinx speak --voice bf_emma \"Good evening.\" --play\n"
      "  syrinx speak --voice af_heart:0.6+am_adam:0.4 \"Half way between.\" --play");
  command.run([arguments] { return run_voices(*arguments); });
  add_export(command);
}

}  // namespace syrinx::cli
