#include "server/model_id.h"

#include <algorithm>
#include <filesystem>

namespace syrinx::server {

std::string model_id(const std::string& model) {
  if (model.find('/') == std::string::npos) return model;
  const std::filesystem::path path = std::filesystem::path(model).lexically_normal();
  return path.has_filename() ? path.stem().string() : path.parent_path().stem().string();
}

bool names_one_of(std::string_view sentence, std::initializer_list<std::string_view> paths) {
  return std::any_of(paths.begin(), paths.end(), [&](std::string_view path) {
    return !path.empty() && sentence.find(path) != std::string_view::npos;
  });
}

}  // namespace syrinx::server
