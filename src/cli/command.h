// The command tree.  Each command lives in a file of its own and offers one function that adds it to the tree; parsing
// only chooses what to run, main() runs it.  Errors are printed once, by main(), as `syrinx: <sentence>`, and their
// code decides the exit status (docs/cli.md).
//
// The parsing library stays behind command.cc: its headers cost several seconds in each file that includes them.
//
// A new command: src/cli/NAME.cc, or a folder of its own, with add_NAME(), its line here and in tree.cc, its source in
// CMakeLists.txt.
//   void add_voices(Command& tree) {
//     auto arguments = std::make_shared<VoicesArguments>();
//     Command command = tree.add("voices", "List the voices of a model");
//     command.flag("--json", arguments->json, "One JSON array on one line");
//     command.run([arguments] { return run_voices(*arguments); });
//   }
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace syrinx::cli {

struct CommandDescription;
using Action = std::function<Status()>;

// An option, flag or positional of a command.  Like Command a handle, copied at will and good as long as its tree.
class Option {
 public:
  Option type(const char* name);  // what the value is, in the help: "FILE"
  Option required();
  Option one_of(const std::vector<std::string>& values);
  Option show_default();  // in the help: what the variable holds now
  Option excludes(Option other);

 private:
  friend class Command;
  explicit Option(CLI::Option* option) : option_(option) {}
  CLI::Option* option_;
};

// Names are "-o,--out" or, of a positional, "text".  Variables must outlive the parsing and keep what they hold when
// the option is not given.
class Command {
 public:
  Command add(const char* name, const char* help);  // a command below this one

  Option option(const char* names, std::string& value, const char* help);
  Option option(const char* names, std::optional<std::string>& value, const char* help);  // given empty is given, too
  // Several values: of an option each behind its name ("--x a --x b"), of a positional one after another.
  Option option(const char* names, std::vector<std::string>& values, const char* help);
  Option option(const char* names, int& value, const char* help);
  Option option(const char* names, uint64_t& value, const char* help);
  Option option(const char* names, float& value, const char* help);
  Option option(const char* names, std::optional<int>& value, const char* help);
  Option option(const char* names, std::optional<double>& value, const char* help);
  Option flag(const char* names, bool& value, const char* help);
  // A flag that is a command of its own, such as --version; it goes before a command that is given as well.
  Option flag(const char* names, Action action, const char* help);

  void run(Action action);           // what it does when it is chosen
  void needs_command();              // one of those below it must follow
  void hide();                       // from the help and from what is generated
  void examples(const char* lines);  // shown under the help and in the manual page: one command a line

  // This command's own options first, under the name "", then every command below it that is not hidden, depth first.
  std::vector<CommandDescription> describe() const;

 private:
  friend class CommandTree;
  Command(CLI::App* app, Action* chosen) : app_(app), chosen_(chosen) {}
  CLI::App* app_;
  Action* chosen_;  // the tree's
};

class CommandTree {
 public:
  CommandTree(const char* name, const char* help);
  ~CommandTree();
  CommandTree(const CommandTree&) = delete;
  CommandTree& operator=(const CommandTree&) = delete;

  Command root();
  // The action that the arguments ask for, help included.  kInvalidArgument when they make no sense or ask for nothing.
  Result<Action> parse(int argc, const char* const* argv);

 private:
  std::unique_ptr<CLI::App> app_;
  Action chosen_;
};

// Adds every command but `bench`, which is above this library (bench/suite).
void add_commands(Command& tree);

void add_chat(Command& tree);
void add_doctor(Command& tree);
void add_generate(Command& tree);
void add_inspect(Command& tree);
void add_serve(Command& tree);
void add_speak(Command& tree);
void add_transcribe(Command& tree);
void add_voices(Command& tree);
void add_list(Command& tree);
void add_pull(Command& tree);
void add_rm(Command& tree);

}  // namespace syrinx::cli
