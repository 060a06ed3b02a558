// `syrinx generate man|bash|zsh|fish`, hidden: run by the build, so that the manual page and the completions are always
// those of the command tree.
#include <algorithm>
#include <cstdio>
#include <memory>

#include "base/version.h"
#include "cli/command.h"
#include "cli/describe.h"
#include "cli/output.h"

namespace syrinx::cli {
namespace {

using Commands = std::vector<CommandDescription>;

// roff: a backslash and a hyphen are escaped; a point or quote at the start of a line would be a request.
std::string roff(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n')) out += "\\&";
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  return out;
}

std::string manual_options(const CommandDescription& command) {
  std::string out;
  for (const OptionDescription& option : command.options) {
    std::string head;
    for (const std::string& name : option.names) head += (head.empty() ? "\\fB" : ", \\fB") + roff(name) + "\\fR";
    if (!option.value.empty()) head += (head.empty() ? "\\fI" : " \\fI") + roff(option.value) + "\\fR";
    out += ".TP\n" + head + "\n" + roff(option.help);
    if (!option.choices.empty()) {
      out += " (";
      for (const std::string& choice : option.choices)
        out += (&choice == &option.choices.front() ? "" : ", ") + roff(choice);
      out += ")";
    }
    out += ".\n";
  }
  return out;
}

std::string manual_meanings(const char* title, const std::vector<Meaning>& meanings) {
  std::string out = fmt::format(".SH {}\n", title);
  for (const Meaning& meaning : meanings)
    out += fmt::format(".TP\n\\fB{}\\fR\n{}.\n", meaning.name, roff(meaning.text));
  return out;
}

std::string manual(const Commands& commands) {
  std::string out = fmt::format(
      ".TH SYRINX 1 \"\" \"syrinx {}\" \"User Commands\"\n.SH NAME\nsyrinx \\- {}\n"
      ".SH SYNOPSIS\n\\fBsyrinx\\fR \\fICOMMAND\\fR [\\fIOPTIONS\\fR]\n",
      version(), roff("turn text into speech and speech into text, offline"));
  out += ".SH DESCRIPTION\n" + roff(commands.front().help) + "\n.SH OPTIONS\n" + manual_options(commands.front());
  out += ".SH COMMANDS\n";
  std::string examples;
  for (const CommandDescription& command : commands) {
    if (command.name.empty()) continue;
    out += ".SS " + roff(command.name) + "\n" + roff(command.help) + ".\n" + manual_options(command);
    examples += command.examples + (command.examples.empty() || command.examples.ends_with('\n') ? "" : "\n");
  }
  out += manual_meanings("EXIT STATUS", exit_meanings());
  out += manual_meanings("ENVIRONMENT", environment_meanings());
  return out + ".SH EXAMPLES\n.nf\n" + roff(examples) + ".fi\n";
}

std::string joined(const std::vector<std::string>& words, const char* between) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : between) + word;
  return out;
}

bool takes_file(const OptionDescription& option) {
  return option.value.find("FILE") != std::string::npos || option.value.find("PATH") != std::string::npos ||
         option.value.find("FOLDER") != std::string::npos;
}

// Names of the commands directly below `name`.
std::vector<std::string> below(const Commands& commands, const std::string& name) {
  std::vector<std::string> words;
  const std::string prefix = name.empty() ? "" : name + " ";
  for (const CommandDescription& command : commands) {
    if (command.name.empty() || !command.name.starts_with(prefix)) continue;
    const std::string rest = command.name.substr(prefix.size());
    if (!rest.empty() && rest.find(' ') == std::string::npos) words.push_back(rest);
  }
  return words;
}

std::string bash(const Commands& commands) {
  std::string out =
      "# bash completion for syrinx, generated from its command tree.\n"
      "_syrinx() {\n  local word=\"${COMP_WORDS[COMP_CWORD]}\" previous=\"${COMP_WORDS[COMP_CWORD-1]}\" command=\"\" "
      "i\n"
      "  COMPREPLY=()\n"
      "  for ((i = 1; i < COMP_CWORD; ++i)); do\n    case \"$command ${COMP_WORDS[i]}\" in\n";
  for (const CommandDescription& command : commands)
    if (!command.name.empty())
      out += fmt::format("      \"{}{}\") command=\"{}\" ;;\n", command.name.find(' ') == std::string::npos ? " " : "",
                         command.name, command.name);
  out += "    esac\n  done\n  case \"$command:$previous\" in\n";
  for (const CommandDescription& command : commands) {
    for (const OptionDescription& option : command.options) {
      for (const std::string& name : option.names) {
        if (option.value.empty()) continue;
        std::string reply = "COMPREPLY=()";
        if (takes_file(option)) reply = "COMPREPLY=($(compgen -f -- \"$word\"))";
        if (!option.choices.empty())
          reply = fmt::format("COMPREPLY=($(compgen -W \"{}\" -- \"$word\"))", joined(option.choices, " "));
        if (name == "--voice")
          reply = "COMPREPLY=($(compgen -W \"$(syrinx voices --names 2>/dev/null)\" -- \"$word\"))";
        out += fmt::format("    \"{}:{}\") {}; return ;;\n", command.name, name, reply);
      }
    }
  }
  out += "  esac\n  case \"$command\" in\n";
  for (const CommandDescription& command : commands) {
    std::vector<std::string> words = below(commands, command.name);
    bool files = false;
    for (const OptionDescription& option : command.options) {
      words.insert(words.end(), option.names.begin(), option.names.end());
      files = files || (option.positional() && takes_file(option));
    }
    out += fmt::format("    \"{}\") COMPREPLY=($(compgen {}-W \"{}\" -- \"$word\")) ;;\n", command.name,
                       files ? "-f " : "", joined(words, " "));
  }
  return out + "  esac\n}\ncomplete -o filenames -F _syrinx syrinx\n";
}

// Inside single quotes of a shell, where brackets and colons of a description must not be read as syntax.
std::string quoted(const std::string& text, bool zsh) {
  std::string out;
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else if (zsh && (c == '[' || c == ']' || c == ':')) {
      out += std::string("\\") + c;
    } else {
      out += c;
    }
  }
  return out;
}

std::string zsh_arguments(const CommandDescription& command, const char* indent) {
  std::string out;
  for (const OptionDescription& option : command.options) {
    std::string value;
    if (!option.value.empty()) {
      value = ":" + quoted(option.value, true) + ":";
      if (!option.choices.empty())
        value += "(" + joined(option.choices, " ") + ")";
      else if (takes_file(option))
        value += "_files";
      else
        value += " ";
    }
    if (option.positional()) out += fmt::format(" \\\n{}'::{}'", indent, value.substr(1));
    for (const std::string& name : option.names)
      out += fmt::format(" \\\n{}'{}[{}]{}'", indent, name, quoted(option.help, true), value);
  }
  return out;
}

std::string zsh(const Commands& commands) {
  std::string out =
      "#compdef syrinx\n# zsh completion for syrinx, generated from its command tree.\n_syrinx() {\n"
      "  local -a commands\n  local line state\n  commands=(\n";
  for (const CommandDescription& command : commands)
    if (!command.name.empty() && command.name.find(' ') == std::string::npos)
      out += fmt::format("    '{}:{}'\n", command.name, quoted(command.help, true));
  out += "  )\n  _arguments -C" + zsh_arguments(commands.front(), "    ") +
         " \\\n    '1:command:->command' \\\n    '*::argument:->argument'\n"
         "  case $state in\n    command) _describe command commands ;;\n    argument)\n      case $line[1] in\n";
  for (const CommandDescription& command : commands) {
    if (command.name.empty() || command.name.find(' ') != std::string::npos) continue;
    CommandDescription all = command;  // with the options of the commands below it
    std::string words;
    for (const std::string& word : below(commands, command.name)) words += (words.empty() ? "" : " ") + word;
    for (const CommandDescription& other : commands)
      if (other.name.starts_with(command.name + " "))
        all.options.insert(all.options.end(), other.options.begin(), other.options.end());
    const std::string first = words.empty() ? "" : fmt::format(" \\\n          '1:what:({})'", words);
    out += fmt::format("        {}) _arguments{}{} ;;\n", command.name, first, zsh_arguments(all, "          "));
  }
  return out + "      esac ;;\n  esac\n}\n_syrinx \"$@\"\n";
}

std::string fish(const Commands& commands) {
  std::string out = "# fish completion for syrinx, generated from its command tree.\ncomplete -c syrinx -f\n";
  for (const CommandDescription& command : commands) {
    const size_t space = command.name.rfind(' ');
    const std::string parent = space == std::string::npos ? "" : command.name.substr(0, space);
    const std::string seen = "__fish_seen_subcommand_from ";
    if (!command.name.empty())
      out += fmt::format("complete -c syrinx -n '{}' -a {} -d '{}'\n",
                         parent.empty() ? "__fish_use_subcommand" : seen + parent,
                         parent.empty() ? command.name : command.name.substr(space + 1), quoted(command.help, false));
    for (const OptionDescription& option : command.options) {
      std::string line = "complete -c syrinx";
      if (!command.name.empty())
        line += fmt::format(" -n '{}{}'", seen, command.name.substr(space == std::string::npos ? 0 : space + 1));
      for (const std::string& name : option.names)
        line += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      if (option.positional() && !takes_file(option)) continue;
      if (!option.value.empty() && !option.positional()) line += " -r";
      if (takes_file(option)) line += " -F";
      if (!option.choices.empty()) line += " -a '" + joined(option.choices, " ") + "'";
      out += fmt::format("{} -d '{}'\n", line, quoted(option.help, false));
    }
  }
  return out;
}

}  // namespace

void add_generate(Command& tree) {
  auto kind = std::make_shared<std::string>();
  Command command = tree.add("generate", "Print the manual page or a shell's completion");
  command.hide();
  command.option("kind", *kind, "What to print").required().one_of({"man", "bash", "zsh", "fish"});
  command.run([kind, tree] {
    const Commands commands = tree.describe();
    const std::string text = *kind == "man"    ? manual(commands)
                             : *kind == "bash" ? bash(commands)
                             : *kind == "zsh"  ? zsh(commands)
                                               : fish(commands);
    return print(text);
  });
}

}  // namespace syrinx::cli
