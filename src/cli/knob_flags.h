// The options that only some families of models take, as flags of a command.
#pragma once

#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/command.h"
#include "engine/knobs.h"

namespace syrinx::cli {

class KnobFlags {
 public:
  explicit KnobFlags(std::vector<KnobHolder> families) : families_(std::move(families)) {}
  KnobFlags(const KnobFlags&) = delete;
  KnobFlags& operator=(const KnobFlags&) = delete;

  // A flag for each option, once where several families have it; this must live as long as the command.
  void add(Command& command);
  // The options of that use that were given.
  Knobs given(Knob::Use use) const;

 private:
  struct Flag {
    const Knob* knob = nullptr;
    std::optional<double> number = {};
    std::optional<std::string> text = {};
    std::vector<std::string> texts = {};
    bool is_set = false;
  };
  const std::vector<KnobHolder> families_;
  std::deque<Flag> flags_;  // whose places stay
};

}  // namespace syrinx::cli
