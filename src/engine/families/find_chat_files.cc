#include "engine/families/find_chat_files.h"

#include "engine/families/default_models.h"
#include "engine/families/families.h"
#include "store/installed_model.h"
#include "store/model_manifest.h"
#include "store/paths.h"

namespace syrinx {
namespace {

bool is_path(const std::string& model, const std::string& models_folder) {
  if (model.find('/') != std::string::npos) return true;
  return model.find('.') != std::string::npos && !is_there(installed_folder(model, models_folder));
}

const ChatFamily* family_of(const ModelPlace& place) {
  if (place.is_folder) {
    const auto manifest = read_manifest(place.path);
    if (const ChatFamily* const named = manifest ? find_chat_family(manifest->kind) : nullptr) return named;
  }
  for (const ChatFamily* const family : chat_families())
    if (family->recognise(place)) return family;
  return nullptr;
}

tl::unexpected<Error> no_language_model(const ModelPlace& place) {
  std::string files;
  for (const ChatFamily* const family : chat_families())
    files += (files.empty() ? "" : ", ") + std::string(family->files);
  if (!place.is_folder)
    return fail(Code::kUnsupported, "'{}' is no language model that is known here ({})", place.path, files);
  return fail(Code::kNotFound, "the folder '{}' holds no language model ({}); fetch one with `syrinx pull {}`",
              place.path, files, kDefaultChatModel);
}

}  // namespace

Result<ChatFiles> find_chat_files(const std::string& model, const std::string& models_folder) {
  ModelPlace place{.name = resolved_name(model.empty() ? kDefaultChatModel : model, models_folder),
                   .path = {},
                   .models_folder = models_folder};
  const bool path = is_path(place.name, models_folder);
  place.path = path ? place.name : installed_folder(place.name, models_folder);
  if (!is_there(place.path)) {
    if (path) return fail(Code::kNotFound, "there is no file or folder '{}'", place.name);
    return not_installed(place.name);
  }
  place.is_folder = is_folder(place.path);
  const ChatFamily* const family = family_of(place);
  if (family == nullptr) return no_language_model(place);
  SYRINX_TRY(ChatFiles files, family->find_files(place));
  files.name = place.name;
  files.family = family;
  return files;
}

}  // namespace syrinx
