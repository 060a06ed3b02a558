// Parsers: src/models/qwen_tts/codec_config\.cc
#include "base/check.h"
#include "models/qwen_tts/codec_config.h"

// speech_tokenizer/config.json, whose numbers must describe both halves of a codec.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace syrinx;
  const auto config = qwen_tts::read_codec_config(std::string_view(reinterpret_cast<const char*>(data), size), "fuzz");
  if (!config) return 0;
  SYRINX_CHECK(config->decoder.frame_samples() == config->frame_samples &&
                   config->encoder.frame_samples() == config->frame_samples,
               "{} samples a frame", config->frame_samples);
  SYRINX_CHECK(config->decoder.width >> config->decoder.rates.size() > 0 && config->decoder.codebooks > 1,
               "a width of {}", config->decoder.width);
  return 0;
}
