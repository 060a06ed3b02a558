#include "engine/remote_files.h"

#include <memory>
#include <utility>

#include "base/signals.h"
#include "engine/checkpoint_source.h"
#include "engine/model_resolve.h"

namespace syrinx {
namespace {

Result<CheckpointSource> open_source() {
  SourceOptions options;
  options.cancel = &cancel_flag();
  return CheckpointSource::open(std::move(options));
}

}  // namespace

bool is_remote(std::string_view place) { return place.find("://") != std::string_view::npos; }

Result<std::string> fetch(const std::string& place) {
  SYRINX_TRY(CheckpointSource source, open_source());
  return source.get(place);
}

std::function<Result<std::string>(const std::string& place)> remote_locator() {
  using Locator = std::function<Result<std::string>(const std::string& place)>;
  return [locator = Locator()](const std::string& place) mutable -> Result<std::string> {
    if (!locator) {
      SYRINX_TRY(CheckpointSource source, open_source());
      locator = checkpoint_locator(std::make_shared<CheckpointSource>(std::move(source)));
    }
    return locator(place);
  };
}

}  // namespace syrinx
