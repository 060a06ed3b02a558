#include "engine/families/find_speech_files.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

#include "engine/families/pocket_tts/remote_files.h"
#include "models/pocket_tts/model.h"
#include "store/installed_model.h"
#include "store/paths.h"

namespace syrinx {
namespace {

namespace fs = std::filesystem;

// The checkpoint of a folder: its only .onnx, or, where it has none, its only .pth.  Empty where there is neither.
Result<std::string> checkpoint_in(const fs::path& folder) {
  const FileKind kinds[] = {{".onnx", {}}, {".pth", {}}};
  return only_file(folder, kinds);
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

bool is_configuration(const fs::path& path) { return path.extension() == ".yaml" || path.extension() == ".yml"; }

bool is_pocket_file(const fs::path& path) { return is_configuration(path) || path.extension() == ".safetensors"; }

bool holds_configuration(const fs::path& folder) {
  std::error_code error;
  for (fs::directory_iterator entry(folder, error); !error && entry != fs::directory_iterator(); entry.increment(error))
    if (is_configuration(entry->path())) return true;
  return false;
}

Result<SpeechFiles> pocket_files(const std::string& name, const fs::path& place) {
  SYRINX_TRY(const pocket::CheckpointPath found, pocket::find_checkpoint(place.string()));
  SpeechFiles files;
  files.name = name;
  files.family = ModelFamily::kPocketTts;
  files.checkpoint = found.weights.empty() ? found.config : found.weights;
  const fs::path config(found.config);
  files.voices = config.has_parent_path() ? config.parent_path().string() : ".";
  return files;
}

}  // namespace

Result<SpeechFiles> find_speech_files(const std::string& model, const std::string& models_folder) {
  SpeechFiles files;
  files.name = model.empty() ? kDefaultModel : model;
  const bool is_path = names_path(files.name);
  fs::path place = is_path ? fs::path(files.name) : fs::path(installed_folder(files.name, models_folder));
  if (is_remote(files.name)) {
    SYRINX_TRY(place, fetch(files.name));
  }
  if (!is_there(place)) {
    if (is_path) return fail(Code::kNotFound, "there is no file or folder '{}'", files.name);
    return not_installed(files.name);
  }
  fs::path folder = place;
  if (is_folder(place)) {
    SYRINX_TRY(files.checkpoint, checkpoint_in(place));
    if (files.checkpoint.empty() && holds_configuration(place)) return pocket_files(files.name, place);
    if (files.checkpoint.empty())
      return fail(Code::kNotFound,
                  "the folder '{}' holds no checkpoint (.onnx or .pth of Kokoro, config.yaml of Pocket TTS); fetch a "
                  "model with `syrinx pull {}`",
                  place.string(), kDefaultModel);
  } else if (is_pocket_file(place)) {
    return pocket_files(files.name, place);
  } else {
    files.checkpoint = place.string();
    folder = place.parent_path().empty() ? fs::path(".") : place.parent_path();
  }
  files.voices = (folder / "voices").string();
  files.lexicon = lexicon_near(folder, models_folder);
  return files;
}

}  // namespace syrinx
