#include "tensor/precision.h"

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

}  // namespace syrinx
