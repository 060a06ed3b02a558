#include "engine/families/fetch_remote_parts.h"

#include <vector>

#include "engine/speech/speech_family.h"
#include "store/installed_model.h"

namespace syrinx {

Status fetch_remote_parts(const std::string& model, const std::string& voice, const FetchReport& report) {
  const auto locate = remote_locator(report);
  std::string place = model;
  if (is_remote(model)) {
    SYRINX_TRY(place, locate(model));
  }
  if (names_path(place)) {
    for (const SpeechFamily* const family : speech_families()) {
      if (family->remote_parts == nullptr) continue;
      SYRINX_TRY(const std::vector<std::string> parts, family->remote_parts(place, model));
      for (const std::string& part : parts) SYRINX_TRY_VOID(locate(part));
    }
  }
  if (is_remote(voice)) SYRINX_TRY_VOID(locate(voice));
  return {};
}

}  // namespace syrinx
