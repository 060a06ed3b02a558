#include "engine/families/hum/hum_family.h"

#include <filesystem>
#include <string_view>

#include "base/json.h"
#include "engine/families/hum/hum_engine.h"
#include "store/paths.h"

namespace syrinx {
namespace {

constexpr Precision kPrecisions[] = {Precision::kF32};

constexpr Knob kKnobs[] = {
    {.name = "pitch",
     .kind = Knob::Kind::kNumber,
     .least = 0.5,
     .most = 2,
     .help = "0.5 to 2 times the voice's own; 1",
     .initial = 1},
};

bool recognise(const ModelPlace& place) {
  const auto file = MappedFile::open((std::filesystem::path(place.path) / "config.json").string());
  if (!file) return false;
  const auto bytes = file->bytes();
  const auto config = parse_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, file->path());
  const Json* const type = config ? config->find("model_type") : nullptr;
  return type != nullptr && type->string() != nullptr && *type->string() == "hum";
}

Result<SpeechFiles> find_files(const ModelPlace& place) {
  SpeechFiles files;
  files.checkpoint = (std::filesystem::path(place.path) / "model.safetensors").string();
  files.voices = place.path;
  if (!is_there(files.checkpoint)) return fail(Code::kNotFound, "there is no '{}'", files.checkpoint);
  return files;
}

Result<hum::Voices> voices_of(const SpeechFiles& files) {
  SYRINX_TRY(const MappedFile file, MappedFile::open(files.checkpoint));
  return hum::read_voices(file);
}

Result<std::vector<VoiceEntry>> list(const SpeechFiles& files) {
  SYRINX_TRY(const hum::Voices voices, voices_of(files));
  std::vector<VoiceEntry> entries;
  for (const auto& [name, voice] : voices) entries.push_back({.name = name});
  return entries;
}

std::string default_voice(const SpeechFiles& files) {
  const auto voices = voices_of(files);
  return voices ? voices->begin()->first : "";
}

Status find_voice(const SpeechFiles& files, const std::string& voice) {
  SYRINX_TRY(const hum::Voices voices, voices_of(files));
  if (voices.contains(voice)) return {};
  return fail(Code::kNotFound, "there is no voice '{}'; `syrinx voices` lists them", voice);
}

Status check_voice_file(const SpeechFiles& /*files*/, const std::string& name, const std::string& /*path*/) {
  return fail(Code::kUnsupported, "the voice '{}' cannot be added: those that hum stand in their model", name);
}

Result<bool> describe(const InspectedFile& /*file*/, FileDescription& out) {
  for (const auto& [name, value] : out.facts)
    if (name == "model" && value == "hum") out.model = "hum";
  return out.model == "hum";
}

}  // namespace

const SpeechFamily& hum_family() {
  static const SpeechFamily family{
      .kind = "hum",
      .title = "Hum",
      .maker = "Syrinx",
      .url = "",
      .files = "config.json of Hum",
      .recognise = recognise,
      .find_files = find_files,
      .load = [](SpeechEngineOptions options) { return HumEngine::load(std::move(options)); },
      .voices = list,
      .default_voice = default_voice,
      .find_voice = find_voice,
      .check_voice = find_voice,
      .check_voice_file = check_voice_file,
      .describe = describe,
      .traits = {.rate_hz = hum::kSampleRateHz, .precisions = kPrecisions},
      .knobs = kKnobs};
  return family;
}

}  // namespace syrinx
