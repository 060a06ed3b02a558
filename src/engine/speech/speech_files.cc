#include "engine/speech/speech_files.h"

#include "store/installed_model.h"

namespace syrinx {

std::string packed_folder(const UserPaths& paths, const SpeechFiles& files) {
  return packed_folder_of(paths, files.checkpoint, names_path(files.name));
}

}  // namespace syrinx
