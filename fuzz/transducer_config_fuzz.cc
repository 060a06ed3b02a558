// Parsers: src/models/transducer/(config_file|config_prompt|transformers_config)\.cc
#include "models/transducer/config_file.h"
#include "models/transducer/encoder_state.h"

// A configuration that can be read must also make the state of a stream.  Behind a zero byte stands transformers'
// processor_config.json.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace syrinx::transducer;
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  const size_t cut = std::min(all.find('\0'), size);
  const auto config =
      parse_config(all.substr(0, cut), "fuzz", {.text = all.substr(std::min(cut + 1, size)), .name = "processor"});
  if (!config) return 0;
  SYRINX_CHECK(config->features.hop <= config->features.window / 2, "a hop of {}", config->features.hop);
  for (const PromptConfig::Language& language : config->encoder.prompt.languages)
    SYRINX_CHECK(language.index < config->encoder.prompt.count, "prompt {}", language.index);
  for (const AttentionContext context : config->encoder.contexts)
    if (check_streaming(config->encoder, context)) EncoderState(config->encoder, context, StreamMode::kExact);
  return 0;
}
