// The command tree.  Each command lives in a file of its own and offers one function that adds it to the tree; parsing
// only chooses what to run, main() runs it.  Errors are printed once, by main(), as `syrinx: <sentence>`, and their
// code decides the exit status (docs/cli.md).
//
// A new command: src/cli/NAME.cc with add_NAME(), its line here and in tree.cc, its source in CMakeLists.txt.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

#include "base/result.h"

namespace syrinx::cli {

// What parsing chose.  A command's callback stores it:
//   void add_voices(CLI::App& tree, Action& chosen) {
//     auto options = std::make_shared<VoicesOptions>();
//     CLI::App* command = tree.add_subcommand("voices", "List the voices of a model");
//     command->add_flag("--json", options->json, "One JSON array on one line");
//     command->callback([options, &chosen] { chosen = [options] { return run_voices(*options); }; });
//   }
using Action = std::function<Status()>;

// Adds every command.  `chosen` must outlive the tree.
void add_commands(CLI::App& tree, Action& chosen);

void add_bench(CLI::App& tree, Action& chosen);
void add_doctor(CLI::App& tree, Action& chosen);
void add_generate(CLI::App& tree, Action& chosen);
void add_inspect(CLI::App& tree, Action& chosen);
void add_speak(CLI::App& tree, Action& chosen);
void add_voices(CLI::App& tree, Action& chosen);
void add_list(CLI::App& tree, Action& chosen);
void add_pull(CLI::App& tree, Action& chosen);
void add_rm(CLI::App& tree, Action& chosen);

// Sets a command's examples, shown under its help and in the manual page: one command a line.
void set_examples(CLI::App& command, const char* lines);

}  // namespace syrinx::cli
