#include "cli/describe.h"

#include <algorithm>

namespace syrinx::cli {
namespace {

// CLI11 writes a fixed set into the type: "TEXT:{wav,pcm}".
std::vector<std::string> choices_of(const std::string& type) {
  std::vector<std::string> choices;
  const size_t open = type.find('{');
  const size_t close = type.find('}', open == std::string::npos ? 0 : open);
  if (open == std::string::npos || close == std::string::npos) return choices;
  for (size_t begin = open + 1; begin <= close;) {
    const size_t end = std::min(type.find(',', begin), close);
    choices.push_back(type.substr(begin, end - begin));
    begin = end + 1;
  }
  return choices;
}

OptionDescription describe(const CLI::Option& option) {
  OptionDescription made;
  for (const std::string& name : option.get_snames()) made.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) made.names.push_back("--" + name);
  const bool flag = option.get_expected_max() == 0 || option.get_type_size() == 0;
  const std::string type = option.get_type_name();
  made.choices = choices_of(type);
  if (!flag) made.value = type.substr(0, type.find(':'));
  if (made.positional() && (made.value.empty() || made.value == "TEXT")) made.value = option.get_name(true);
  made.help = option.get_description();
  made.required = option.get_required();
  return made;
}

std::string examples_of(const CLI::App& command) {
  const std::string footer = command.get_footer();
  const size_t title = footer.find("Examples:\n");
  return title == std::string::npos ? std::string() : footer.substr(title + 10);
}

void walk(const CLI::App& command, const std::string& name, std::vector<CommandDescription>& made) {
  CommandDescription description{name, command.get_description(), examples_of(command), {}};
  for (const CLI::Option* option : command.get_options([](const CLI::Option* o) { return !o->get_group().empty(); }))
    description.options.push_back(describe(*option));
  made.push_back(std::move(description));
  for (const CLI::App* below : command.get_subcommands([](const CLI::App* c) { return !c->get_group().empty(); }))
    walk(*below, name.empty() ? below->get_name() : name + " " + below->get_name(), made);
}

}  // namespace

std::vector<CommandDescription> describe_commands(const CLI::App& tree) {
  std::vector<CommandDescription> made;
  walk(tree, "", made);
  return made;
}

const std::vector<Meaning>& exit_meanings() {
  static const std::vector<Meaning> meanings = {
      {"0", "success"},
      {"2", "an argument, the text or a voice's name makes no sense"},
      {"3", "a file, model or voice is not there"},
      {"4", "a file is truncated, malformed or does not match its hash"},
      {"5", "a file is well-formed, but nothing that can be run"},
      {"6", "something is larger than a stated limit"},
      {"7", "the system refused: permission, disk full, closed pipe, network"},
      {"8", "not now: offline, no speaker"},
      {"70", "a fault of the program"},
      {"130", "stopped by Ctrl-C or a signal"},
  };
  return meanings;
}

const std::vector<Meaning>& environment_meanings() {
  static const std::vector<Meaning> meanings = {
      {"SYRINX_HOME", "holds models (data/) and caches (cache/) instead of the XDG folders"},
      {"XDG_DATA_HOME", "models are in syrinx/ below it; ~/.local/share when unset"},
      {"XDG_CACHE_HOME", "packed weights are in syrinx/ below it; ~/.cache when unset"},
      {"SYRINX_CPU", "forces a lower vector target: AVX3, AVX2, SSE4, SSSE3, SCALAR or NEON"},
      {"SYRINX_LOG", "debug, info, warning, error or off"},
  };
  return meanings;
}

}  // namespace syrinx::cli
