#include "engine/model_resolve.h"

#include <filesystem>
#include <optional>

namespace syrinx {
namespace {

constexpr uint64_t kMaxConfigBytes = 1 << 20;  // what the YAML reader takes

bool is_config(const CheckpointReference& reference) {
  const std::string suffix = reference.kind == CheckpointReference::Kind::kUrl
                                 ? url_suffix(reference.text)
                                 : std::filesystem::path(reference.path).extension().string();
  return suffix == ".yaml" || suffix == ".yml";
}

}  // namespace

Result<std::string> resolve_model(const std::string& model, const ModelStore& store, CheckpointSource& source) {
  SYRINX_TRY(const CheckpointReference reference, parse_reference(model));
  if (reference.kind != CheckpointReference::Kind::kPath)
    return source.get(reference, GetOptions{.max_bytes = is_config(reference) ? kMaxConfigBytes : kMaxModelFileBytes,
                                            .verify = false,
                                            .hint = {}});
  if (model.find_first_of("/.") != std::string::npos) return model;
  const std::string folder = store.model_folder(model);
  std::error_code error;
  if (std::filesystem::is_directory(folder, error)) return folder;
  SYRINX_TRY(const InstalledModel found, store.find(model));
  return found.folder;
}

std::function<Result<std::string>(const std::string& place)> checkpoint_locator(
    std::shared_ptr<CheckpointSource> source) {
  auto refused = std::make_shared<std::optional<Error>>();
  return [source = std::move(source), refused](const std::string& place) -> Result<std::string> {
    if (*refused) return tl::unexpected(**refused);
    auto found =
        source->get(place, GetOptions{.hint = "`syrinx pull pocket-tts --without-cloning` installs weights "
                                              "that are free to all and speak with the predefined voices only"});
    if (!found && found.error().code == Code::kUnavailable) *refused = found.error();
    return found;
  };
}

}  // namespace syrinx
