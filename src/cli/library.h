// The installed library's codes as the commands' own.
#pragma once

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

}  // namespace syrinx::cli
