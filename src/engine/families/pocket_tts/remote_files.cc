#include "engine/families/pocket_tts/remote_files.h"

#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "base/mapped_file.h"
#include "base/signals.h"
#include "models/pocket_tts/config_file.h"
#include "models/pocket_tts/model.h"
#include "store/checkpoint_source.h"

namespace syrinx {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMaxConfigBytes = 1 << 20;  // what the YAML reader takes
constexpr const char* kWithoutCloning =
    "`syrinx pull pocket-tts --without-cloning` installs weights that are free to all and speak with the predefined "
    "voices only";

Result<CheckpointSource> open_source(FetchReport report) {
  SourceOptions options;
  options.cancel = &cancel_flag();
  options.on_event = std::move(report);
  return CheckpointSource::open(std::move(options));
}

std::string path_of(const CheckpointReference& reference) {
  return reference.kind == CheckpointReference::Kind::kHub
             ? reference.path
             : reference.text.substr(0, reference.text.find_first_of("?#"));
}

Result<std::string> get(CheckpointSource& source, const std::string& place) {
  SYRINX_TRY(const CheckpointReference reference, parse_reference(place));
  const std::string suffix = fs::path(path_of(reference)).extension().string();
  GetOptions options;
  if (suffix == ".yaml" || suffix == ".yml") options.max_bytes = kMaxConfigBytes;
  options.hint = kWithoutCloning;
  return source.get(reference, options);
}

Result<pocket::ConfigFile> read_config(const std::string& path) {
  SYRINX_TRY(const MappedFile file, MappedFile::open(path));
  const auto bytes = file.bytes();
  return pocket::parse_config(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()), path);
}

// As the loader does: the file of that name beside the configuration comes first.
// `model` is where the configuration came from: what lies beside it there was not fetched with it.
Status fetch_named(const std::string& place, const fs::path& folder, const std::string& model,
                   const std::function<Result<std::string>(const std::string&)>& locate) {
  std::error_code missing;
  if (!is_remote(place) && is_remote(model) && !place.empty() && !fs::exists(folder / place, missing)) {
    return fail(Code::kNotFound,
                "'{}' names '{}', which lies where it came from, and only files that it names by hf:// or https:// are "
                "fetched; fetch both into one folder and give its path",
                model, place);
  }
  if (!is_remote(place)) return {};
  SYRINX_TRY(const CheckpointReference reference, parse_reference(place));
  std::error_code error;
  if (fs::exists(folder / fs::path(path_of(reference)).filename(), error)) return {};
  SYRINX_TRY_VOID(locate(place));
  return {};
}

}  // namespace

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

Status fetch_remote_parts(const std::string& model, const std::string& voice, const FetchReport& report) {
  const auto locate = remote_locator(report);
  std::string place = model;
  if (is_remote(model)) {
    SYRINX_TRY(place, locate(model));
  }
  if (place.find_first_of("/.") != std::string::npos) {
    // Anything that is no configuration of Pocket TTS names nothing elsewhere; what it is, its loader says.
    const auto found = pocket::find_checkpoint(place);
    const auto read = found ? read_config(found->config) : tl::unexpected(found.error());
    if (read) {
      const pocket::Config& config = read->config;
      const fs::path folder = fs::path(found->config).parent_path();
      SYRINX_TRY_VOID(fetch_named(config.flow_lm.tokenizer_path, folder, model, locate));
      if (found->weights.empty()) {
        const bool with_cloning = !config.weights_path.empty();
        SYRINX_TRY_VOID(fetch_named(with_cloning ? config.weights_path : config.weights_path_without_voice_cloning,
                                    folder, model, locate));
        SYRINX_TRY_VOID(fetch_named(config.mimi_weights_path, folder, model, locate));
      }
    }
  }
  if (is_remote(voice)) SYRINX_TRY_VOID(locate(voice));
  return {};
}

}  // namespace syrinx
