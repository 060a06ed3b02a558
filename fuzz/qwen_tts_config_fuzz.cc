// Parsers: src/models/qwen_tts/(config|json_section)\.cc
#include "base/check.h"
#include "models/qwen_tts/config.h"

// A config.json, whose numbers must describe decoders and whose ids tokens, or a generation_config.json.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace syrinx;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto generation = qwen_tts::read_generation_config(text, "fuzz"))
    SYRINX_CHECK(generation->talker.temperature > 0 && generation->max_frames > 0, "{}", generation->max_frames);
  const auto config = qwen_tts::read_config(text, "fuzz");
  if (!config) return 0;
  for (const auto* const part : {&config->talker, &config->predictor}) {
    const nn::DecoderConfig shape = qwen_tts::decoder_shape(*part, DType::kBF16);
    SYRINX_CHECK(shape.heads % shape.key_heads == 0 && shape.query_width() > 0, "{} heads", shape.heads);
  }
  const auto is_token = [&](int32_t id) { return id >= 0 && static_cast<size_t>(id) < config->vocabulary; };
  for (const auto& language : config->languages)
    SYRINX_CHECK(is_token(language.id) && config->language(language.name) == &language, "{}", language.id);
  for (const auto& speaker : config->speakers)
    SYRINX_CHECK(is_token(speaker.id) && (speaker.dialect.empty() || config->language(speaker.dialect) != nullptr),
                 "{}", speaker.id);
  SYRINX_CHECK(is_token(config->codec.eos) && static_cast<size_t>(config->codec.eos) >= config->codes(), "{}",
               config->codec.eos);
  return 0;
}
