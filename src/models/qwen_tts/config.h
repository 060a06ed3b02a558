// The dimensions, ids and defaults of a Qwen3-TTS checkpoint (spec qwen3-tts.md, sections 1.2 and 2.3; the maker's
// configuration_qwen3_tts.py), from its config.json and generation_config.json.  Nothing is taken from the defaults of
// the maker's classes, which are not those of any published checkpoint, but the fields of the speaker encoder that no
// file tells.  Load time only; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "nn/decoder_config.h"

namespace syrinx::qwen_tts {

// kBase speaks with the voice of a recording, kCustomVoice with the speakers of the file, kVoiceDesign with a voice
// that is told in words.
enum class Kind : uint8_t { kBase, kCustomVoice, kVoiceDesign };
const char* kind_name(Kind kind);  // as config.json has it: base, custom_voice, voice_design

// A stack of decoder layers (Qwen 3's: RMS norms, a norm on each query and key head, SwiGLU).
struct TransformerConfig {
  size_t width = 0;   // D
  size_t hidden = 0;  // F
  size_t layers = 0;
  size_t heads = 0, key_heads = 0, head_size = 0;
  float epsilon = 0, period = 0;
  size_t context = 0;  // positions that the model was made for
};
nn::DecoderConfig decoder_shape(const TransformerConfig& config, DType cache);

// Tokens of the text side that are no text.
struct TextIds {
  int32_t im_start = 0, im_end = 0;
  int32_t pad = 0, bos = 0, eos = 0;  // tts_pad, tts_bos, tts_eos
};
// Tokens of the codec side that are no codes.
struct CodecIds {
  int32_t pad = 0, bos = 0, eos = 0;
  int32_t think = 0, no_think = 0, think_begin = 0, think_end = 0;
};

struct Language {
  std::string name;                                                              // in lower case
  int32_t id = 0;                                                                // of the codec side
  bool is_dialect() const { return name.find("dialect") != std::string::npos; }  // nothing that a user asks for
};
struct Speaker {
  std::string name;     // in lower case
  int32_t id = 0;       // of the codec side
  std::string dialect;  // the name of a Language, spoken unless another language than Chinese is asked for; or empty
};

// The fields of ECAPA-TDNN, with those of the maker's class that no published file tells.
struct SpeakerEncoderConfig {
  size_t mels = 128;  // mel_dim
  size_t width = 0;   // enc_dim: of the x-vector, the talker's width
  size_t sample_rate = 24000;
  // One of each a block: the first, the SE-Res2Net blocks, the aggregation.
  std::vector<size_t> channels = {512, 512, 512, 512, 1536};
  std::vector<size_t> kernels = {5, 3, 3, 3, 1};
  std::vector<size_t> dilations = {1, 2, 3, 4, 1};
  size_t attention_channels = 128;
  size_t res2net_scale = 8;
  size_t se_channels = 128;
};

struct Config {
  // Tokens at the end of the talker's vocabulary that are no codes; of them only `eos` may be drawn.
  static constexpr size_t kControlTokens = 1024;

  Kind kind = Kind::kBase;
  std::string size;  // tts_model_size: 0b6, 1b7
  TransformerConfig talker, predictor;
  size_t text_vocabulary = 0, text_width = 0;
  size_t vocabulary = 0;       // V of the talker: codes of the first codebook, then kControlTokens
  size_t predictor_codes = 0;  // of each further codebook
  size_t codebooks = 0;        // codes of a frame: num_code_groups
  TextIds text;
  CodecIds codec;
  std::vector<Language> languages;
  std::vector<Speaker> speakers;                        // none but of kCustomVoice
  std::optional<SpeakerEncoderConfig> speaker_encoder;  // of kBase
  bool cuts_by_case = false;                            // the expression that cuts texts: see tokenizer.h

  size_t codes() const { return vocabulary - kControlTokens; }  // of the first codebook
  // An instruction in words, such as of how to speak; the maker's wrapper drops those for a small model with speakers.
  bool takes_instruction() const { return kind == Kind::kVoiceDesign || (kind == Kind::kCustomVoice && size != "0b6"); }
  bool projects_predictor() const { return talker.width != predictor.width; }
  // By name, whose case does not matter; null: there is none.
  const Language* language(std::string_view name) const;
  const Speaker* speaker(std::string_view name) const;
};

// `name` stands in messages of all.  kUnsupported: another model, an activation, bias, window or scaling of positions
// that no published one has, dimensions out of their limits.  kDataLoss: what is missing, of another type or
// contradicts itself, such as an id outside its vocabulary.  kLimitExceeded: of the parser of JSON.
Result<Config> read_config(std::string_view json, const std::string& name);

// How a code is drawn unless a request tells otherwise.
struct DrawSettings {
  bool samples = true;  // false: the largest logit
  float temperature = 0.9f;
  size_t top_k = 50;  // 0: all
  float top_p = 1.0f;
};
struct GenerationConfig {
  DrawSettings talker, predictor;
  float penalty = 1.05f;     // repetition_penalty, of the talker's codes
  size_t max_frames = 2048;  // max_new_tokens
};
// Absent keys are as the maker's wrapper has them; a temperature counts only where codes are drawn, and a top_k above
// 65536 or a max_new_tokens above 2^20 is taken as that.  kDataLoss: a value of another type; kUnsupported: out of its
// range.
Result<GenerationConfig> read_generation_config(std::string_view json, const std::string& name);

}  // namespace syrinx::qwen_tts
