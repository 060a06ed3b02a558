// syrinx voices: the voices of a model, from the names of its files.
#include <memory>
#include <string>

#include "base/json.h"
#include "cli/command.h"
#include "cli/output.h"
#include "engine/paths.h"
#include "engine/speech_files.h"
#include "models/kokoro/voice.h"

namespace syrinx::cli {
namespace {

struct VoicesArguments {
  std::string model;
  bool json = false;
  bool names = false;
};

std::string as_json(const std::vector<kokoro::VoiceInfo>& voices) {
  Json::Array list;
  for (const kokoro::VoiceInfo& voice : voices) {
    Json item;
    item.set("name", voice.name);
    item.set("language", voice.language);
    item.set("language_code", voice.language_code);
    item.set("gender", voice.gender);
    item.set("default", voice.name == kDefaultVoice);
    list.push_back(std::move(item));
  }
  return Json(std::move(list)).dump() + "\n";
}

// One line a voice under the name of its language.
std::string as_text(const std::vector<kokoro::VoiceInfo>& voices) {
  std::string text;
  const std::string* language = nullptr;
  for (const kokoro::VoiceInfo& voice : voices) {
    if (language == nullptr || *language != voice.language) {
      const bool readable = voice.language_code.starts_with("en") || voice.language_code == "und";
      text +=
          fmt::format("{}{}{}\n", text.empty() ? "" : "\n", voice.language, readable ? "" : " (from phonemes only)");
      language = &voice.language;
    }
    text += fmt::format("  {:<16}{}{}\n", voice.name, voice.gender, voice.name == kDefaultVoice ? ", the default" : "");
  }
  return text;
}

Status run_voices(const VoicesArguments& arguments) {
  SYRINX_TRY(const UserPaths paths, user_paths());
  SYRINX_TRY(const SpeechFiles files, find_speech_files(arguments.model, models_folder(paths)));
  SYRINX_TRY(const std::vector<kokoro::VoiceInfo> voices, kokoro::list_voices(files.voices));
  if (arguments.json) return print(as_json(voices));
  if (!arguments.names) return print(as_text(voices));
  std::string text;
  for (const kokoro::VoiceInfo& voice : voices) text += voice.name + "\n";
  return print(text);
}

}  // namespace

void add_voices(Command& tree) {
  auto arguments = std::make_shared<VoicesArguments>();
  Command command = tree.add("voices", "List the voices of a model");
  command.option("--model", arguments->model, "Name of an installed model, or a path; kokoro by default")
      .type("NAME|PATH");
  const Option json = command.flag("--json", arguments->json, "One JSON array on one line");
  command.flag("--names", arguments->names, "Names alone, one a line").excludes(json);
  command.examples(
      "  syrinx voices\n"
      "  syrinx speak --voice bf_emma \"Good evening.\" --play\n"
      "  syrinx speak --voice af_heart:0.6+am_adam:0.4 \"Half way between.\" --play");
  command.run([arguments] { return run_voices(*arguments); });
}

}  // namespace syrinx::cli
