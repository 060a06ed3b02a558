#include "engine/recognition/recognition_files.h"

#include <filesystem>
#include <system_error>

#include "store/installed_model.h"
#include "store/paths.h"

namespace syrinx {

namespace fs = std::filesystem;

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
