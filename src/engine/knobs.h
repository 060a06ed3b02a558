// Options that only some families of models take: each family lists its own (Knob), a request holds values by name
// (Knobs).  The lists make flags of the command line, fields of the server and options of the C interface.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"

namespace syrinx {

struct Knob {
  enum class Kind : uint8_t { kNumber, kWhole, kFlag, kText, kTexts };
  enum class Use : uint8_t { kRequest, kLoad };  // given with each request, or once when the model is loaded

  const char* name;  // of the field and of the option: "frames_after_eos"
  Kind kind;
  double least = 0, most = 0;  // of a number, both allowed; of a text the most bytes, 0: any
  const char* type = "X";      // of the value, in the help of the command line
  const char* help = "";       // without the family's name
  const char* flag = nullptr;  // of the command line, without "--"; null: the name with '-' in place of '_'
  Use use = Use::kRequest;
  std::span<const char* const> choices = {};  // of a text; empty: any
  double initial = kNone;                     // changes nothing, as if it were not given; of a flag 0

  static constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
};

using KnobValue = std::variant<double, std::string, std::vector<std::string>>;  // a flag is 1 or 0

// Values by name.
class Knobs {
 public:
  using Entry = std::pair<std::string, KnobValue>;

  Knobs() = default;
  Knobs(std::initializer_list<Entry> entries) : entries_(entries) {}

  void set(std::string_view name, KnobValue value);  // replaces
  void erase(std::string_view name);
  bool has(std::string_view name) const { return find(name) != nullptr; }
  // Nothing where there is none of that name, or none of that type.
  std::optional<double> number(std::string_view name) const;
  std::optional<std::string> text(std::string_view name) const;
  std::vector<std::string> texts(std::string_view name) const;
  bool flag(std::string_view name) const { return number(name).value_or(0) != 0; }
  const std::vector<Entry>& entries() const { return entries_; }
  bool empty() const { return entries_.empty(); }

 private:
  const KnobValue* find(std::string_view name) const;
  std::vector<Entry> entries_;
};

// How messages name options.
enum class KnobNames : uint8_t {
  kFields,  // 'frames_after_eos'
  kFlags,   // --frames-after-eos
};

// Null where the list holds none of that name.
const Knob* find_knob(std::span<const Knob> knobs, std::string_view name);
// kInvalidArgument names the option, its value and what is allowed.
Status check_knob_value(const Knob& knob, const KnobValue& value, KnobNames names = KnobNames::kFields);
bool is_initial(const Knob& knob, const KnobValue& value);
// Whether a field of a form can be it: a number or a text that is given with a request.
bool fits_form(const Knob& knob);
std::string flag_name(const Knob& knob);  // "--frames-after-eos"

// A family as a refusal names it.
struct KnobHolder {
  const char* title;      // "Kokoro"
  std::string_view kind;  // "kokoro", as a model may be called
  std::span<const Knob> knobs;
};

// kUnsupported for a name that `family` lacks, unless the value is its initial one, with those of `others` that have
// it; kInvalidArgument for a value.
Status check_knobs(const Knobs& knobs, const KnobHolder& family, std::span<const KnobHolder> others,
                   KnobNames names = KnobNames::kFields);

}  // namespace syrinx
