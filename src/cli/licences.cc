#include "cli/licences.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "base/version.h"
#include "cli/output.h"
#include "cli/third_party.h"
#include "engine/families/default_models.h"
#include "store/model_store.h"

namespace syrinx::cli {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> entries(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error); !error && entry != fs::directory_iterator(); entry.increment(error))
    found.push_back(entry->path());
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

Status print_licences() {
  std::string text = fmt::format("Syrinx {} is under the Apache License 2.0 (LICENSE in the sources).\n\n{}\n",
                                 version(), kThirdPartyPage);
  text += "# Installed models\n\n";
  SYRINX_TRY(const ModelStore store, ModelStore::open());
  bool any = false;
  for (const ModelStatus& model : store.list()) {
    if (model.state != ModelState::kInstalled) continue;
    any = true;
    text += fmt::format("{}: {}\n", model.name, model.licence);
    for (const fs::path& licence : entries(fs::path(model.folder) / "licences")) text += "  " + licence.string() + "\n";
  }
  if (!any) text += fmt::format("None; `syrinx pull {}` fetches the built-in voice.\n", kDefaultModel);
  return print(text);
}

}  // namespace syrinx::cli
