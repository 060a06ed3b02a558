// The error of a build without FFmpeg's headers.
#pragma once

#include "base/result.h"

namespace syrinx {

inline Error built_without_libav() {
  return {Code::kUnsupported, "this program was built without them (Debian's package libavformat-dev)"};
}

}  // namespace syrinx
