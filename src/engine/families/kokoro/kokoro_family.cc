#include "engine/families/kokoro/kokoro_family.h"

#include <filesystem>
#include <system_error>

#include "base/mapped_file.h"
#include "base/watched_file.h"
#include "engine/families/kokoro/kokoro_engine.h"
#include "engine/families/kokoro/kokoro_reader.h"
#include "models/kokoro/checkpoint.h"
#include "models/kokoro/voice.h"
#include "store/paths.h"
#include "tensor/zip.h"

namespace syrinx {
namespace {

namespace fs = std::filesystem;

constexpr Precision kPrecisions[] = {Precision::kInt8, Precision::kF32};

constexpr Knob kKnobs[] = {
    {.name = "speed",
     .kind = Knob::Kind::kNumber,
     .least = 0.25,
     .most = 4,
     .help = "0.25 to 4 times the usual pace; 1",
     .initial = 1},
    {.name = "noise", .kind = Knob::Kind::kFlag, .help = "add the source noise that the model was trained with"},
    {.name = "phonemes", .kind = Knob::Kind::kFlag, .help = "the text is phonemes in the model's alphabet"},
    {.name = "dictionary",
     .kind = Knob::Kind::kText,
     .type = "FILE",
     .help = "your own words and their phonemes",
     .use = Knob::Use::kLoad},
    {.name = "lexicon",
     .kind = Knob::Kind::kText,
     .type = "FOLDER",
     .help = "folder of the English lexicon, if not the installed one",
     .use = Knob::Use::kLoad},
};

// By their makers' descriptions.
constexpr std::pair<const char*, const char*> kKnownVoices[] = {
    {"alloy", "af_alloy"}, {"ash", "am_michael"}, {"ballad", "bm_george"}, {"cedar", "am_fenrir"},
    {"coral", "af_bella"}, {"echo", "am_echo"},   {"fable", "bm_fable"},   {"marin", "af_kore"},
    {"nova", "af_nova"},   {"onyx", "am_onyx"},   {"sage", "af_sarah"},    {"shimmer", "af_sky"},
    {"verse", "am_puck"}};

// The checkpoint of a folder: its only .onnx, or, where it has none, its only .pth.  Empty where there is neither.
Result<std::string> checkpoint_in(const std::string& folder) {
  const FileKind kinds[] = {{".onnx", {}}, {".pth", {}}};
  return only_file(folder, kinds);
}

// ONNX begins with the version of its format, field 1; a PyTorch file is a zip archive.  The length that safetensors
// begin with may have the same first byte; their header follows it.
bool has_magic(const std::string& path) {
  const auto file = MappedFile::open(path);
  if (!file) return false;
  const auto bytes = file->bytes();
  const bool is_safetensors = bytes.size() > 8 && bytes[8] == std::byte{'{'};
  return ZipArchive::looks_like(bytes) || (!is_safetensors && !bytes.empty() && bytes[0] == std::byte{8});
}

bool recognise(const ModelPlace& place) {
  if (place.is_folder) {
    const auto found = checkpoint_in(place.path);
    return !found || !found->empty();
  }
  const std::string suffix = fs::path(place.path).extension().string();
  return suffix == ".onnx" || suffix == ".pth" || has_magic(place.path);
}

std::string lexicon_near(const fs::path& folder, const std::string& models_folder) {
  const fs::path candidates[] = {folder / "g2p",
                                 folder / "english-g2p",
                                 folder / ".." / "g2p",
                                 folder / ".." / "english-g2p",
                                 folder,
                                 fs::path(models_folder) / "english-g2p"};
  for (const fs::path& candidate : candidates) {
    if (!is_there(candidate / "us_gold.json")) continue;
    // Not by spelling: a folder that is a link has another parent than its name says.
    std::error_code error;
    const fs::path resolved = fs::canonical(candidate, error);
    return (error ? candidate : resolved).string();
  }
  return {};
}

Result<SpeechFiles> find_files(const ModelPlace& place) {
  SpeechFiles files;
  files.checkpoint = place.path;
  fs::path folder = place.path;
  if (place.is_folder) {
    SYRINX_TRY(files.checkpoint, checkpoint_in(place.path));
    if (files.checkpoint.empty())
      return fail(Code::kNotFound, "the folder '{}' holds no checkpoint (.onnx or .pth of Kokoro)", place.path);
  } else {
    folder = folder.parent_path().empty() ? fs::path(".") : folder.parent_path();
  }
  files.voices = (folder / "voices").string();
  files.lexicon = lexicon_near(folder, place.models_folder);
  return files;
}

Result<SpeechFiles> find_reader_files(const ModelPlace& place) {
  SpeechFiles files;
  const fs::path parent = fs::path(place.path).parent_path();
  const fs::path folder = place.is_folder ? fs::path(place.path) : parent.empty() ? fs::path(".") : parent;
  files.checkpoint = place.path;  // what is compiled of the lexicon is kept where speech keeps it
  if (place.is_folder) files.checkpoint += "/";
  files.lexicon = lexicon_near(folder, place.models_folder);
  return files;
}

VoiceEntry entry_of(const kokoro::VoiceInfo& voice) {
  return {.name = voice.name,
          .language = voice.language,
          .language_code = voice.language_code,
          .gender = voice.gender,
          .reads_text = reads_texts_for(voice)};
}

Result<std::vector<VoiceEntry>> list(const SpeechFiles& files) {
  SYRINX_TRY(const std::vector<kokoro::VoiceInfo> voices, kokoro::list_voices(files.voices));
  std::vector<VoiceEntry> entries;
  entries.reserve(voices.size());
  for (const kokoro::VoiceInfo& voice : voices) entries.push_back(entry_of(voice));
  return entries;
}

Result<std::vector<std::string>> blended(std::string_view voice) {
  SYRINX_TRY(const std::vector<kokoro::VoicePart> parts, kokoro::parse_voice(voice));
  std::vector<std::string> names;
  names.reserve(parts.size());
  for (const kokoro::VoicePart& part : parts) names.push_back(part.name);
  return names;
}

// How wide the model's styles are stands in its checkpoint; the file of a voice holds whole rows in any case.
Status check_content(const WatchedFile& file, const std::string& name) {
  constexpr size_t kColumnBytes = kokoro::kVoiceRows * sizeof(float);
  const size_t bytes = file.bytes().size();
  if (bytes == 0 || bytes % kColumnBytes != 0)
    return fail(Code::kDataLoss, "voice '{}' has {} bytes, and those of Kokoro have a multiple of {}; give such a file",
                name, bytes, kColumnBytes);
  const auto voice = kokoro::Voice::parse(file.bytes(), name, bytes / kColumnBytes);
  SYRINX_TRY_VOID(file.check_all());
  if (!voice) return tl::unexpected(voice.error());
  return {};
}

Status find_voice(const SpeechFiles& files, const std::string& voice) {
  SYRINX_TRY(const std::vector<kokoro::VoicePart> parts, kokoro::parse_voice(voice));
  for (const kokoro::VoicePart& part : parts) {
    const auto file = kokoro::open_voice(files.voices, part);
    if (!file) return tl::unexpected(file.error());
  }
  return {};
}

Status check_voice(const SpeechFiles& files, const std::string& voice) {
  SYRINX_TRY(const std::vector<kokoro::VoicePart> parts, kokoro::parse_voice(voice));
  for (const kokoro::VoicePart& part : parts) {
    SYRINX_TRY(const WatchedFile file, kokoro::open_voice(files.voices, part));
    SYRINX_TRY_VOID(check_content(file, part.name));
  }
  SYRINX_TRY_VOID(KokoroEngine::check_lexicon(files));
  return KokoroEngine::check_language(voice);
}

Status check_voice_file(const SpeechFiles& /*files*/, const std::string& name, const std::string& path) {
  SYRINX_TRY_VOID(check_voice_name(name));
  SYRINX_TRY(const WatchedFile file, WatchedFile::open(path));
  return check_content(file, name);
}

std::vector<ModelPart> parts(const SpeechFiles& files) {
  std::vector<ModelPart> found;
  const auto voices = kokoro::list_voices(files.voices);
  if (!voices || voices->empty())
    found.push_back(
        {"voices", "none",
         Error{Code::kNotFound, fmt::format("no voices in '{}'; fetch them with `syrinx pull kokoro`", files.voices)}});
  else
    found.push_back({"voices", fmt::format("{} in {}", voices->size(), files.voices)});
  const Status lexicon = KokoroEngine::check_lexicon(files);
  if (lexicon)
    found.push_back({"lexicon", files.lexicon});
  else
    found.push_back({"lexicon", "none", lexicon.error()});
  return found;
}

// The maker's names of the weights.
Result<bool> describe(const InspectedFile& file, FileDescription& out) {
  if (out.kind != "onnx" && out.kind != "torch") return false;
  SYRINX_TRY(MappedFile mapped, MappedFile::open(file.path));
  const auto checkpoint = kokoro::Checkpoint::open(std::move(mapped));
  if (!checkpoint) return false;
  out.model = "kokoro";
  for (const std::string& name : (*checkpoint)->names())
    if (const auto shape = (*checkpoint)->shape(name); shape) out.weights.push_back({name, "", *shape, 0});
  return true;
}

}  // namespace

const SpeechFamily& kokoro_family() {
  static const SpeechFamily family{
      .kind = "kokoro",
      .title = "Kokoro",
      .maker = "hexgrad",
      .url = "https://huggingface.co/hexgrad/Kokoro-82M",
      .files = ".onnx or .pth of Kokoro",
      .recognise = recognise,
      .find_files = find_files,
      .load = [](SpeechEngineOptions options) { return KokoroEngine::load(std::move(options)); },
      .find_reader_files = find_reader_files,
      .load_reader = [](SpeechEngineOptions options) { return KokoroReader::load(std::move(options)); },
      .voices = list,
      .default_voice = [](const SpeechFiles&) { return std::string(kDefaultVoice); },
      .describe_voice = [](const std::string& name) { return entry_of(kokoro::describe_voice(name)); },
      .blended = blended,
      .known_voices = kKnownVoices,
      .find_voice = find_voice,
      .check_voice = check_voice,
      .check_voice_file = check_voice_file,
      .parts = parts,
      .describe = describe,
      .traits = {.rate_hz = kokoro::kSampleRateHz, .word_times = true, .takes_bytes = true, .precisions = kPrecisions},
      .knobs = kKnobs};
  return family;
}

}  // namespace syrinx
