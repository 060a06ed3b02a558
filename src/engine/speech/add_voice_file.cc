#include "engine/speech/add_voice_file.h"

#include "base/watched_file.h"

namespace syrinx {

Status add_voice_file(SpeechEngine& engine, const std::string& name, const std::string& path) {
  SYRINX_TRY(const WatchedFile file, WatchedFile::open(path));
  Status added = engine.add_voice(name, file.bytes());
  Status unchanged = file.check_all();
  if (added && !unchanged) engine.remove_voice(name);
  return unchanged ? added : unchanged;
}

}  // namespace syrinx
