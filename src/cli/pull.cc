// syrinx pull: fetches models.  Ctrl-C leaves what came, and the next pull goes on from there.
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/signals.h"
#include "cli/command.h"
#include "cli/pull_report.h"
#include "cli/store.h"
#include "store/checkpoint_source.h"

namespace syrinx::cli {
namespace {

struct PullArguments {
  std::vector<std::string> names;
  std::string voices;
  std::string catalogue;
  bool with_cloning = false;
  bool without_cloning = false;
  bool offline = false;
  bool verify = false;
  bool json = false;
};

bool is_remote(const std::string& name) { return name.find("://") != std::string::npos; }

std::vector<std::string> split_at_commas(const std::string& text) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    if (end > begin) parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

// One file by its reference, into the store; where it lies is the last line.
Status pull_file(const std::string& reference, const PullArguments& arguments, const PullOptions& pull) {
  SourceOptions options;
  options.offline = pull.offline;
  options.cancel = pull.cancel;
  options.on_event = pull.on_event;
  SYRINX_TRY(CheckpointSource source, CheckpointSource::open(options));
  GetOptions get;
  get.verify = pull.verify;
  SYRINX_TRY(const std::string path, source.get(reference, get));
  if (arguments.json) {
    Json json;
    json.set("event", "file");
    json.set("model", reference);
    json.set("path", path);
    fmt::print("{}\n", json.dump());
  } else {
    fmt::print("{}\n", path);
  }
  return {};
}

Status run_pull(const PullArguments& arguments) {
  SYRINX_TRY(ModelStore store, open_store(arguments.catalogue));
  PullReport report(arguments.json                 ? PullStyle::kJson
                    : ::isatty(STDERR_FILENO) != 0 ? PullStyle::kBar
                                                   : PullStyle::kLines);
  PullOptions options;
  options.offline = arguments.offline;
  options.verify = arguments.verify;
  options.voices = split_at_commas(arguments.voices);
  if (arguments.with_cloning) options.cloning = CloningWish::kWith;
  if (arguments.without_cloning) options.cloning = CloningWish::kWithout;
  options.cancel = &cancel_flag();
  options.on_event = [&report](const PullEvent& event) { report.show(event); };
  for (const auto& name : arguments.names) {
    SYRINX_TRY_VOID(is_remote(name) ? pull_file(name, arguments, options) : store.pull(name, options));
  }
  return {};
}

}  // namespace

void add_pull(Command& tree) {
  auto arguments = std::make_shared<PullArguments>();
  Command command = tree.add("pull", "Download a model and its dependencies, verified and resumable");
  command
      .option("NAME", arguments->names,
              "Models, as `syrinx list` names them; or files, as hf://owner/repo/path@revision")
      .required();
  command.option("--voices", arguments->voices, "Predefined voices besides the usual one, or all").type("NAME,...");
  const Option without = command.flag("--without-cloning", arguments->without_cloning,
                                      "Weights without voice cloning, where those with it are gated");
  command.flag("--with-cloning", arguments->with_cloning, "Weights with voice cloning in place of those without")
      .excludes(without);
  command.flag("--offline", arguments->offline, "Do not use the network: fail if anything is missing");
  command.flag("--verify", arguments->verify, "Read every file again and compare its hash");
  command.flag("--json", arguments->json, "One JSON object a line for every event");
  command.option("--catalogue", arguments->catalogue, kCatalogueHelp).type("PATH");
  command.examples(
      "  syrinx pull NAME\n"
      "  syrinx pull NAME --voices cosette,marius\n"
      "  syrinx pull NAME:french_24l --without-cloning\n"
      "  syrinx pull NAME --verify");
  command.run([arguments] { return run_pull(*arguments); });
}

}  // namespace syrinx::cli
