#include "models/transducer/config_file.h"
#include "models/transducer/encoder_state.h"

// What can be read must also make the state of a stream.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace syrinx::transducer;
  const auto config = parse_config({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!config) return 0;
  SYRINX_CHECK(config->features.hop <= config->features.window / 2, "a hop of {}", config->features.hop);
  for (const AttentionContext context : config->encoder.contexts)
    if (check_streaming(config->encoder, context)) EncoderState(config->encoder, context, StreamMode::kExact);
  return 0;
}
