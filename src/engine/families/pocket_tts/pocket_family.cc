#include "engine/families/pocket_tts/pocket_family.h"

#include <filesystem>
#include <system_error>

#include "base/mapped_file.h"
#include "engine/families/pocket_tts/inspect_pocket.h"
#include "engine/families/pocket_tts/pocket_engine.h"
#include "engine/families/pocket_tts/pocket_voices.h"
#include "engine/speech/remote_files.h"
#include "models/pocket_tts/chunk_planner.h"
#include "models/pocket_tts/config_file.h"
#include "models/pocket_tts/model.h"
#include "store/paths.h"
#include "tensor/safetensors.h"

namespace syrinx {
namespace {

namespace fs = std::filesystem;

constexpr Precision kPrecisions[] = {Precision::kInt8, Precision::kF32, Precision::kBf16, Precision::kInt4};
// Noise has a deviation of at most 10, the root of the highest temperature: what is beyond a hundred times that is
// never drawn.
constexpr double kMostClamp = 1000;
constexpr double kMostThreshold = 1e6;  // as in a configuration: no logit is beyond it

constexpr Knob kKnobs[] = {
    {.name = "temperature",
     .kind = Knob::Kind::kNumber,
     .least = 0,
     .most = 100,
     .help = "0 is flat, the checkpoint's own is usual (0.3)"},
    {.name = "noise_clamp",
     .kind = Knob::Kind::kNumber,
     .least = 1e-6,
     .most = kMostClamp,
     .help = "keep noise within -X to X"},
    {.name = "eos_threshold",
     .kind = Knob::Kind::kNumber,
     .least = -kMostThreshold,
     .most = kMostThreshold,
     .help = "how sure of its end a chunk of text must be; lower ends earlier"},
    {.name = "frames_after_eos",
     .kind = Knob::Kind::kWhole,
     .least = 0,
     .most = 1000,
     .type = "N",
     .help = "frames of 80 ms spoken after the end"},
    {.name = "decode_steps",
     .kind = Knob::Kind::kWhole,
     .least = 1,
     .most = 64,
     .type = "N",
     .help = "evaluations of the flow head a frame, 1 to 64",
     .flag = "steps"},
    {.name = "max_tokens",
     .kind = Knob::Kind::kWhole,
     .least = 1,
     .most = pocket::kMaxChunkTokens,
     .type = "N",
     .help = "of a chunk of text, 1 to 200; 50 by default"},
};

bool is_configuration(const fs::path& path) { return path.extension() == ".yaml" || path.extension() == ".yml"; }

bool holds_configuration(const fs::path& folder) {
  std::error_code error;
  for (fs::directory_iterator entry(folder, error); !error && entry != fs::directory_iterator(); entry.increment(error))
    if (is_configuration(entry->path())) return true;
  return false;
}

// Weights that a config.json describes are another family's, unless a configuration lies there, too.
bool recognise(const ModelPlace& place) {
  const fs::path path(place.path);
  if (place.is_folder) return holds_configuration(path);
  if (is_configuration(path)) return true;
  if (path.extension() != ".safetensors") return false;
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  return holds_configuration(folder) || !is_there(folder / "config.json");
}

Result<SpeechFiles> find_files(const ModelPlace& place) {
  SYRINX_TRY(const pocket::CheckpointPath found, pocket::find_checkpoint(place.path));
  SpeechFiles files;
  files.checkpoint = found.weights.empty() ? found.config : found.weights;
  const fs::path config(found.config);
  files.voices = config.has_parent_path() ? config.parent_path().string() : ".";
  return files;
}

VoiceEntry entry_of(const PocketVoiceFile& voice, const std::string& language) {
  return {.name = voice.name,
          .language_code = language,
          .path = voice.path,
          .kind = voice.recording ? "recording" : "exported"};
}

Result<std::vector<VoiceEntry>> list(const SpeechFiles& files) {
  std::vector<VoiceEntry> entries;
  for (const PocketVoiceFile& voice : list_pocket_voices(files.voices))
    entries.push_back(entry_of(voice, pocket_language(files.checkpoint)));
  return entries;
}

Result<pocket::ConfigFile> read_config(const std::string& path) {
  SYRINX_TRY(const MappedFile file, MappedFile::open(path));
  const auto bytes = file.bytes();
  return pocket::parse_config(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()), path);
}

Status check_content(const SpeechFiles& files, const std::string& path, bool truncate) {
  SYRINX_TRY(const pocket::CheckpointPath place, pocket::find_checkpoint(files.checkpoint));
  SYRINX_TRY(const pocket::ConfigFile read, read_config(place.config));
  const auto content = read_pocket_voice(path, truncate, read.config.flow_lm);
  if (!content) return tl::unexpected(content.error());
  return {};
}

Status find_voice(const SpeechFiles& files, const std::string& voice) {
  const auto found = find_pocket_voice(voice, files.voices);
  if (!found) return tl::unexpected(found.error());
  return {};
}

Status check_voice(const SpeechFiles& files, const std::string& voice) {
  SYRINX_TRY(const PocketVoiceFile file, find_pocket_voice(voice, files.voices));
  return check_content(files, file.path, /*truncate=*/false);
}

Status check_voice_file(const SpeechFiles& files, const std::string& name, const std::string& path) {
  SYRINX_TRY_VOID(check_voice_name(name));
  return check_content(files, path, /*truncate=*/true);
}

std::vector<ModelPart> parts(const SpeechFiles& files) {
  return {{"voices", fmt::format("{} in {}", list_pocket_voices(files.voices).size(), files.voices)}};
}

Result<bool> describe(const InspectedFile& file, FileDescription& out) {
  if (out.kind.empty() && (file.is_folder ? holds_configuration(file.path) : is_configuration(file.path))) {
    SYRINX_TRY(out, describe_pocket_config(file.path));
    return true;
  }
  if (out.kind != "safetensors") return false;
  SYRINX_TRY(const Safetensors tensors, Safetensors::parse(file.bytes, file.path));
  describe_pocket_tensors(tensors, out);
  return !out.model.empty();
}

// As the loader does: the file of that name beside the configuration comes first.
// `model` is where the configuration came from: what lies beside it there was not fetched with it.
Status add_named(const std::string& place, const fs::path& folder, const std::string& model,
                 std::vector<std::string>& parts) {
  std::error_code error;
  if (!is_remote(place) && is_remote(model) && !place.empty() && !fs::exists(folder / place, error))
    return fail(Code::kNotFound,
                "'{}' names '{}', which lies where it came from, and only files that it names by hf:// or https:// are "
                "fetched; fetch both into one folder and give its path",
                model, place);
  if (is_remote(place) && !fs::exists(folder / remote_file_name(place), error)) parts.push_back(place);
  return {};
}

Result<std::vector<std::string>> remote_parts(const std::string& path, const std::string& model) {
  std::vector<std::string> parts;
  const auto found = pocket::find_checkpoint(path);
  const auto read = found ? read_config(found->config) : tl::unexpected(found.error());
  if (!read) return parts;  // what it is, its loader says
  const pocket::Config& config = read->config;
  const fs::path folder = fs::path(found->config).parent_path();
  SYRINX_TRY_VOID(add_named(config.flow_lm.tokenizer_path, folder, model, parts));
  if (!found->weights.empty()) return parts;
  const bool with_cloning = !config.weights_path.empty();
  SYRINX_TRY_VOID(
      add_named(with_cloning ? config.weights_path : config.weights_path_without_voice_cloning, folder, model, parts));
  SYRINX_TRY_VOID(add_named(config.mimi_weights_path, folder, model, parts));
  return parts;
}

}  // namespace

const SpeechFamily& pocket_tts_family() {
  static const SpeechFamily family{
      .kind = "pocket-tts",
      .title = "Pocket TTS",
      .maker = "Kyutai",
      .url = "https://huggingface.co/kyutai/pocket-tts",
      .files = "config.yaml of Pocket TTS",
      .recognise = recognise,
      .find_files = find_files,
      .load = [](SpeechEngineOptions options) { return PocketEngine::load(std::move(options)); },
      .voices = list,
      .default_voice =
          [](const SpeechFiles& files) {
            return default_pocket_voice(list_pocket_voices(files.voices), files.checkpoint);
          },
      .language = [](const SpeechFiles& files) { return pocket_language(files.checkpoint); },
      .find_voice = find_voice,
      .check_voice = check_voice,
      .check_voice_file = check_voice_file,
      .parts = parts,
      .describe = describe,
      .remote_parts = remote_parts,
      .traits = {.rate_hz = pocket::kSampleRateHz, .clones = true, .precisions = kPrecisions},
      .knobs = kKnobs};
  return family;
}

}  // namespace syrinx
