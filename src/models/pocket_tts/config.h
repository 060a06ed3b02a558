// What a Pocket TTS checkpoint is: every dimension and setting of its YAML file (spec pocket-tts.md, section 1.2; the
// maker's pocket_tts/utils/config.py and pocket_tts/config/*.yaml).  No code knows a dimension from elsewhere.
//
// Defaults are the maker's.  What the file may leave null is resolved here: attention_width, key_heads, hidden, the
// decoder's sections, inner_width and outer_width always hold the number that counts.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace syrinx::pocket {

// How noise becomes a latent (section 3.3).
enum class HeadType : uint8_t { kLsd, kFlowMatching, kDrifting, kPointwise };
enum class TokenizerKind : uint8_t { kSentencePiece, kJson };

struct TransformerConfig {
  size_t width = 0;  // d_model
  size_t layers = 0;
  size_t heads = 0;            // query heads
  size_t key_heads = 0;        // key and value heads; divides `heads`
  size_t attention_width = 0;  // all query heads together; the head size is attention_width / heads
  size_t hidden = 0;           // feed-forward width
  float max_period = 10000.0f;
  size_t window = 0;         // keys seen, the position itself included; 0: all.  Codec only
  bool layer_scale = false;  // codec only

  size_t head_size() const { return attention_width / heads; }
  size_t key_width() const { return key_heads * head_size(); }
};

struct SeanetConfig {
  size_t width = 0;    // `dimension`: channels at the slow end
  size_t filters = 0;  // channels at the fast end
  size_t kernel = 0, last_kernel = 0, residual_kernel = 0;
  size_t compress = 2;  // a residual block's inner channels are 1 / compress
  size_t residual_layers = 1;
  size_t dilation_base = 2;
  std::vector<size_t> ratios;  // from the slow end to the fast end: 6, 5, 4
  size_t hop() const {         // samples a position: the product of the ratios
    size_t product = 1;
    for (const size_t ratio : ratios) product *= ratio;
    return product;
  }
};

struct MimiConfig {
  size_t sample_rate = 24000;
  double frame_rate = 12.5;
  size_t latent = 32;      // quantizer.dimension
  size_t inner_width = 0;  // of the voice's latents
  size_t outer_width = 0;  // what the quantizer projects to: the decoder's width
  SeanetConfig encoder, decoder;
  TransformerConfig encoder_transformer, decoder_transformer;

  size_t frame_samples() const { return static_cast<size_t>(static_cast<double>(sample_rate) / frame_rate); }
  size_t resample_stride() const { return frame_samples() / decoder.hop(); }  // positions a frame
};

struct FlowLmConfig {
  TransformerConfig transformer;
  HeadType head = HeadType::kLsd;
  size_t head_depth = 0, head_width = 0;
  size_t condition = 0;            // what the heads read: z_dim, or the transformer's width
  bool project_condition = false;  // z_dim is given: there is a z_proj
  size_t text_bins = 0;            // tokens; the table has one row more
  size_t text_rank = 0;            // width of the table where it is low-rank, else 0
  bool bos_before_voice = false;
  TokenizerKind tokenizer = TokenizerKind::kJson;
  std::string tokenizer_path;  // as written: a path, hf:// or http(s)://
};

// How a text is made ready (section 2.2).
struct TextConfig {
  bool pad_short = false;  // pad_with_spaces_for_short_inputs
  bool remove_semicolons = false;
  bool terminal_punctuation = true;
  bool capitalize = true;
  std::vector<std::pair<char32_t, std::u32string>> replace;  // replace_characters, in the file's order
};

struct Config {
  FlowLmConfig flow_lm;
  MimiConfig mimi;
  TextConfig text;
  float temperature = 0.3f;
  float eos_threshold = -4.0f;
  std::optional<size_t> frames_after_eos;  // model_recommended_frames_after_eos
  std::string weights_path, weights_path_without_voice_cloning;
};

}  // namespace syrinx::pocket
