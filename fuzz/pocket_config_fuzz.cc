// Any bytes as the configuration of a Pocket TTS checkpoint: a sentence, or numbers that the stages can be built from.
// Parsers: src/models/pocket_tts/config_\w+\.cc
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "models/pocket_tts/config_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto read = syrinx::pocket::parse_config({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!read) {
    SYRINX_CHECK(!read.error().message.empty() && read.error().message.size() < 600);
    return 0;
  }
  const syrinx::pocket::Config& config = read->config;
  for (const auto& transformer :
       {config.flow_lm.transformer, config.mimi.encoder_transformer, config.mimi.decoder_transformer}) {
    SYRINX_CHECK(transformer.layers > 0 && transformer.hidden > 0 && transformer.head_size() > 0);
    SYRINX_CHECK(transformer.head_size() * transformer.heads == transformer.attention_width);
    SYRINX_CHECK(transformer.heads % transformer.key_heads == 0);
  }
  SYRINX_CHECK(syrinx::mimi::check(config.mimi).has_value());
  SYRINX_CHECK(config.mimi.resample_stride() * config.mimi.decoder.hop() == config.mimi.frame_samples());
  SYRINX_CHECK(config.mimi.encoder.hop() == config.mimi.decoder.hop());
  SYRINX_CHECK(config.mimi.outer_width == config.mimi.decoder.width);
  SYRINX_CHECK(config.flow_lm.text_bins > 0 && config.temperature >= 0);
  SYRINX_CHECK(config.flow_lm.transformer.max_period > 1 && config.flow_lm.transformer.hidden <= 16384);
  SYRINX_CHECK(read->warnings.size() <= 21);
  return 0;
}
