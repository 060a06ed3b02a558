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
#include "base/thread_team.h"
#include "kernels/matrix_store.h"
#include "kernels/pack.h"
#include "models/whisper/checkpoint.h"
#include "models/whisper/config.h"
#include "nn/decoder_weights.h"
#include "nn/norm_weights.h"
#include "nn/row_table.h"
#include "tensor/dtype.h"
#include "tensor/precision.h"

namespace syrinx::whisper {

using nn::NormWeights;
using nn::RowTable;

// A layer of the encoder.  D width, F feed-forward width.
struct LayerWeights {
  NormWeights norm, ffn_norm;       // [D]
  kernels::OwnedMatrix qkv;         // D -> 3 D: queries, keys, values
  kernels::OwnedMatrix out;         // D -> D
  kernels::OwnedMatrix ffn1, ffn2;  // D -> F -> D
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
  nn::DecoderWeights decoder;
  NormWeights decoder_norm;
  kernels::OwnedMatrix output;  // D -> V, the embedding
};

// The dimensions that the tensors' shapes and numbers tell, without what only JSON files know.  kDataLoss where a
// tensor that tells one is missing or has another rank.
Result<Config> config_of(const Checkpoint& checkpoint);

// `config` has passed check_config().  kDataLoss: tensors that are missing or have another shape, type or values that
// are not finite; one sentence names them.  Matrices come out of `store` where it has them; then their tensors are not
// looked at again.  `team` packs them and may be null: the calling thread alone.
Result<Weights> read_weights(const Checkpoint& checkpoint, const Config& config, Precision precision,
                             kernels::MatrixStore& store, ThreadTeam* team);

}  // namespace syrinx::whisper
