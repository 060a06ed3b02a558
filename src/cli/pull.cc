// syrinx pull: fetches models.  Ctrl-C leaves what came, and the next pull goes on from there.
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "base/signals.h"
#include "cli/command.h"
#include "cli/pull_report.h"
#include "cli/store.h"

namespace syrinx::cli {
namespace {

struct PullArguments {
  std::vector<std::string> names;
  std::string catalogue;
  bool offline = false;
  bool verify = false;
  bool json = false;
};

Status run_pull(const PullArguments& arguments) {
  SYRINX_TRY(ModelStore store, open_store(arguments.catalogue));
  PullReport report(arguments.json                 ? PullStyle::kJson
                    : ::isatty(STDERR_FILENO) != 0 ? PullStyle::kBar
                                                   : PullStyle::kLines);
  PullOptions options;
  options.offline = arguments.offline;
  options.verify = arguments.verify;
  options.cancel = &cancel_flag();
  options.on_event = [&report](const PullEvent& event) { report.show(event); };
  for (const auto& name : arguments.names) SYRINX_TRY_VOID(store.pull(name, options));
  return {};
}

}  // namespace

void add_pull(Command& tree) {
  auto arguments = std::make_shared<PullArguments>();
  Command command = tree.add("pull", "Fetch a model and what it needs, checked and resumable");
  command.option("NAME", arguments->names, "Models, as `syrinx list` names them").required();
  command.flag("--offline", arguments->offline, "Do not use the network: fail if anything is missing");
  command.flag("--verify", arguments->verify, "Read every file again and compare its hash");
  command.flag("--json", arguments->json, "One JSON object a line for every event");
  command.option("--catalogue", arguments->catalogue, kCatalogueHelp).type("PATH");
  command.examples("  syrinx pull kokoro\n  syrinx pull kokoro --verify");
  command.run([arguments] { return run_pull(*arguments); });
}

}  // namespace syrinx::cli
