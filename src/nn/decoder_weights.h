// The weights of a decoder (decoder.h), packed for streaming.  Immutable once made; any number of threads and streams
// may share them.
#pragma once

#include <optional>
#include <vector>

#include "kernels/pack.h"
#include "nn/decoder_config.h"
#include "nn/norm_weights.h"

namespace syrinx::nn {

// Attention to what another model heard, of C positions of width E.
struct CrossBlock {
  NormWeights norm;                // [D]
  kernels::OwnedMatrix query;      // D -> H K
  kernels::OwnedMatrix key_value;  // E -> 2 H K, fills a CrossCache
  kernels::OwnedMatrix out;        // H K -> D
};

// D, H, G, K, F as in DecoderConfig.
struct DecoderBlock {
  NormWeights before, after;                    // [D]: before attention, after it
  kernels::OwnedMatrix in;                      // D -> (H + 2 G) K: queries, keys, values
  kernels::OwnedMatrix out;                     // H K -> D
  kernels::OwnedMatrix up;                      // D -> F, or for SwiGLU panels of gates and values in turn (swiglu.h)
  kernels::OwnedMatrix down;                    // F -> D
  std::vector<float> query_norm{}, key_norm{};  // [K], with head_norm
  std::vector<float> attention_scale{}, mlp_scale{};  // [D], with layer_scale; padded to whole panels
  std::optional<CrossBlock> cross{};
};

struct DecoderWeights {
  DecoderConfig shape;
  std::vector<DecoderBlock> layers;
  std::vector<float> theta;  // rotary frequencies, [K / 2]

  // theta as `shape` says.
  void set_frequencies();
};

// Rows [columns, channels] of a query or key projection, and its bias and norm in the same way, from a checkpoint whose
// rotary embedding turns the pairs (i, i + K / 2) into the order of interleaved pairs.  Attention is unchanged, as
// queries and keys are reordered alike.  `values` is [heads * K, channels].
void interleave_halves(std::span<float> values, size_t head_size, size_t channels);

// The rows of SwiGLU's gate and value projections [hidden, channels] each as one matrix whose panels alternate; rows of
// zeros fill the last panels.  The result is [2 round_up(hidden, 32), channels].
std::vector<float> interleave_panels(std::span<const float> gate, std::span<const float> value, size_t channels);

}  // namespace syrinx::nn
