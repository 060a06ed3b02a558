// syrinx list: what is installed and what could be.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>

#include "base/json.h"
#include "cli/command.h"
#include "cli/pull_report.h"
#include "cli/store.h"

namespace syrinx::cli {
namespace {

struct ListArguments {
  std::string catalogue;
  bool json = false;
};

Json status_json(const ModelStatus& status) {
  Json json;
  json.set("name", status.name);
  json.set("kind", status.kind);
  json.set("state", model_state_name(status.state));
  json.set("total_bytes", static_cast<int64_t>(status.total_bytes));
  json.set("on_disk_bytes", static_cast<int64_t>(status.on_disk_bytes));
  json.set("licence", status.licence);
  json.set("description", status.description);
  json.set("folder", status.folder);
  return json;
}

std::string state_text(const ModelStatus& status) {
  if (status.state != ModelState::kPartial || status.total_bytes == 0) return model_state_name(status.state);
  const double share = static_cast<double>(status.on_disk_bytes) / static_cast<double>(status.total_bytes);
  return fmt::format("{:.0f} % here", std::min(99.0, share * 100));
}

Status run_list(const ListArguments& arguments) {
  SYRINX_TRY(const ModelStore store, open_store(arguments.catalogue));
  const auto all = store.list();
  if (arguments.json) {
    Json::Array array;
    for (const auto& status : all) array.push_back(status_json(status));
    std::printf("%s\n", Json(std::move(array)).dump().c_str());
    return {};
  }
  size_t width = 4;
  for (const auto& status : all) width = std::max(width, status.name.size());
  for (const auto& status : all) {
    fmt::print("{:<{}}  {:<10}  {:>9}  {}\n", status.name, width, state_text(status), size_text(status.total_bytes),
               status.description);
  }
  return {};
}

}  // namespace

void add_list(Command& tree) {
  auto arguments = std::make_shared<ListArguments>();
  Command command = tree.add("list", "List installed and available models");
  command.flag("--json", arguments->json, "One JSON array on one line");
  command.option("--catalogue", arguments->catalogue, kCatalogueHelp).type("PATH");
  command.examples("  syrinx list");
  command.run([arguments] { return run_list(*arguments); });
}

}  // namespace syrinx::cli
