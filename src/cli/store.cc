#include "cli/store.h"

namespace syrinx::cli {

Result<ModelStore> open_store(const std::string& catalogue_path) {
  if (catalogue_path.empty()) return ModelStore::open();
  SYRINX_TRY(auto paths, user_paths());
  SYRINX_TRY(auto catalogue, Catalogue::load(catalogue_path));
  return ModelStore(std::move(paths), std::move(catalogue));
}

}  // namespace syrinx::cli
