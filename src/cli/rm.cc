// syrinx rm: removes models.
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "base/signals.h"
#include "cli/command.h"
#include "cli/store.h"

namespace syrinx::cli {
namespace {

Status run_rm(const std::vector<std::string>& names, const std::string& catalogue_path) {
  SYRINX_TRY(ModelStore store, open_store(catalogue_path));
  for (const auto& name : names) {
    SYRINX_TRY_VOID(store.remove(name, &cancel_flag()));
    fmt::print("{} is removed\n", name);
  }
  return {};
}

}  // namespace

void add_rm(Command& tree) {
  auto names = std::make_shared<std::vector<std::string>>();
  auto catalogue = std::make_shared<std::string>();
  Command command = tree.add("rm", "Remove installed models and their caches");
  command.option("NAME", *names, "Models, as `syrinx list` names them").required();
  command.option("--catalogue", *catalogue, kCatalogueHelp).type("PATH");
  command.examples("  syrinx rm NAME");
  command.run([names, catalogue] { return run_rm(*names, *catalogue); });
}

}  // namespace syrinx::cli
