// `syrinx speak --dry-run`: how a text would be read out, one JSON object a sentence; no model is loaded.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "engine/knobs.h"

namespace syrinx::cli {

struct DryRun {
  std::string model;                // as for speak; need not be installed where it is a name of the catalogue
  std::string voice;                // chooses the pronunciation
  Knobs load, request;              // options of the family
  bool plain = false;               // no marks
  std::optional<std::string> text;  // absent: standard input, as it arrives
};

// The errors of find_reader_files(), of the front end and of the text, after the sentences before it.
Status dry_run(const DryRun& arguments);

}  // namespace syrinx::cli
