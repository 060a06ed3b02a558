// The dimensions of the 12 Hz codec of Qwen3-TTS, both halves (spec qwen3-tts.md, section 1.3; the maker's
// tokenizer_12hz/configuration_qwen3_tts_tokenizer_v2.py and transformers' configuration_mimi.py).  The numbers come
// from speech_tokenizer/config.json; no code knows a dimension from elsewhere.  Load time only; one thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace syrinx::qwen_tts {

// Several times those of the published codec; the weights' sizes follow from them.
inline constexpr size_t kMaxCodecWidth = 16384, kMaxCodecLayers = 256, kMaxCodecWindow = 8192;
inline constexpr size_t kMaxCodebooks = 64, kMaxCodebookSize = 65536;
inline constexpr size_t kMaxCodecRatios = 8, kMaxCodecRatio = 64, kMaxCodecFrameSamples = size_t{1} << 16;
inline constexpr size_t kMaxCodecKernel = 64, kMaxCodecResidualLayers = 8, kMaxCodecReach = 1024;

// Frames of a pass at most.
inline constexpr size_t kMaxCodecPassFrames = 64;

struct CodecTransformer {
  size_t width = 0;   // D, hidden_size
  size_t layers = 0;  // num_hidden_layers
  size_t heads = 0, key_heads = 0;
  size_t head_size = 0;  // even; heads * head_size need not be D
  size_t hidden = 0;     // F, intermediate_size
  size_t window = 0;     // positions that a query sees, its own included
  float epsilon = 1e-5f;
  float period = 10000.0f;  // rope_theta
};

// Codes to samples: RVQ, a convolution and a transformer at the rate of frames, `ratios` and then `rates` upwards.
struct CodecDecoderConfig {
  size_t codebooks = 0;      // num_quantizers; the first is semantic and projected by itself
  size_t codebook_size = 0;  // rows of a codebook: codes are below it
  size_t codebook_dim = 0;   // even: what the quantizer makes; a codebook's rows are half as wide
  size_t latent = 0;         // latent_dim: around the transformer, and up to the decoder
  size_t width = 0;          // decoder_dim: halved by each of `rates`
  CodecTransformer transformer;
  std::vector<size_t> ratios;  // upsampling_ratios, behind the transformer: 2, 2
  std::vector<size_t> rates;   // upsample_rates, of the decoder's blocks: 8, 5, 4, 3

  size_t row_width() const { return codebook_dim / 2; }
  size_t positions() const;      // a frame, behind `ratios`: 4
  size_t frame_samples() const;  // 1920
};

// Samples to codes: a Mimi's encoder.
struct CodecEncoderConfig {
  size_t width = 0;    // hidden_size: of the SEANet's slow end, the transformer and the downsampling
  size_t filters = 0;  // channels at the fast end
  size_t kernel = 0, last_kernel = 0, residual_kernel = 0;
  size_t residual_layers = 1;
  size_t dilation_base = 2;
  size_t compress = 2;  // a residual block's inner channels are 1 / compress
  CodecTransformer transformer;
  std::vector<size_t> ratios;  // from the slow end to the fast end: 8, 6, 5, 4
  size_t codebooks = 0;        // num_quantizers: what the file has, the semantic one included
  size_t used_codebooks = 0;   // encoder_valid_num_quantizers: what is kept of them
  size_t codebook_size = 0;    // rows of a codebook
  size_t row_width = 0;        // codebook_dim
  size_t downsample = 2;       // positions of the SEANet a frame
  size_t hop() const;          // samples a position: the product of the ratios
  size_t frame_samples() const { return hop() * downsample; }
};

struct CodecConfig {
  size_t sample_rate = 0;    // of what is heard and of what is said
  size_t frame_samples = 0;  // of one frame of codes: 1920
  CodecDecoderConfig decoder;
  CodecEncoderConfig encoder;
};

// `name` stands in messages.  kUnsupported: a kind or a dimension that cannot be run, or parts that do not fit each
// other.  kDataLoss: what is missing, or of another JSON type.  kLimitExceeded: a file that is too large.  Messages
// name the field.
Result<CodecConfig> read_codec_config(std::string_view json, const std::string& name);
// The same checks, for a configuration that is made otherwise.
Status check(const CodecConfig& config, const std::string& name);

}  // namespace syrinx::qwen_tts
