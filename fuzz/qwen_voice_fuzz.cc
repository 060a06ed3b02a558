// Any bytes as a voice of a small Qwen3-TTS model: a sentence, or a voice of its shape whose file reads back the same.
// Parsers: src/engine/families/qwen_tts/qwen_voice\.cc
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/check.h"
#include "engine/families/qwen_tts/qwen_voice.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  syrinx::qwen_tts::Config config;
  config.talker.width = 3;
  config.text_vocabulary = 8;
  config.vocabulary = syrinx::qwen_tts::Config::kControlTokens + 4;
  config.predictor_codes = 3;
  config.codebooks = 2;
  const auto read = syrinx::parse_qwen_voice(std::as_bytes(std::span(data, size)), "fuzz", config);
  if (!read) {
    SYRINX_CHECK(!read.error().message.empty());
    return 0;
  }
  SYRINX_CHECK(read->vector.size() == 3 && read->words.empty() == read->codes.empty());
  for (const float value : read->vector) SYRINX_CHECK(std::isfinite(value));
  for (size_t i = 0; i < read->codes.size(); ++i)
    SYRINX_CHECK(read->codes[i] >= 0 && read->codes[i] < (i % 2 == 0 ? 4 : 3));
  for (const int32_t word : read->words) SYRINX_CHECK(word >= 0 && word < 8);
  const std::string file = write_qwen_voice(*read, config);
  const auto again = syrinx::parse_qwen_voice(std::as_bytes(std::span(file)), "again", config);
  SYRINX_CHECK(again.has_value() && again->vector == read->vector);
  SYRINX_CHECK(again->codes == read->codes && again->words == read->words);
  return 0;
}
