#include "engine/knobs.h"

#include <algorithm>
#include <cmath>

#include "base/in_quotes.h"

namespace syrinx {
namespace {

std::string range_of(const Knob& knob) {
  if (knob.kind == Knob::Kind::kFlag) return "0 or 1";
  const char* const what = knob.kind == Knob::Kind::kWhole ? "a whole number" : "a number";
  return fmt::format("{} from {} to {}", what, knob.least, knob.most);
}

std::string name_of(const Knob& knob, KnobNames names) {
  return names == KnobNames::kFlags ? flag_name(knob) : fmt::format("'{}'", knob.name);
}

Status check_number(const Knob& knob, double value, KnobNames names) {
  const bool is_in_range = std::isfinite(value) && value >= knob.least && value <= knob.most;
  const bool is_number = knob.kind == Knob::Kind::kNumber;
  const bool is_flag = knob.kind == Knob::Kind::kFlag;
  if (is_flag ? value == 0 || value == 1 : is_in_range && (is_number || value == std::floor(value))) return {};
  return fail(Code::kInvalidArgument, "{} is {}; give {}", name_of(knob, names), value, range_of(knob));
}

Status check_text(const Knob& knob, const std::string& text, KnobNames names) {
  if (knob.most > 0 && static_cast<double>(text.size()) > knob.most)
    return fail(Code::kInvalidArgument, "{} has {} bytes; give at most {}", name_of(knob, names), text.size(),
                knob.most);
  if (knob.choices.empty()) return {};
  for (const char* const choice : knob.choices)
    if (text == choice) return {};
  return fail(Code::kInvalidArgument, "{} is {}; choose {}", name_of(knob, names), in_quotes(text),
              fmt::join(knob.choices, " or "));
}

}  // namespace

void Knobs::set(std::string_view name, KnobValue value) {
  erase(name);
  entries_.emplace_back(name, std::move(value));
}

void Knobs::erase(std::string_view name) {
  std::erase_if(entries_, [&](const Entry& entry) { return entry.first == name; });
}

const KnobValue* Knobs::find(std::string_view name) const {
  const auto found =
      std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) { return entry.first == name; });
  return found != entries_.end() ? &found->second : nullptr;
}

std::optional<double> Knobs::number(std::string_view name) const {
  const KnobValue* const value = find(name);
  const double* const number = value != nullptr ? std::get_if<double>(value) : nullptr;
  return number != nullptr ? std::optional(*number) : std::nullopt;
}

std::optional<std::string> Knobs::text(std::string_view name) const {
  const KnobValue* const value = find(name);
  const std::string* const text = value != nullptr ? std::get_if<std::string>(value) : nullptr;
  return text != nullptr ? std::optional(*text) : std::nullopt;
}

std::vector<std::string> Knobs::texts(std::string_view name) const {
  const KnobValue* const value = find(name);
  const auto* const texts = value != nullptr ? std::get_if<std::vector<std::string>>(value) : nullptr;
  return texts != nullptr ? *texts : std::vector<std::string>();
}

const Knob* find_knob(std::span<const Knob> knobs, std::string_view name) {
  const auto found = std::find_if(knobs.begin(), knobs.end(), [&](const Knob& knob) { return knob.name == name; });
  return found != knobs.end() ? &*found : nullptr;
}

Status check_knob_value(const Knob& knob, const KnobValue& value, KnobNames names) {
  switch (knob.kind) {
    case Knob::Kind::kText:
      if (const auto* const text = std::get_if<std::string>(&value)) return check_text(knob, *text, names);
      return fail(Code::kInvalidArgument, "{} takes a text", name_of(knob, names));
    case Knob::Kind::kTexts:
      if (std::holds_alternative<std::vector<std::string>>(value)) return {};
      return fail(Code::kInvalidArgument, "{} takes a list of texts", name_of(knob, names));
    case Knob::Kind::kNumber:
    case Knob::Kind::kWhole:
    case Knob::Kind::kFlag: break;
  }
  if (const double* const number = std::get_if<double>(&value)) return check_number(knob, *number, names);
  return fail(Code::kInvalidArgument, "{} takes {}", name_of(knob, names), range_of(knob));
}

bool is_initial(const Knob& knob, const KnobValue& value) {
  const double* const number = std::get_if<double>(&value);
  return number != nullptr && *number == (knob.kind == Knob::Kind::kFlag ? 0 : knob.initial);
}

bool fits_form(const Knob& knob) {
  const bool is_plain =
      knob.kind == Knob::Kind::kNumber || knob.kind == Knob::Kind::kWhole || knob.kind == Knob::Kind::kText;
  return knob.use == Knob::Use::kRequest && is_plain;
}

std::string flag_name(const Knob& knob) {
  std::string name = knob.flag != nullptr ? knob.flag : knob.name;
  std::replace(name.begin(), name.end(), '_', '-');
  return "--" + name;
}

Status check_knobs(const Knobs& knobs, const KnobHolder& family, std::span<const KnobHolder> others, KnobNames names) {
  for (const auto& [name, value] : knobs.entries()) {
    if (const Knob* const knob = find_knob(family.knobs, name)) {
      SYRINX_TRY_VOID(check_knob_value(*knob, value, names));
      continue;
    }
    std::vector<std::string_view> holders;
    bool changes_nothing = false;
    std::string shown = in_quotes(name);
    for (const KnobHolder& other : others)
      if (const Knob* const knob = find_knob(other.knobs, name)) {
        holders.push_back(other.kind);
        changes_nothing = changes_nothing || is_initial(*knob, value);
        shown = name_of(*knob, names);
      }
    if (changes_nothing) continue;
    if (holders.empty()) return fail(Code::kUnsupported, "no family of models has {}; leave it out", shown);
    return fail(Code::kUnsupported, "{} has no {}; leave it out, or take {}", family.title, shown,
                fmt::join(holders, " or "));
  }
  return {};
}

}  // namespace syrinx
