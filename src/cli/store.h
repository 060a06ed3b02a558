// Shared by pull, list and rm.
#pragma once

#include <string>

#include "base/result.h"
#include "store/model_store.h"

namespace syrinx::cli {

inline constexpr const char* kCatalogueHelp = "A catalogue file, or a folder of them, instead of the built-in one";

// The user's store; an empty path stands for the built-in catalogue.
Result<ModelStore> open_store(const std::string& catalogue_path);

}  // namespace syrinx::cli
