// Any bytes as a voice of a small Pocket TTS model: a sentence, or a voice of its shape whose file reads back the same.
// Parsers: src/models/pocket_tts/voice_file\.cc
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>

#include "base/check.h"
#include "models/pocket_tts/voice_file.h"

using syrinx::pocket::Voice;
using syrinx::pocket::VoicePrompt;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  syrinx::pocket::FlowLmConfig config;
  config.transformer.width = 3;
  config.transformer.layers = 2;
  config.transformer.heads = 2;
  config.transformer.key_heads = 1;
  config.transformer.attention_width = 4;
  const auto read = parse_voice_file(std::as_bytes(std::span(data, size)), "fuzz", config);
  if (!read) {
    SYRINX_CHECK(!read.error().message.empty());
    return 0;
  }
  if (const auto* const prompt = std::get_if<VoicePrompt>(&*read)) {
    SYRINX_CHECK(prompt->positions > 0 && prompt->rows.size() == prompt->positions * 3);
    for (const float value : prompt->rows) SYRINX_CHECK(std::isfinite(value));
    return 0;
  }
  const Voice& voice = std::get<Voice>(*read);
  SYRINX_CHECK(voice.positions > 0 && voice.positions <= syrinx::pocket::kMaxVoicePositions);
  SYRINX_CHECK(voice.layers.size() == 2);
  const std::string file = write_voice_file(voice, config);
  const auto again = parse_voice_file(std::as_bytes(std::span(file)), "again", config);
  SYRINX_CHECK(again.has_value() && std::holds_alternative<Voice>(*again));
  const Voice& same = std::get<Voice>(*again);
  SYRINX_CHECK(same.positions == voice.positions && same.layers.size() == voice.layers.size());
  for (size_t i = 0; i < voice.layers.size(); ++i) {
    SYRINX_CHECK(voice.layers[i].keys.size() == voice.positions * config.transformer.key_width());
    SYRINX_CHECK(voice.layers[i].values.size() == voice.layers[i].keys.size());
    SYRINX_CHECK(same.layers[i].keys == voice.layers[i].keys && same.layers[i].values == voice.layers[i].values);
    for (const float value : voice.layers[i].keys) SYRINX_CHECK(std::isfinite(value));
    for (const float value : voice.layers[i].values) SYRINX_CHECK(std::isfinite(value));
  }
  SYRINX_CHECK(write_voice_file(same, config) == file);
  return 0;
}
