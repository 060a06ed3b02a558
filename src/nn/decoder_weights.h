// The weights of a decoder (decoder.h), packed for streaming.  Immutable once made; any number of threads and streams
// may share them.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "kernels/pack.h"
#include "nn/decoder_config.h"
#include "nn/norm_weights.h"
#include "tensor/precision.h"

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

// Names of a layer's tensors in a checkpoint; "{}" stands for the layer's number.  Empty: there is none.
struct DecoderNames {
  struct Norm {
    std::string gamma, beta;
  };
  struct Linear {
    std::string weight, bias;
    std::string key{};  // under which the packed matrix is kept; empty: `weight`, and what load() does to it
  };
  Norm before, after;
  std::vector<Linear> in;  // queries, keys and values: one tensor for all of them, or one each
  Linear out;
  Linear gate;  // of SwiGLU, with `up` for its values
  Linear up, down;
  std::string query_norm{}, key_norm{};
  std::string attention_scale{}, mlp_scale{};
  Norm cross_norm{};
  Linear cross_query{};
  std::vector<Linear> cross_key_value{};  // one tensor for both, or one each
  Linear cross_out{};
  bool half_split = false;  // the rotary embedding turns the pairs (i, i + K / 2)
};

// The names of one layer.
DecoderNames numbered(DecoderNames names, size_t layer);

// In which types the matrices are packed.
struct DecoderTypes {
  PanelType attention, up, down;
};
// int4 keeps 8 bits in attention, and in `down` where its rows are short.
DecoderTypes decoder_types(Precision precision, size_t width);

class WeightReader;

struct DecoderWeights {
  DecoderConfig shape;
  std::vector<DecoderBlock> layers;
  std::vector<float> theta;  // rotary frequencies, [K / 2]

  // Reads all layers; queries and keys of a half-split rotary embedding and their norms are reordered, SwiGLU's panels
  // alternate.  Faults are gathered by the reader, and with one the weights are not to be used.
  static DecoderWeights load(WeightReader& reader, const DecoderConfig& shape, const DecoderNames& names,
                             Precision precision);
  // The same with the names of each layer, and other types.
  static DecoderWeights load(WeightReader& reader, const DecoderConfig& shape,
                             const std::function<DecoderNames(size_t layer)>& names, const DecoderTypes& types);

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
