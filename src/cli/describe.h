// The command tree as plain data, for what is generated from it: the manual page and the shells' completions.
// Command::describe() makes it.
#pragma once

#include <string>
#include <vector>

namespace syrinx::cli {

struct OptionDescription {
  std::vector<std::string> names;  // "-o", "--out"; empty for a positional
  std::string value;               // "FILE"; empty for a flag
  std::string help;
  std::vector<std::string> choices;  // allowed values, when they are a fixed set
  bool required = false;
  bool positional() const { return names.empty(); }
};

struct CommandDescription {
  std::string name;  // "speak"; of a command below another, "bench kokoro"
  std::string help;
  std::string examples;  // one a line
  std::vector<OptionDescription> options;
};

// Meaning of an exit status or environment variable: printed by `syrinx --help`, the manual page and docs/cli.md.
struct Meaning {
  const char* name;
  const char* text;
};
const std::vector<Meaning>& exit_meanings();
const std::vector<Meaning>& environment_meanings();

}  // namespace syrinx::cli
