#include "engine/recognition/recognition_files.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <vector>

#include "base/json.h"
#include "base/mapped_file.h"
#include "store/installed_model.h"
#include "store/paths.h"
#include "tensor/safetensors_shards.h"

namespace syrinx {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxConfigBytes = size_t{1} << 20;

bool is_path(const std::string& model, const std::string& models_folder) {
  if (model.find('/') != std::string::npos) return true;
  return model.find('.') != std::string::npos && !is_there(installed_folder(model, models_folder));
}

// The file that the families' own readers take of such a folder.  Empty where there is none.
Result<std::string> checkpoint_in(const fs::path& folder) {
  if (is_there(folder / "model.bin")) return (folder / "model.bin").string();
  const FileKind kinds[] = {{".nemo", {}},
                            {".safetensors", {"model.safetensors", "model.safetensors.index.json"}},
                            {".ckpt", {}},
                            {".pt", {"model.pt"}}};
  return only_file(folder, kinds);
}

// Hugging Face's configurations name the kind of model; those of the transducers' maker name a class, as the
// configuration in an archive does.
Result<RecogniserFamily> family_of_config(const fs::path& path) {
  if (!is_there(path))
    return fail(Code::kNotFound, "'{}' is not there; it must lie beside the weights, since it describes them",
                path.string());
  SYRINX_TRY(const MappedFile file, MappedFile::open(path.string()));
  const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  SYRINX_TRY(const Json config, parse_json(text, path.string(), {.max_bytes = kMaxConfigBytes}));
  const Json* const kind = config.find("model_type");
  const std::string name = kind != nullptr && kind->string() != nullptr ? *kind->string() : "";
  if (name == "whisper") return RecogniserFamily::kWhisper;
  for (const char* kind_of_transducer : {"parakeet", "nemotron_asr", "nemotron3_5_asr"})
    if (name.starts_with(kind_of_transducer)) return RecogniserFamily::kTransducer;
  if (config.find("preprocessor") != nullptr && config.find("encoder") != nullptr) return RecogniserFamily::kTransducer;
  return fail(Code::kUnsupported, "'{}' describes {}; Whisper and FastConformer models recognise speech here",
              path.string(), name.empty() ? "no model that is known" : "a model of the kind '" + name + "'");
}

Result<RecogniserFamily> family_of(const fs::path& checkpoint) {
  const std::string kind = checkpoint.extension().string();
  const fs::path folder = checkpoint.parent_path();
  if (kind == ".bin") return RecogniserFamily::kWhisper;
  if (kind == ".nemo" || kind == ".ckpt") return RecogniserFamily::kTransducer;
  if (kind == ".pt")
    return is_there(folder / "model_config.yaml") ? RecogniserFamily::kTransducer : RecogniserFamily::kWhisper;
  if (kind == ".safetensors" || is_safetensors_index(checkpoint.string()))
    return family_of_config(folder / "config.json");
  return fail(
      Code::kUnsupported,
      "'{}' is not a checkpoint of a recogniser: model.bin, .safetensors or .pt of Whisper, .nemo, .ckpt, .pt or "
      ".safetensors of a FastConformer",
      checkpoint.string());
}

}  // namespace

Result<RecognitionFiles> find_recognition_files(const std::string& model, const std::string& models_folder) {
  RecognitionFiles files;
  files.name = model.empty() ? kDefaultRecogniser : model;
  files.installed = !is_path(files.name, models_folder);
  const fs::path place(files.installed ? installed_folder(files.name, models_folder) : files.name);
  if (!is_there(place)) {
    if (!files.installed) return fail(Code::kNotFound, "there is no file or folder '{}'", files.name);
    return not_installed(files.name);
  }
  files.checkpoint = place.string();
  if (is_folder(place)) {
    SYRINX_TRY(files.checkpoint, checkpoint_in(place));
  }
  if (files.checkpoint.empty())
    return fail(
        Code::kNotFound,
        "the folder '{}' holds no recogniser (model.bin, .safetensors or .pt of Whisper, .nemo, .safetensors, .ckpt or "
        ".pt of a FastConformer); fetch one with `syrinx pull {}`",
        place.string(), kDefaultRecogniser);
  SYRINX_TRY(files.family, family_of(files.checkpoint));
  files.voice_activity = voice_activity_file(models_folder);
  return files;
}

std::string voice_activity_file(const std::string& models_folder) {
  std::string found;
  std::error_code error;
  for (fs::directory_iterator entry(installed_folder(kVoiceActivityModel, models_folder), error);
       !error && entry != fs::directory_iterator(); entry.increment(error))
    if (entry->path().extension() == ".bin") found = entry->path().string();
  return found;
}

std::string packed_folder(const UserPaths& paths, const RecognitionFiles& files) {
  return packed_folder_of(paths, files.checkpoint, !files.installed);
}

}  // namespace syrinx
