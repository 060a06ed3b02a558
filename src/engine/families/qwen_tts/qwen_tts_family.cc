#include "engine/families/qwen_tts/qwen_tts_family.h"

#include <filesystem>
#include <utility>

#include "base/watched_file.h"
#include "engine/families/qwen_tts/inspect_qwen.h"
#include "engine/families/qwen_tts/qwen_engine.h"
#include "engine/families/qwen_tts/qwen_model.h"
#include "engine/families/qwen_tts/qwen_remote.h"
#include "engine/families/qwen_tts/qwen_settings.h"
#include "engine/families/qwen_tts/qwen_voice.h"
#include "engine/families/qwen_tts/qwen_voices.h"
#include "engine/speech/remote_files.h"
#include "models/qwen_tts/checkpoint.h"
#include "models/qwen_tts/reference_audio.h"
#include "store/paths.h"
#include "tensor/safetensors.h"

namespace syrinx {
namespace {

namespace fs = std::filesystem;

constexpr Precision kPrecisions[] = {QwenEngine::kDefaultPrecision, Precision::kF32, Precision::kBf16,
                                     Precision::kInt4};

bool recognise(const ModelPlace& place) { return qwen_tts::Checkpoint::recognises(place.path); }

// Only the configuration of an address elsewhere has been fetched.
Result<SpeechFiles> find_files(const ModelPlace& place) {
  if (is_remote(place.name)) SYRINX_TRY_VOID(fetch_qwen_parts(place.path, place.name));
  const fs::path path(place.path);
  const fs::path folder = place.is_folder ? path : path.has_parent_path() ? path.parent_path() : fs::path(".");
  SpeechFiles files;
  files.voices = folder.string();
  files.checkpoint = (folder / "config.json").string();
  return files;
}

Result<std::vector<VoiceEntry>> list(const SpeechFiles& files) {
  SYRINX_TRY(const qwen_tts::Config config, read_qwen_config(files.checkpoint));
  return list_qwen_voices(config, files.voices);
}

std::string default_voice(const SpeechFiles& files) {
  const auto config = read_qwen_config(files.checkpoint);
  return config ? default_qwen_voice(*config, files.voices) : std::string();
}

Status find_voice(const SpeechFiles& files, const std::string& voice) {
  SYRINX_TRY(const qwen_tts::Config config, read_qwen_config(files.checkpoint));
  return find_qwen_voice(config, files.voices, voice);
}

// An exported voice, or a recording that can be cloned.
Status check_content(const qwen_tts::Config& config, const std::string& path) {
  SYRINX_TRY(const WatchedFile file, WatchedFile::open(path));
  if (is_qwen_voice_file(file.bytes())) {
    const auto voice = parse_qwen_voice(file.bytes(), path, config);
    return voice ? Status() : tl::unexpected(voice.error());
  }
  const auto reference = qwen_tts::read_reference(file.bytes(), QwenModel::kSampleRateHz, {}, path);
  return reference ? Status() : tl::unexpected(reference.error());
}

Status check_voice(const SpeechFiles& files, const std::string& voice) {
  SYRINX_TRY(const qwen_tts::Config config, read_qwen_config(files.checkpoint));
  SYRINX_TRY_VOID(find_qwen_voice(config, files.voices, voice));
  if (config.kind != qwen_tts::Kind::kBase) return {};
  SYRINX_TRY(const QwenRecording recording,
             find_qwen_recording(files.voices, voice.empty() ? default_qwen_voice(config, files.voices) : voice));
  const auto words = read_qwen_words(recording);
  if (!words) return tl::unexpected(words.error());
  return check_content(config, recording.path);
}

Status check_voice_file(const SpeechFiles& files, const std::string& name, const std::string& path) {
  SYRINX_TRY_VOID(check_voice_name(name));
  SYRINX_TRY(const qwen_tts::Config config, read_qwen_config(files.checkpoint));
  SYRINX_TRY_VOID(check_qwen_clones(config));
  return check_content(config, path);
}

std::vector<ModelPart> parts(const SpeechFiles& files) {
  std::vector<ModelPart> parts;
  const auto config = read_qwen_config(files.checkpoint);
  if (config) parts.push_back({"voices", std::to_string(list_qwen_voices(*config, files.voices).size())});
  auto codec = qwen_tts::find_codec(files.voices);
  if (codec)
    parts.push_back({"codec", std::move(*codec)});
  else
    parts.push_back({"codec", "", codec.error()});
  return parts;
}

Result<bool> describe(const InspectedFile& file, FileDescription& out) {
  if (out.kind.empty()) return describe_qwen_config(file.path, out);
  if (out.kind != "safetensors") return false;
  SYRINX_TRY(const Safetensors tensors, Safetensors::parse(file.bytes, file.path));
  describe_qwen_tensors(tensors, out);
  return !out.model.empty();
}

std::vector<std::string> languages(const SpeechFiles& files) {
  const auto config = read_qwen_config(files.checkpoint);
  return config ? qwen_language_codes(*config) : std::vector<std::string>();
}

std::vector<std::string_view> lacking(const SpeechFiles& files) {
  const auto config = read_qwen_config(files.checkpoint);
  return config ? qwen_lacking_knobs(*config) : std::vector<std::string_view>();
}

}  // namespace

const SpeechFamily& qwen_tts_family() {
  static const SpeechFamily family{
      .kind = "qwen-tts",
      .title = "Qwen3-TTS",
      .maker = "Alibaba",
      .url = "https://huggingface.co/collections/Qwen/qwen3-tts",
      .files = "config.json of Qwen3-TTS",
      .recognise = recognise,
      .find_files = find_files,
      .load = [](SpeechEngineOptions options) { return QwenEngine::load(std::move(options)); },
      .voices = list,
      .default_voice = default_voice,
      .spoken_languages = languages,
      .known_voices = known_qwen_voices(),
      .find_voice = find_voice,
      .check_voice = check_voice,
      .check_voice_file = check_voice_file,
      .lacking = lacking,
      .parts = parts,
      .describe = describe,
      .remote_parts = qwen_remote_parts,
      .traits = {.rate_hz = QwenModel::kSampleRateHz, .clones = true, .precisions = kPrecisions},
      .knobs = qwen_knobs()};
  return family;
}

}  // namespace syrinx
