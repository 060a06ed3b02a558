#include "engine/families/qwen_tts/qwen_voices.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <string_view>
#include <system_error>
#include <tuple>

#include "base/in_quotes.h"
#include "base/watched_file.h"
#include "engine/speech/remote_files.h"
#include "store/paths.h"
#include "text/unicode.h"

namespace syrinx {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxListed = 10000;  // entries of a folder that are looked at
constexpr size_t kMaxWordBytes = 8192;
constexpr size_t kMaxNamed = 12;  // voices that a message names

// The makers' own speakers (spec qwen3-tts.md, section 2.3), with the language that each speaks best.
struct Known {
  const char *name, *language, *code, *gender;
};
constexpr Known kKnown[] = {{"ryan", "English", "en", "male"},           {"aiden", "English", "en", "male"},
                            {"serena", "Chinese", "zh", "female"},       {"vivian", "Chinese", "zh", "female"},
                            {"uncle_fu", "Chinese", "zh", "male"},       {"dylan", "Chinese (Beijing)", "zh", "male"},
                            {"eric", "Chinese (Sichuan)", "zh", "male"}, {"ono_anna", "Japanese", "ja", "female"},
                            {"sohee", "Korean", "ko", "female"}};
constexpr const char* kDefaults[] = {"ryan", "vivian"};
constexpr std::pair<const char*, const char*> kKnownVoices[] = {
    {"alloy", "vivian"}, {"ash", "aiden"},     {"ballad", "ryan"},  {"cedar", "ryan"},  {"coral", "vivian"},
    {"echo", "aiden"},   {"fable", "ryan"},    {"marin", "serena"}, {"nova", "vivian"}, {"onyx", "uncle_fu"},
    {"sage", "serena"},  {"shimmer", "sohee"}, {"verse", "dylan"}};

bool is_exported(const fs::path& path) { return path.extension() == ".safetensors"; }

bool is_voice(const fs::path& path) {
  const std::string ending = path.extension().string();
  return is_exported(path) || ending == ".wav" || ending == ".flac" || ending == ".mp3" || ending == ".ogg" ||
         ending == ".opus";
}

QwenRecording recording_at(const fs::path& path) {
  const fs::path words = fs::path(path).replace_extension(".txt");
  return {.name = path.stem().string(),
          .path = path.string(),
          .words_path = is_there(words.string()) ? words.string() : std::string()};
}

// By name; of files of one name an exported voice, else the first.
std::vector<QwenRecording> list_recordings(const std::string& folder) {
  std::vector<QwenRecording> found;
  std::error_code error;
  size_t looked = 0;
  for (fs::directory_iterator entry(fs::path(folder) / "voices", error);
       !error && entry != fs::directory_iterator() && looked < kMaxListed; entry.increment(error), ++looked)
    if (is_voice(entry->path())) found.push_back(recording_at(entry->path()));
  std::sort(found.begin(), found.end(), [](const QwenRecording& a, const QwenRecording& b) {
    const auto order = [](const QwenRecording& each) {
      return std::tuple(std::string_view(each.name), !is_exported(each.path), std::string_view(each.path));
    };
    return order(a) < order(b);
  });
  const auto same = [](const QwenRecording& a, const QwenRecording& b) { return a.name == b.name; };
  found.erase(std::unique(found.begin(), found.end(), same), found.end());
  return found;
}

template <class Named>
std::string names_of(const std::vector<Named>& voices) {
  std::string names;
  for (size_t i = 0; i < std::min(voices.size(), kMaxNamed); ++i)
    names += (i > 0 ? ", " : "") + shortened(voices[i].name);
  return voices.size() > kMaxNamed ? names + ", ..." : names;
}

std::vector<VoiceEntry> list_speakers(const qwen_tts::Config& config) {
  std::vector<VoiceEntry> entries;
  for (const Known& known : kKnown)
    if (config.speaker(known.name) != nullptr)
      entries.push_back({.name = known.name,
                         .language = known.language,
                         .language_code = known.code,
                         .gender = known.gender,
                         .kind = "builtin"});
  for (const qwen_tts::Speaker& speaker : config.speakers) {
    const bool is_known = std::any_of(std::begin(kKnown), std::end(kKnown),
                                      [&](const Known& known) { return speaker.name == known.name; });
    if (!is_known) entries.push_back({.name = speaker.name});
  }
  return entries;
}

}  // namespace

std::vector<VoiceEntry> list_qwen_voices(const qwen_tts::Config& config, const std::string& folder) {
  if (config.kind == qwen_tts::Kind::kCustomVoice) return list_speakers(config);
  std::vector<VoiceEntry> entries;
  if (config.kind != qwen_tts::Kind::kBase) return entries;
  for (const QwenRecording& each : list_recordings(folder))
    entries.push_back(
        {.name = each.name, .path = each.path, .kind = is_exported(each.path) ? "exported" : "recording"});
  return entries;
}

std::string default_qwen_voice(const qwen_tts::Config& config, const std::string& folder) {
  if (config.kind == qwen_tts::Kind::kBase) {
    const std::vector<QwenRecording> recordings = list_recordings(folder);
    return recordings.size() == 1 ? recordings.front().name : std::string();
  }
  for (const char* const name : kDefaults)
    if (config.speaker(name) != nullptr) return name;
  return config.speakers.empty() ? std::string() : config.speakers.front().name;
}

std::span<const std::pair<const char*, const char*>> known_qwen_voices() { return kKnownVoices; }

Result<std::string> find_qwen_speaker(const qwen_tts::Config& config, const std::string& voice) {
  const qwen_tts::Speaker* const speaker = config.speaker(voice);
  if (speaker != nullptr) return speaker->name;
  return fail(Code::kNotFound, "there is no voice {}; this checkpoint has {}", in_quotes(voice),
              names_of(config.speakers));
}

Result<QwenRecording> find_qwen_recording(const std::string& folder, const std::string& voice) {
  if (is_remote(voice)) {
    SYRINX_TRY(std::string path, fetch(voice));
    return QwenRecording{.name = voice, .path = std::move(path), .words_path = {}};
  }
  if (voice.find_first_of("/.") != std::string::npos) {
    if (!is_there(voice)) return fail(Code::kNotFound, "there is no voice file '{}'", voice);
    return recording_at(voice);
  }
  std::vector<QwenRecording> recordings = list_recordings(folder);
  const auto found =
      std::find_if(recordings.begin(), recordings.end(), [&](const auto& each) { return each.name == voice; });
  if (found != recordings.end()) return std::move(*found);
  const std::string asked = voice.empty() ? "no voice was named" : "there is no voice " + in_quotes(voice);
  if (recordings.empty())
    return fail(Code::kNotFound, "{}, and none lies in '{}'; give the path of a recording (--voice me.wav)", asked,
                (fs::path(folder) / "voices").string());
  return fail(Code::kNotFound, "{}; there are {}, and a path holds a '/' or a '.'", asked, names_of(recordings));
}

Status find_qwen_voice(const qwen_tts::Config& config, const std::string& folder, const std::string& voice) {
  switch (config.kind) {
    case qwen_tts::Kind::kCustomVoice: {
      const auto found = find_qwen_speaker(config, voice.empty() ? default_qwen_voice(config, folder) : voice);
      return found ? Status() : tl::unexpected(found.error());
    }
    case qwen_tts::Kind::kBase: {
      const auto found = find_qwen_recording(folder, voice.empty() ? default_qwen_voice(config, folder) : voice);
      return found ? Status() : tl::unexpected(found.error());
    }
    case qwen_tts::Kind::kVoiceDesign: break;
  }
  if (voice.empty()) return {};
  return fail(Code::kUnsupported,
              "this checkpoint has no voice {}: instructions tell it who speaks; leave the voice out",
              in_quotes(voice));
}

Result<std::string> read_qwen_words(const QwenRecording& recording) {
  if (recording.words_path.empty()) return std::string();
  SYRINX_TRY(const WatchedFile file, WatchedFile::open(recording.words_path));
  const auto bytes = file.bytes();
  if (bytes.size() > kMaxWordBytes)
    return fail(Code::kLimitExceeded, "'{}' has {} bytes, at most {} are taken; use a shorter recording",
                recording.words_path, bytes.size(), kMaxWordBytes);
  const std::string words(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  SYRINX_TRY_VOID(file.check_all());
  if (text::find_invalid(words)) return fail(Code::kDataLoss, "'{}' is no UTF-8", recording.words_path);
  const size_t begin = std::min(words.find_first_not_of(" \t\r\n"), words.size());
  return words.substr(begin, words.find_last_not_of(" \t\r\n") + 1 - begin);
}

Status check_qwen_clones(const qwen_tts::Config& config) {
  if (config.kind == qwen_tts::Kind::kBase) return {};
  return fail(Code::kUnsupported, "this checkpoint ({}) makes no voices of recordings; take one of the kind base",
              qwen_tts::kind_name(config.kind));
}

}  // namespace syrinx
