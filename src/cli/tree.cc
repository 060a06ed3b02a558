#include "cli/command.h"

namespace syrinx::cli {

void add_commands(CLI::App& tree, Action& chosen) {
  add_speak(tree, chosen);
  add_voices(tree, chosen);
  add_doctor(tree, chosen);
  add_inspect(tree, chosen);
  add_bench(tree, chosen);
  add_generate(tree, chosen);
  add_pull(tree, chosen);
  add_list(tree, chosen);
  add_rm(tree, chosen);
}

void set_examples(CLI::App& command, const char* lines) { command.footer(std::string("Examples:\n") + lines); }

}  // namespace syrinx::cli
