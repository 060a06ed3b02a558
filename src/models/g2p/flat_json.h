// A bounded reader for the two JSON forms of the pronunciation files: an object of strings, or of objects of strings.
// Values of any other kind are refused, except null and numbers, which arrive as their text.  Builds no tree.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace syrinx::g2p {

// Called for each member with its key, the inner key (empty for a plain value) and the value; `is_string` is false for
// a number or a literal.  An error that it returns ends the reading.
using FlatJsonVisitor =
    std::function<Status(std::string_view key, std::string_view inner, std::string_view value, bool is_string)>;

// `name` is the file's, for messages.  kDataLoss with the byte where the text stops being such JSON.
Status read_flat_json(std::string_view json, std::string_view name, const FlatJsonVisitor& visit);

}  // namespace syrinx::g2p
