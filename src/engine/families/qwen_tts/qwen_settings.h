// The options of Qwen3-TTS, as requests give them by name, and what they mean for a checkpoint.  Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/knobs.h"
#include "engine/speech/speech_session.h"
#include "models/qwen_tts/config.h"

namespace syrinx {

std::span<const Knob> qwen_knobs();
// Those of them that a checkpoint does not take, whatever their values.
std::vector<std::string_view> qwen_lacking_knobs(const qwen_tts::Config& config);

struct QwenSettings {
  std::string language = "auto";  // of the checkpoint
  std::string instructions = {};
  qwen_tts::GenerationConfig draws = {};
  bool text_first = true;
  size_t piece_tokens = 0;
  std::optional<double> max_seconds = {};  // of a piece
  double carry_seconds = 0;                // of a piece that stands in front of the next one; 0: none does
  uint64_t seed = 0;
  // SpeechSettings::forced of a piece, by its number; kSecondTry is added for its second try.  For tests.
  std::function<std::span<const int32_t>(uint32_t number)> forced = {};
};

// The knobs have passed check_knobs(); what is absent is the checkpoint's, or the maker's default.  kUnsupported: an
// option that the checkpoint does not take.  kInvalidArgument: a language that it does not speak.
Result<QwenSettings> read_qwen_settings(const SpeakOptions& options, const qwen_tts::Config& config,
                                        const qwen_tts::GenerationConfig& defaults);

// The name that the checkpoint gives a language: of itself in any case, or of what clients may call it
// (text/language.h). kInvalidArgument.
Result<std::string> find_qwen_language(std::string_view language, const qwen_tts::Config& config);
// Codes of all of them but dialects, "zh", in the order of the checkpoint.
std::vector<std::string> qwen_language_codes(const qwen_tts::Config& config);

}  // namespace syrinx
