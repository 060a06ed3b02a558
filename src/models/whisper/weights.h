// Weights of Whisper's encoder and decoder, read from a checkpoint and packed for the kernels (spec whisper.md,
// sections 2 and 3).  The matrices of the layers, of the cross keys and values and of the output are held in the
// precision asked for; the two convolutions in bf16 under the narrow precisions where the processor multiplies bf16
// faster, else in f32; norms, biases and positions in f32.  The rows of the embedding stay as they are stored.
//
// Immutable once read; any number of threads may share them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "kernels/layer_norm.h"
#include "kernels/matrix_store.h"
#include "kernels/pack.h"
#include "models/whisper/checkpoint.h"
#include "models/whisper/config.h"
#include "tensor/dtype.h"
#include "tensor/precision.h"

namespace syrinx::whisper {

struct NormWeights {
  std::vector<float> gamma, beta;  // [D]
  kernels::NormAffine affine() const { return {gamma.data(), beta.data()}; }
};

// D width, F feed-forward width.
struct LayerWeights {
  NormWeights norm, cross_norm, ffn_norm;  // [D]
  kernels::OwnedMatrix qkv;                // D -> 3 D: queries, keys, values
  kernels::OwnedMatrix out;                // D -> D
  kernels::OwnedMatrix cross_query;        // D -> D; decoders only, as the next two
  kernels::OwnedMatrix cross_key_value;    // D -> 2 D, on the encoder's output
  kernels::OwnedMatrix cross_out;          // D -> D
  kernels::OwnedMatrix ffn1, ffn2;         // D -> F -> D
};

// Rows of f32, f16 or bf16 that are widened on use: few of them are looked at, so they stay in the mapped file where
// there is one.
struct RowTable {
  size_t width = 0;
  DType dtype = DType::kF32;
  kernels::StoredBytes bytes;  // [rows, width]

  void copy_row(size_t row, float* to) const;
};

struct Weights {
  Config config;
  Precision precision = Precision::kF32;
  std::shared_ptr<const PackedFile> packed;  // what the matrices are views of, if they are

  kernels::OwnedMatrix conv1, conv2;     // three taps: mels -> D -> D
  std::vector<float> encoder_positions;  // [audio positions, D]
  std::vector<LayerWeights> encoder;
  NormWeights encoder_norm;
  RowTable embedding;                    // [V, D]
  std::vector<float> decoder_positions;  // [text positions, D]
  std::vector<LayerWeights> decoder;
  NormWeights decoder_norm;
  kernels::OwnedMatrix output;  // D -> V, the embedding
};

// The dimensions that the tensors' shapes and numbers tell, without what only JSON files know.  kDataLoss where a
// tensor that tells one is missing or has another rank.
Result<Config> config_of(const Checkpoint& checkpoint);

// `config` has passed check_config().  kDataLoss: tensors that are missing or have another shape, type or values that
// are not finite; one sentence names them.  Matrices come out of `store` where it has them; then their tensors are not
// looked at again.
Result<Weights> read_weights(const Checkpoint& checkpoint, const Config& config, Precision precision,
                             kernels::MatrixStore& store);

}  // namespace syrinx::whisper
