#include "tensor/precision.h"

#include <algorithm>
#include <vector>

namespace syrinx {

const char* precision_name(Precision precision) {
  switch (precision) {
    case Precision::kF32: return "f32";
    case Precision::kBf16: return "bf16";
    case Precision::kInt8: return "int8";
    case Precision::kInt4: return "int4";
  }
  return "";
}

Result<Precision> parse_precision(std::string_view name) {
  for (const Precision precision : kAllPrecisions)
    if (name == precision_name(precision)) return precision;
  return fail(Code::kInvalidArgument, "'{}' is not a precision; use f32, bf16, int8 or int4", name.substr(0, 32));
}

Status check_precision(Precision precision, std::span<const Precision> known, const char* title) {
  if (std::find(known.begin(), known.end(), precision) != known.end()) return {};
  std::vector<const char*> names;
  names.reserve(known.size());
  for (const Precision each : known) names.push_back(precision_name(each));
  return fail(Code::kUnsupported, "{} is computed in {}, not in {}", title, fmt::join(names, " or "),
              precision_name(precision));
}

}  // namespace syrinx
