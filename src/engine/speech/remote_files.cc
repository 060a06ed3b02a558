#include "engine/speech/remote_files.h"

#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "base/signals.h"
#include "store/checkpoint_source.h"

namespace syrinx {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMaxConfigBytes = 1 << 20;  // what the YAML reader takes
constexpr const char* kWithoutCloning =
    "where a model has such, `syrinx pull NAME --without-cloning` installs weights that are free to all and speak with "
    "the predefined voices only";

Result<CheckpointSource> open_source(FetchReport report) {
  SourceOptions options;
  options.cancel = &cancel_flag();
  options.on_event = std::move(report);
  return CheckpointSource::open(std::move(options));
}

std::string path_in(const CheckpointReference& reference) {
  return reference.kind == CheckpointReference::Kind::kHub
             ? reference.path
             : reference.text.substr(0, reference.text.find_first_of("?#"));
}

Result<std::string> get(CheckpointSource& source, const std::string& place) {
  SYRINX_TRY(const CheckpointReference reference, parse_reference(place));
  const std::string suffix = fs::path(path_in(reference)).extension().string();
  GetOptions options;
  if (suffix == ".yaml" || suffix == ".yml") options.max_bytes = kMaxConfigBytes;
  options.hint = kWithoutCloning;
  return source.get(reference, options);
}

}  // namespace

std::string remote_file_name(const std::string& place) {
  const auto reference = parse_reference(place);
  return reference ? fs::path(path_in(*reference)).filename().string() : std::string();
}

bool is_remote(std::string_view place) { return place.find("://") != std::string_view::npos; }

Result<std::string> fetch(const std::string& place) {
  SYRINX_TRY(CheckpointSource source, open_source({}));
  return get(source, place);
}

std::function<Result<std::string>(const std::string& place)> remote_locator(FetchReport report) {
  struct State {
    FetchReport report;
    std::optional<CheckpointSource> source;
    std::optional<Error> refused;
  };
  const auto state = std::make_shared<State>();
  state->report = std::move(report);
  return [state](const std::string& place) -> Result<std::string> {
    if (state->refused) return tl::unexpected(*state->refused);
    if (!state->source) {
      SYRINX_TRY(auto source, open_source(state->report));
      state->source.emplace(std::move(source));
    }
    auto found = get(*state->source, place);
    if (!found && found.error().code == Code::kUnavailable) state->refused = found.error();
    return found;
  };
}

}  // namespace syrinx
