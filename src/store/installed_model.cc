#include "store/installed_model.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <system_error>

#include "store/catalogue.h"
#include "store/catalogue_aliases.h"

namespace syrinx {

namespace fs = std::filesystem;

bool names_path(const std::string& model) {
  if (model.find_first_of("/(") != std::string::npos) return true;
  if (model.find('.') == std::string::npos) return false;
  std::string name = model;
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const bool is_variant = name.find(':') < name.find('.') && is_model_name(name);
  std::error_code error;
  return !is_variant || fs::exists(model, error);
}

std::string installed_folder(const std::string& name, const std::string& models_folder) {
  const fs::path folder = fs::path(models_folder) / model_folder_name(name);
  std::error_code error;
  if (fs::exists(folder, error)) return folder.string();
  const auto catalogue = Catalogue::built_in();
  if (!catalogue) return folder.string();
  const auto entry = catalogue->find(name);
  return entry ? (fs::path(models_folder) / model_folder_name((*entry)->name)).string() : folder.string();
}

std::string resolved_name(const std::string& name, const std::string& models_folder) {
  std::error_code error;
  if (name.find_first_of("/.") != std::string::npos && fs::exists(name, error)) return name;
  if (is_model_name(name) && fs::exists(fs::path(models_folder) / model_folder_name(name), error)) return name;
  return catalogue_name(name);
}

tl::unexpected<Error> not_installed(const std::string& name) {
  const auto catalogue = Catalogue::built_in();
  if (catalogue && !catalogue->find(name))
    return fail(Code::kNotFound,
                "no model is called '{}'; `syrinx list` names those that can be had, and a path holds a '/' or a '.'",
                name);
  return fail(Code::kNotFound, "model '{}' is not installed; fetch it with `syrinx pull {}`", name, name);
}

std::string packed_folder_of(const UserPaths& paths, const std::string& checkpoint, bool is_path) {
  const std::string folder = fs::path(checkpoint).parent_path().filename().string();
  return paths.cache + "/packed/" + (is_path || folder.empty() ? "files" : folder);
}

}  // namespace syrinx
