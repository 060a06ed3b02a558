// Dimensions of a Mimi codec's convolutions and transformers (spec pocket-tts.md, sections 1.2 and 4; the maker's
// pocket_tts/utils/config.py).  No code knows a dimension from elsewhere.
#pragma once

#include <cstddef>
#include <vector>

#include "base/result.h"
#include "nn/transformer_config.h"

namespace syrinx::mimi {

// Several times what any published checkpoint has; the weights' sizes follow from them.
inline constexpr size_t kMaxWidth = 16384, kMaxLayers = 256, kMaxWindow = 16384, kMaxResidualLayers = 8;
// Frames of a pass of the encoder; the decoder takes one.
inline constexpr size_t kMaxPassFrames = 3;
inline constexpr size_t kMaxRatios = 8, kMaxRatio = 64, kMaxFrameSamples = size_t{1} << 16;

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

struct Config {
  size_t sample_rate = 24000;
  double frame_rate = 12.5;
  size_t latent = 32;      // quantizer.dimension
  size_t inner_width = 0;  // of the voice's latents
  size_t outer_width = 0;  // what the quantizer projects to: the decoder's width
  SeanetConfig encoder, decoder;
  nn::TransformerConfig encoder_transformer, decoder_transformer;

  size_t frame_samples() const { return static_cast<size_t>(static_cast<double>(sample_rate) / frame_rate); }
  size_t resample_stride() const { return frame_samples() / decoder.hop(); }  // positions a frame
};

// Whether the codec of this configuration can be built: every dimension within its limit, and the parts fitting each
// other.  kUnsupported names what does not.
Status check(const Config& config);

}  // namespace syrinx::mimi
