// Qwen3-TTS checkpoints of random numbers, with the names, shapes and number formats of the published CustomVoice (spec
// qwen3-tts.md, sections 1.2 to 1.4; tools/checkpoints/qwen_tts.py draws others of the same kind) but for the codec's
// encoder, which only clones.  They cost as much time and memory as the real ones, and every stage keeps its values
// near unit size.  The end is never among the 50 likeliest codes, so that speech is as long as it may be; words of
// spoken_texts.h are a token each, so that texts have about as many as with the published vocabulary.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/thread_team.h"
#include "models/qwen_tts/codec_config.h"
#include "models/qwen_tts/config.h"

namespace syrinx::bench {

// "0.6b" first, then "1.7b", and "small" for tests.
std::vector<std::string> random_qwen_names();

// config.json of the model and of its codec.  kInvalidArgument for a name that is none, with those that are.
struct RandomQwenConfigs {
  std::string model, codec;
};
Result<RandomQwenConfigs> random_qwen_configs(std::string_view name);

// Numbers spread evenly around `centre` with a standard deviation, those of one row 0.
struct RandomQwenTensor {
  static constexpr int64_t kNoRow = -1;

  std::string name;
  std::vector<size_t> dims;
  float centre = 0.0f, deviation = 0.0f;
  int64_t zero_row = kNoRow;
};
std::vector<RandomQwenTensor> random_qwen_tensors(const qwen_tts::Config& config);
std::vector<RandomQwenTensor> random_qwen_codec_tensors(const qwen_tts::CodecDecoderConfig& config);

// Writes the checkpoint (bf16, its codec in f32; the same bytes each time, for any team) into `folder`, which is made;
// a folder that has it already is left alone.  The model's weights come last and appear whole or not at all, so two
// processes may do this at once.  Holds some MB.  A line on standard error says what is written before it is.  Errors
// as above; kIo, also where too little is free; kCancelled after a signal, and no part of a file stays.
Status make_random_qwen(const std::string& folder, std::string_view name, ThreadTeam& team);

}  // namespace syrinx::bench
