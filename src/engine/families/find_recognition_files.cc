#include "engine/families/find_recognition_files.h"

#include <filesystem>
#include <optional>
#include <vector>

#include "base/json.h"
#include "base/mapped_file.h"
#include "engine/families/default_models.h"
#include "engine/families/families.h"
#include "engine/recognition/recognition_family.h"
#include "store/installed_model.h"
#include "store/model_manifest.h"
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

std::string joined(const char* between, const char* RecognitionFamily::*member) {
  std::string text;
  for (const RecognitionFamily* const family : recognition_families())
    text += (text.empty() ? "" : between) + std::string(family->*member);
  return text;
}

// Weights in .safetensors do not tell whose they are.
Result<std::optional<Json>> config_beside(const fs::path& checkpoint) {
  if (checkpoint.extension() != ".safetensors" && !is_safetensors_index(checkpoint.string()))
    return std::optional<Json>();
  const fs::path path = checkpoint.parent_path() / "config.json";
  if (!is_there(path))
    return fail(Code::kNotFound, "'{}' is not there; it must lie beside the weights, since it describes them",
                path.string());
  SYRINX_TRY(const MappedFile file, MappedFile::open(path.string()));
  const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  SYRINX_TRY(Json config, parse_json(text, path.string(), {.max_bytes = kMaxConfigBytes}));
  return std::optional(std::move(config));
}

Result<const RecognitionFamily*> family_of(const fs::path& place, const std::string& checkpoint) {
  if (is_folder(place)) {
    const auto manifest = read_manifest(place.string());
    if (const RecognitionFamily* const named = manifest ? find_recognition_family(manifest->kind) : nullptr)
      return named;
  }
  SYRINX_TRY(const std::optional<Json> config, config_beside(checkpoint));
  for (const RecognitionFamily* const family : recognition_families())
    if (family->recognise(checkpoint, config ? &*config : nullptr)) return family;
  if (!config)
    return fail(Code::kUnsupported, "'{}' is no checkpoint of a recogniser: {}", checkpoint,
                joined(", ", &RecognitionFamily::files));
  const std::string name = model_type(*config);
  return fail(Code::kUnsupported, "'{}' describes {}; {} models recognise speech here",
              (fs::path(checkpoint).parent_path() / "config.json").string(),
              name.empty() ? "no model that is known" : "a model of the kind '" + name + "'",
              joined(" and ", &RecognitionFamily::title));
}

}  // namespace

Result<RecognitionFiles> find_recognition_files(const std::string& model, const std::string& models_folder) {
  RecognitionFiles files;
  files.name = resolved_name(model.empty() ? kDefaultRecogniser : model, models_folder);
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
    return fail(Code::kNotFound, "the folder '{}' holds no recogniser ({}); fetch one with `syrinx pull {}`",
                place.string(), joined(", ", &RecognitionFamily::files), kDefaultRecogniser);
  SYRINX_TRY(files.family, family_of(place, files.checkpoint));
  files.voice_activity = voice_activity_file(models_folder);
  return files;
}

}  // namespace syrinx
