// The installed library's codes as the commands' own.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "syrinx/syrinx.h"

namespace syrinx::cli {

// `handle`, an Engine or a Session, has the sentence.
template <class Handle>
Status to_status(syrinx_code code, const Handle& handle) {
  constexpr Code kCodes[] = {Code::kInternal,    Code::kInvalidArgument, Code::kNotFound, Code::kDataLoss,
                             Code::kUnsupported, Code::kLimitExceeded,   Code::kIo,       Code::kUnavailable,
                             Code::kCancelled,   Code::kInternal};
  if (code == SYRINX_OK) return {};
  return fail(kCodes[code], "{}", handle.error());
}

inline const std::vector<std::string> kPrecisions = {"int8", "f32", "bf16", "int4"};

// One of kPrecisions; empty: the model's default.
inline syrinx_precision library_precision(std::string_view name) {
  if (name == "int8") return SYRINX_PRECISION_INT8;
  if (name == "f32") return SYRINX_PRECISION_F32;
  if (name == "bf16") return SYRINX_PRECISION_BF16;
  if (name == "int4") return SYRINX_PRECISION_INT4;
  return SYRINX_PRECISION_DEFAULT;
}

}  // namespace syrinx::cli
