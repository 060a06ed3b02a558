// syrinx inspect FILE: what kind of file it is, and what it holds.
#include "engine/families/inspect.h"

#include <memory>

#include "cli/command.h"
#include "cli/output.h"

namespace syrinx::cli {
namespace {

struct InspectArguments {
  std::string path;
  bool json = false;
};

Status run_inspect(const InspectArguments& arguments) {
  SYRINX_TRY(const FileDescription description, describe_file(arguments.path));
  return print((arguments.json ? to_json(description).dump() : to_text(description)) + "\n");
}

}  // namespace

void add_inspect(Command& tree) {
  auto arguments = std::make_shared<InspectArguments>();
  Command command = tree.add("inspect", "Show the content of a model, voice or audio file");
  command.option("file", arguments->path, "The file, or a folder with a configuration; it is read, never run")
      .required()
      .type("FILE");
  command.flag("--json", arguments->json, "One JSON object on one line");
  command.examples(
      "  syrinx inspect model.onnx\n"
      "  syrinx inspect model.pth --json\n"
      "  syrinx inspect models/english");
  command.run([arguments] { return run_inspect(*arguments); });
}

}  // namespace syrinx::cli
