// A voice of Qwen3-TTS, and the file that a cloned one is kept in: safetensors with speaker_embedding [D] in f32
// and, of a voice that goes on behind its recording, ref_code [frames, codebooks] and ref_words [tokens] in i32.
// Immutable; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "models/qwen_tts/codec_decoder.h"
#include "models/qwen_tts/config.h"

namespace syrinx {

inline constexpr size_t kMaxQwenVoiceFrames = 1024, kMaxQwenVoiceWords = 4096;

// A speaker of CustomVoice, what was made of a recording for Base, or nobody in particular.
struct QwenVoice {
  std::string speaker;
  std::vector<float> vector;                         // of a recording, [D]
  std::vector<int32_t> words, codes;                 // of one whose continuation is asked for, else none
  std::optional<qwen_tts::CodecDecoderState> sound;  // behind these codes

  size_t bytes() const {
    return sizeof(QwenVoice) + (vector.size() + words.size() + codes.size()) * sizeof(float) +
           (sound ? sound->transformer.bytes() + sound->histories.size() : 0);
  }
};

// safetensors begin with the length of a header that begins with a brace; no sound does.
bool is_qwen_voice_file(std::span<const std::byte> content);
// Without `sound`.  `name` stands in messages.  kDataLoss: malformed, or codes and tokens that the model does not have;
// kInvalidArgument: another model's; kLimitExceeded.
Result<QwenVoice> parse_qwen_voice(std::span<const std::byte> content, const std::string& name,
                                   const qwen_tts::Config& config);
std::string write_qwen_voice(const QwenVoice& voice, const qwen_tts::Config& config);

}  // namespace syrinx
