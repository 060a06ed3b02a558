#include "engine/families/find_speech_files.h"

#include <filesystem>

#include "engine/families/default_models.h"
#include "engine/families/families.h"
#include "engine/speech/remote_files.h"
#include "engine/speech/speech_family.h"
#include "store/catalogue.h"
#include "store/installed_model.h"
#include "store/model_manifest.h"
#include "store/paths.h"

namespace syrinx {
namespace {

// A manifest decides; what lies in the place is looked at where there is none, or none that names a family.
const SpeechFamily* family_of(const ModelPlace& place) {
  if (place.is_folder) {
    const auto manifest = read_manifest(place.path);
    if (const SpeechFamily* const named = manifest ? find_speech_family(manifest->kind) : nullptr) return named;
  }
  for (const SpeechFamily* const family : speech_families())
    if (family->recognise(place)) return family;
  return nullptr;
}

// The model need not be installed.
const SpeechFamily* family_in_catalogue(const std::string& name) {
  const auto catalogue = Catalogue::built_in();
  if (!catalogue) return nullptr;
  const auto entry = catalogue->find(name);
  return entry ? find_speech_family((*entry)->kind) : nullptr;
}

ModelPlace named_place(const std::string& model, const std::string& models_folder) {
  return {.name = resolved_name(model.empty() ? kDefaultModel : model, models_folder),
          .path = {},
          .models_folder = models_folder};
}

tl::unexpected<Error> no_checkpoint(const ModelPlace& place) {
  std::string files;
  for (const SpeechFamily* const family : speech_families())
    files += (files.empty() ? "" : ", ") + std::string(family->files);
  if (!place.is_folder)
    return fail(Code::kUnsupported, "'{}' is no checkpoint of a model that speaks ({})", place.path, files);
  return fail(Code::kNotFound, "the folder '{}' holds no checkpoint ({}); fetch a model with `syrinx pull {}`",
              place.path, files, kDefaultModel);
}

}  // namespace

Result<SpeechFiles> find_speech_files(const std::string& model, const std::string& models_folder) {
  ModelPlace place = named_place(model, models_folder);
  const bool is_path = names_path(place.name);
  place.path = is_path ? place.name : installed_folder(place.name, models_folder);
  if (is_remote(place.name)) {
    SYRINX_TRY(place.path, fetch(place.name));
  }
  if (!is_there(place.path)) {
    if (is_path) return fail(Code::kNotFound, "there is no file or folder '{}'", place.name);
    return not_installed(place.name);
  }
  place.is_folder = is_folder(place.path);
  const SpeechFamily* const family = family_of(place);
  if (family == nullptr) return no_checkpoint(place);
  SYRINX_TRY(SpeechFiles files, family->find_files(place));
  files.name = place.name;
  files.family = family;
  return files;
}

Result<SpeechFiles> find_reader_files(const std::string& model, const std::string& models_folder) {
  ModelPlace place = named_place(model, models_folder);
  if (is_remote(place.name))
    return fail(Code::kInvalidArgument, "nothing is fetched to read a text; give an installed model instead of '{}'",
                place.name);
  const bool is_path = names_path(place.name);
  place.path = is_path ? place.name : installed_folder(place.name, models_folder);
  const bool is_here = is_there(place.path);
  if (is_path && !is_here) return fail(Code::kNotFound, "there is no file or folder '{}'", place.name);
  place.is_folder = !is_here || is_folder(place.path);
  const SpeechFamily* family = is_here ? family_of(place) : nullptr;
  if (family == nullptr && !is_path) family = family_in_catalogue(place.name);
  if (family == nullptr && is_here) return no_checkpoint(place);
  if (family == nullptr) return not_installed(place.name);
  if (family->find_reader_files == nullptr) return no_text_reader(family->title);
  SYRINX_TRY(SpeechFiles files, family->find_reader_files(place));
  files.name = place.name;
  files.family = family;
  return files;
}

}  // namespace syrinx
