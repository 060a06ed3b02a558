// Messages for a transducer's fault bits.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "models/transducer/decoder_state.h"

namespace syrinx {

// The sentence of the first stage that went wrong, as those behind it follow it; nothing without a fault.
inline Status fault_status(uint32_t faults, const std::string& model) {
  if (faults == 0) return {};
  if ((faults & transducer::kTooManyLabels) != 0)
    return fail(Code::kLimitExceeded,
                "'{}' found more words at once than a stream has room for; its weights may be damaged", model);
  const char* const stage = (faults & transducer::kFramesNotFinite) != 0 ? "encoder" : "decoder";
  return fail(Code::kDataLoss, "the {} of '{}' computed values that are not finite; its weights may be damaged", stage,
              model);
}

}  // namespace syrinx
