// The kinds and dimensions of a causal pre-norm decoder (decoder.h).  Kinds are looked at once a stage.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"

namespace syrinx::nn {

enum class Norm : uint8_t { kLayer, kRms };
// kInterleaved turns the pairs (2i, 2i + 1) of a head; a checkpoint that turns (i, i + K / 2) is reordered when it is
// loaded (decoder_weights.h).
enum class Rotary : uint8_t { kNone, kInterleaved };
// kGelu: with erf.  kSwiGlu: silu(gate) * value.
enum class Mlp : uint8_t { kGelu, kGeluTanh, kSwiGlu };

// How matrices are multiplied.  kLinear: as in linear.h.  The others: by kernels/row_conv.h on rows of f32 or of bf16,
// for passes of many rows, such as a codec's frame, with matrices of f32 or bf16; not with cross-attention or segments.
// With `rows_alone` a row has the same bits however many go through with it.
enum class Products : uint8_t { kLinear, kF32Rows, kBf16Rows };

struct DecoderConfig {
  size_t width = 0;  // D
  size_t layers = 0;
  size_t heads = 0;      // H query heads
  size_t key_heads = 0;  // G key and value heads; divides H
  size_t head_size = 0;  // K
  size_t hidden = 0;     // F
  size_t window = 0;     // positions that a query sees, its own included; 0: all before it
  Norm norm = Norm::kLayer;
  float epsilon = 1e-5f;
  Rotary rotary = Rotary::kInterleaved;
  float period = 10000.0f;  // of the slowest pair
  Mlp mlp = Mlp::kGeluTanh;
  Products products = Products::kLinear;
  bool head_norm = false;     // RMS norm of each query and key head, before the rotary embedding
  bool layer_scale = false;   // both branches are multiplied by a vector before they are added
  bool stream_gain = false;   // what the MLP reads is multiplied by a vector of the stream
  bool cross = false;         // attention to a CrossCache between the two branches
  size_t cross_width = 0;     // E, of what its keys and values are made from; 0: D
  DType cache = DType::kF32;  // of keys and values, or kBF16, kI8
  // Where a step attends to more positions, it does so in parts of so many, which members share and a stage of its own
  // merges: for a few streams with few key heads and long caches.  0: never.
  size_t segment = 0;
  // Each row of a pass attends by itself, as one that comes alone does: for short windows.
  bool rows_alone = false;

  size_t query_width() const { return heads * head_size; }
  size_t key_width() const { return key_heads * head_size; }
};

}  // namespace syrinx::nn
