#include "cli/knob_flags.h"

#include <algorithm>

namespace syrinx::cli {
namespace {

std::string help_of(const Knob& knob, std::span<const KnobHolder> families) {
  std::string help;
  for (const KnobHolder& family : families)
    if (const Knob* const its = find_knob(family.knobs, knob.name))
      help += fmt::format("{}{}: {}", help.empty() ? "" : "; ", family.title, its->help);
  return help;
}

}  // namespace

void KnobFlags::add(Command& command) {
  for (const KnobHolder& family : families_) {
    for (const Knob& knob : family.knobs) {
      const auto is_it = [&](const Flag& flag) { return std::string_view(flag.knob->name) == knob.name; };
      if (std::any_of(flags_.begin(), flags_.end(), is_it)) continue;
      Flag& flag = flags_.emplace_back();
      flag.knob = &knob;
      const std::string name = flag_name(knob), help = help_of(knob, families_);
      switch (knob.kind) {
        case Knob::Kind::kFlag: command.flag(name.c_str(), flag.is_set, help.c_str()); break;
        case Knob::Kind::kText: {
          Option option = command.option(name.c_str(), flag.text, help.c_str());
          if (knob.choices.empty())
            option.type(knob.type);
          else
            option.one_of({knob.choices.begin(), knob.choices.end()});
          break;
        }
        case Knob::Kind::kTexts: command.option(name.c_str(), flag.texts, help.c_str()).type(knob.type); break;
        case Knob::Kind::kNumber:
        case Knob::Kind::kWhole: command.option(name.c_str(), flag.number, help.c_str()).type(knob.type); break;
      }
    }
  }
}

Knobs KnobFlags::given(Knob::Use use) const {
  Knobs knobs;
  for (const Flag& flag : flags_) {
    if (flag.knob->use != use) continue;
    if (flag.number) knobs.set(flag.knob->name, *flag.number);
    if (flag.text) knobs.set(flag.knob->name, *flag.text);
    if (!flag.texts.empty()) knobs.set(flag.knob->name, flag.texts);
    if (flag.is_set) knobs.set(flag.knob->name, 1.0);
  }
  return knobs;
}

}  // namespace syrinx::cli
