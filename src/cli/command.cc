#include "cli/command.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <sstream>
#include <utility>

#include "cli/describe.h"
#include "cli/output.h"

namespace syrinx::cli {
namespace {

constexpr const char* kExamplesTitle = "Examples:\n";

// The parser takes "[a,b]" for a list of two, and a text may well begin with a mark in brackets: before it is parsed,
// an argument in brackets gets this in front, and once it is parsed loses it again.
constexpr char kGuard = '\x1a';

std::string guarded(const std::string& argument) {
  return argument.starts_with('[') || argument.starts_with(kGuard) ? kGuard + argument : argument;
}

std::string unguarded(std::string argument) {
  if (argument.starts_with(kGuard)) argument.erase(0, 1);
  return argument;
}

// A sentence of the parser's, which may quote an argument.
std::string without_guards(std::string sentence) {
  std::erase(sentence, kGuard);
  return sentence;
}

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

OptionDescription describe_option(const CLI::Option& option) {
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
  const size_t title = footer.find(kExamplesTitle);
  return title == std::string::npos ? std::string() : footer.substr(title + std::string_view(kExamplesTitle).size());
}

void walk(const CLI::App& command, const std::string& name, std::vector<CommandDescription>& made) {
  CommandDescription description{name, command.get_description(), examples_of(command), {}};
  for (const CLI::Option* option : command.get_options([](const CLI::Option* o) { return !o->get_group().empty(); }))
    description.options.push_back(describe_option(*option));
  made.push_back(std::move(description));
  for (const CLI::App* below : command.get_subcommands([](const CLI::App* c) { return !c->get_group().empty(); }))
    walk(*below, name.empty() ? below->get_name() : name + " " + below->get_name(), made);
}

}  // namespace

Option Option::type(const char* name) {
  option_->type_name(name);
  return *this;
}

Option Option::required() {
  option_->required();
  return *this;
}

Option Option::one_of(const std::vector<std::string>& values) {
  option_->check(CLI::IsMember(values));
  return *this;
}

Option Option::show_default() {
  option_->capture_default_str();
  return *this;
}

Option Option::excludes(Option other) {
  option_->excludes(other.option_);
  return *this;
}

Command Command::add(const char* name, const char* help) { return {app_->add_subcommand(name, help), chosen_}; }

Option Command::option(const char* names, std::string& value, const char* help) {
  return Option(app_->add_option(names, value, help)->transform(unguarded));
}
Option Command::option(const char* names, std::optional<std::string>& value, const char* help) {
  const auto take = [&value](const std::string& text) { value = text; };
  return Option(app_->add_option_function<std::string>(names, take, help)->transform(unguarded));
}
Option Command::option(const char* names, std::vector<std::string>& values, const char* help) {
  return Option(app_->add_option(names, values, help)->allow_extra_args(names[0] != '-')->transform(unguarded));
}
Option Command::option(const char* names, int& value, const char* help) {
  return Option(app_->add_option(names, value, help));
}
// By itself CLI11 takes -1 for the largest number.
Option Command::option(const char* names, uint64_t& value, const char* help) {
  return Option(app_->add_option(names, value, help)->check([](const std::string& text) {
    return text.starts_with('-') ? text + " is less than zero" : std::string();
  }));
}
Option Command::option(const char* names, std::optional<int>& value, const char* help) {
  return Option(app_->add_option(names, value, help));
}
Option Command::option(const char* names, std::optional<double>& value, const char* help) {
  return Option(app_->add_option(names, value, help));
}
Option Command::option(const char* names, float& value, const char* help) {
  return Option(app_->add_option(names, value, help));
}
Option Command::flag(const char* names, bool& value, const char* help) {
  return Option(app_->add_flag(names, value, help));
}

Option Command::flag(const char* names, Action action, const char* help) {
  const auto choose = [action = std::move(action), chosen = chosen_] { *chosen = action; };
  return Option(app_->add_flag_callback(names, choose, help));
}

// Flags are looked at before commands, so what is chosen already is a flag's action and stays.
void Command::run(Action action) {
  app_->callback([action = std::move(action), chosen = chosen_] {
    if (!*chosen) *chosen = action;
  });
}

void Command::needs_command() { app_->require_subcommand(1); }

void Command::hide() { app_->group(""); }

void Command::examples(const char* lines) { app_->footer(std::string(kExamplesTitle) + lines); }

std::vector<CommandDescription> Command::describe() const {
  std::vector<CommandDescription> made;
  walk(*app_, "", made);
  return made;
}

CommandTree::CommandTree(const char* name, const char* help) : app_(std::make_unique<CLI::App>(help, name)) {
  app_->require_subcommand(0, 1);
}

CommandTree::~CommandTree() = default;

Command CommandTree::root() { return {app_.get(), &chosen_}; }

// The parser throws, for help too.
Result<Action> CommandTree::parse(int argc, const char* const* argv) {
  std::vector<std::string> arguments(argv, argv + argc);
  std::transform(arguments.begin(), arguments.end(), arguments.begin(), guarded);
  std::vector<const char*> given(arguments.size());
  std::transform(arguments.begin(), arguments.end(), given.begin(), [](const auto& each) { return each.c_str(); });
  try {
    app_->parse(argc, given.data());
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) {
      return fail(Code::kInvalidArgument,
                  "{}; `syrinx --help` lists the commands and `syrinx COMMAND --help` their options",
                  without_guards(error.what()));
    }
    std::ostringstream help;
    app_->exit(error, help, help);
    return Action([text = help.str()] { return print(text); });
  }
  if (!chosen_) return fail(Code::kInvalidArgument, "no command was given; `syrinx --help` lists them");
  return chosen_;
}

}  // namespace syrinx::cli
