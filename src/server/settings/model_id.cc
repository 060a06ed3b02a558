#include "server/settings/model_id.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/in_quotes.h"
#include "store/catalogue_aliases.h"
#include "store/foreign_names.h"
#include "text/unicode.h"

namespace syrinx::server {
namespace {

// "-YYYY-MM-DD", whether or not there was such a day.
bool is_edition(std::string_view text) {
  constexpr std::string_view kForm = "-0000-00-00";
  return std::equal(text.begin(), text.end(), kForm.begin(), kForm.end(),
                    [](char c, char form) { return form == '0' ? text::is_ascii_digit(c) : c == form; });
}

// Names of the same weights: the model's own, where the module has another id, and those of other programs.
std::vector<std::string> other_names(const std::string& model) {
  std::vector<std::string> names = catalogue_aliases(catalogue_name(model));
  names.push_back(model_id(model));
  return names;
}

}  // namespace

std::string model_id(const std::string& model) {
  std::error_code error;
  if (!std::filesystem::exists(model, error))
    if (std::string known = catalogue_name(model); known != model) return known;
  if (model.find('/') == std::string::npos) return model;
  const std::filesystem::path path = std::filesystem::path(model).lexically_normal();
  return path.has_filename() ? path.stem().string() : path.parent_path().stem().string();
}

ModelNames::ModelNames(const Settings& settings, const std::string& model, std::string_view use)
    : id_(settings.module_id.empty() ? model_id(model) : settings.module_id),
      names_(settings.module_names),
      aliases_(other_names(model)),
      use_(use) {}

bool ModelNames::has(std::string_view name) const {
  return name == id_ || std::find(names_.begin(), names_.end(), name) != names_.end();
}

bool ModelNames::are_called(std::string_view name) const {
  return name.empty() || has(name) ||
         std::any_of(aliases_.begin(), aliases_.end(), [&](const auto& alias) { return same_name(alias, name); }) ||
         is_one_of(name, foreign_names(use_));
}

bool names_one_of(std::string_view sentence, std::initializer_list<std::string_view> paths) {
  return std::any_of(paths.begin(), paths.end(), [&](std::string_view path) {
    return !path.empty() && sentence.find(path) != std::string_view::npos;
  });
}

bool is_one_of(std::string_view name, std::span<const std::string_view> known) {
  return std::any_of(known.begin(), known.end(), [&](std::string_view each) {
    return name == each || (name.starts_with(each) && is_edition(name.substr(each.size())));
  });
}

HttpError no_model(bool is_there, const char* does, std::string_view name) {
  return {.status = 404,
          .message = is_there ? fmt::format("there is no model {}; GET /v1/models lists all", in_quotes(name))
                              : fmt::format("no model of this server {}; GET /v1/models lists all", does),
          .param = "model",
          .code = "model_not_found"};
}

}  // namespace syrinx::server
