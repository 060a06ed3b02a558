#include "cli/describe.h"

namespace syrinx::cli {

const std::vector<Meaning>& exit_meanings() {
  static const std::vector<Meaning> meanings = {
      {"0", "success"},
      {"2", "an argument, the text or the name of a voice is invalid"},
      {"3", "a file, model or voice does not exist"},
      {"4", "a file is truncated, malformed or does not match its hash"},
      {"5", "a file is well-formed, but not supported"},
      {"6", "something is larger than a stated limit"},
      {"7", "a system error: permission, disk full, closed pipe, network"},
      {"8", "not now: offline, no speaker"},
      {"70", "a fault of the program"},
      {"130", "stopped by Ctrl-C (SIGINT)"},
      {"143", "stopped by SIGTERM"},
  };
  return meanings;
}

const std::vector<Meaning>& environment_meanings() {
  static const std::vector<Meaning> meanings = {
      {"SYRINX_HOME", "holds models (data/) and caches (cache/) instead of the XDG folders"},
      {"XDG_DATA_HOME", "models are in syrinx/ below it; ~/.local/share when unset"},
      {"XDG_CACHE_HOME", "packed weights are in syrinx/ below it; ~/.cache when unset"},
      {"SYRINX_CPU", "forces a lower vector target: AVX3, AVX2, SSE4, SSSE3, SCALAR or NEON"},
      {"SYRINX_LOG", "debug, info, warning, error or off"},
  };
  return meanings;
}

}  // namespace syrinx::cli
