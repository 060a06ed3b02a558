#include "engine/families/pocket_tts/pocket_voices.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>

#include "base/watched_file.h"
#include "engine/speech/remote_files.h"
#include "models/pocket_tts/model.h"
#include "models/pocket_tts/voice_recording.h"

namespace syrinx {
namespace {

// What the maker's utils/config.py takes for the language that a checkpoint's path tells of; alba for everything else.
struct Choice {
  const char *language, *code, *voice;
};
constexpr Choice kChoices[] = {{"italian", "it", "giovanni"},
                               {"spanish", "es", "lola"},
                               {"german", "de", "juergen"},
                               {"portuguese", "pt", "rafael"},
                               {"french", "fr", "estelle"},
                               {"dutch", "nl", "daan"},
                               {"", "en", "alba"}};

namespace fs = std::filesystem;

constexpr size_t kMaxListed = 10000;  // entries of a folder that are looked at
constexpr size_t kMaxNamed = 12;      // voices that a message names

bool is_recording(const fs::path& path) {
  const std::string ending = path.extension().string();
  return ending == ".wav" || ending == ".flac" || ending == ".mp3" || ending == ".ogg" || ending == ".opus";
}

void list_folder(const fs::path& folder, std::vector<PocketVoiceFile>& voices) {
  std::error_code error;
  size_t looked = 0;
  for (fs::directory_iterator entry(folder, error); !error && entry != fs::directory_iterator() && looked < kMaxListed;
       entry.increment(error), ++looked) {
    const fs::path& path = entry->path();
    const bool recording = is_recording(path);
    if (recording || path.extension() == ".safetensors")
      voices.push_back({.name = path.stem().string(), .path = path.string(), .recording = recording});
  }
}

// safetensors begin with the length of a header that begins with a brace; no sound does.
bool is_safetensors(std::span<const std::byte> content) { return content.size() > 8 && content[8] == std::byte{'{'}; }

}  // namespace

Result<PocketVoiceContent> read_pocket_voice(std::span<const std::byte> content, const std::string& name, bool truncate,
                                             const pocket::FlowLmConfig& config) {
  if (is_safetensors(content)) {
    SYRINX_TRY(pocket::VoiceFile file, pocket::parse_voice_file(content, name, config));
    return PocketVoiceContent(std::move(file));
  }
  SYRINX_TRY(std::vector<float> ready, pocket::read_voice_recording(content, pocket::kSampleRateHz, truncate, name));
  return PocketVoiceContent(std::move(ready));
}

Result<PocketVoiceContent> read_pocket_voice(const std::string& path, bool truncate,
                                             const pocket::FlowLmConfig& config) {
  SYRINX_TRY(const WatchedFile file, WatchedFile::open(path));
  auto content = read_pocket_voice(file.bytes(), path, truncate, config);
  SYRINX_TRY_VOID(file.check_all());
  return content;
}

std::string pocket_voice_names(const std::vector<PocketVoiceFile>& voices) {
  std::string names;
  for (size_t i = 0; i < std::min(voices.size(), kMaxNamed); ++i) names += (i > 0 ? ", " : "") + voices[i].name;
  return voices.size() > kMaxNamed ? names + ", ..." : names;
}

std::vector<PocketVoiceFile> list_pocket_voices(const std::string& folder) {
  std::vector<PocketVoiceFile> voices;
  list_folder(fs::path(folder) / "voices", voices);
  list_folder(fs::path(folder) / "embeddings", voices);
  std::sort(voices.begin(), voices.end(), [](const PocketVoiceFile& a, const PocketVoiceFile& b) {
    return std::tie(a.name, a.recording, a.path) < std::tie(b.name, b.recording, b.path);
  });
  const auto same = [](const PocketVoiceFile& a, const PocketVoiceFile& b) { return a.name == b.name; };
  voices.erase(std::unique(voices.begin(), voices.end(), same), voices.end());
  return voices;
}

Result<PocketVoiceFile> find_pocket_voice(const std::string& voice, const std::string& folder) {
  if (is_remote(voice)) {
    SYRINX_TRY(std::string path, fetch(voice));
    const bool exported = fs::path(path).extension() == ".safetensors";
    return PocketVoiceFile{.name = voice, .path = std::move(path), .recording = !exported};
  }
  if (voice.find_first_of("/.") != std::string::npos) {
    std::error_code error;
    if (!fs::exists(voice, error)) return fail(Code::kNotFound, "there is no voice file '{}'", voice);
    const bool exported = fs::path(voice).extension() == ".safetensors";
    return PocketVoiceFile{.name = fs::path(voice).stem().string(), .path = voice, .recording = !exported};
  }
  std::vector<PocketVoiceFile> voices = list_pocket_voices(folder);
  const auto found = std::find_if(voices.begin(), voices.end(), [&](const auto& each) { return each.name == voice; });
  if (found != voices.end()) return std::move(*found);
  const std::string asked = voice.empty() ? "no voice was named" : fmt::format("there is no voice '{}'", voice);
  if (voices.empty())
    return fail(Code::kNotFound,
                "{}, and none lies in '{}'; give the path of a recording or of an exported voice (--voice me.wav)",
                asked, (fs::path(folder) / "voices").string());
  return fail(Code::kNotFound, "{}; there are {}, and a path holds a '/' or a '.'", asked, pocket_voice_names(voices));
}

std::string default_pocket_voice(const std::vector<PocketVoiceFile>& voices, const std::string& checkpoint) {
  for (const Choice& choice : kChoices) {
    if (checkpoint.find(choice.language) == std::string::npos) continue;
    for (const PocketVoiceFile& voice : voices)
      if (voice.name == choice.voice) return voice.name;
  }
  return voices.size() == 1 ? voices.front().name : std::string();
}

std::string pocket_language(const std::string& checkpoint) {
  const auto named = std::find_if(std::begin(kChoices), std::end(kChoices), [&](const Choice& choice) {
    return checkpoint.find(choice.language) != std::string::npos;
  });
  return named->code;  // the last one is in every path
}

}  // namespace syrinx
