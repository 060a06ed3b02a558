// Weights of the language model and of its head, read from the tensors `flow_lm.*` of a checkpoint (spec pocket-tts.md,
// section 1.3; the maker's pocket_tts/models/flow_lm.py).  Matrices are packed once for streaming: the transformer's
// and the head's large ones in the precision asked for, everything else in f32.  Numbers of any of the published types
// (BF16, F16, F32) are widened to f32, which changes none.
//
// Immutable once read; any number of threads and streams may share them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/mapped_file.h"
#include "base/result.h"
#include "base/thread_team.h"
#include "kernels/matrix_store.h"
#include "kernels/pack.h"
#include "models/pocket_tts/config.h"
#include "nn/decoder_weights.h"
#include "nn/norm_weights.h"
#include "nn/row_table.h"
#include "tensor/dtype.h"
#include "tensor/precision.h"
#include "tensor/safetensors.h"

namespace syrinx::pocket {

// Frequencies of a time embedding; half of what its first matrix takes.
inline constexpr size_t kTimeFrequencies = 128;

using nn::NormWeights;
using nn::RowTable;

// Used at load time only, when the times of the evaluations are known (flow_head.h).
struct TimeEmbedding {
  std::vector<float> freqs;         // [kTimeFrequencies], as stored: they are rounded to the file's type
  RowTable weight0, weight2;        // [W, 2 kTimeFrequencies], [W, W]
  std::vector<float> bias0, bias2;  // [W]
  std::vector<float> alpha;         // [W]
};

struct FlowBlock {
  NormWeights norm;                       // [W]
  kernels::OwnedMatrix linear0, linear2;  // W -> W
};

// D width, W head width, Z what the heads read, X latent.
struct FlowHeadWeights {
  std::vector<TimeEmbedding> times;  // lsd two, flow_matching one, the others none
  kernels::OwnedMatrix condition;    // Z -> W
  kernels::OwnedMatrix input;        // X -> W
  std::vector<FlowBlock> blocks;
  kernels::OwnedMatrix
      modulation;               // W -> blocks * 3 W + 2 W: shift, scale, gate of each block; shift, scale of the end
  kernels::OwnedMatrix output;  // W -> X
};

// The transformer's, and what stands before and behind it.
struct FlowLmWeights : nn::DecoderWeights {
  FlowLmConfig config;
  std::shared_ptr<const PackedFile> packed;  // what the matrices are views of, if they are
  Precision precision = Precision::kF32;
  size_t latent = 0;       // X
  size_t voice_width = 0;  // V, numbers of a voice's frame before its projection

  std::vector<float> bos;                      // [X], the latent before the first
  std::vector<float> latent_std, latent_mean;  // [X], for the codec
  std::vector<float> bos_before_voice;         // [D], empty where there is none
  kernels::OwnedMatrix voice_proj;             // V -> D
  RowTable text_table;                         // [text_bins, D], or [text_bins, rank]
  kernels::OwnedMatrix text_proj;              // rank -> D, only with a rank
  kernels::OwnedMatrix input;                  // X -> D
  NormWeights out_norm;                        // [D]
  kernels::OwnedMatrix z_proj;                 // D -> Z, only with project_condition
  kernels::OwnedMatrix eos;                    // Z -> 1
  FlowHeadWeights head;

  // Lets what was looked at in the packed file leave memory until it is looked at again: after a prompt.
  void release_file() const;
  size_t text_width() const { return config.text_rank > 0 ? config.text_rank : config.transformer.width; }
};

// `latent` and `voice_width` are the codec's (MimiConfig::latent, inner_width); `name` stands in messages.
// kInvalidArgument: a configuration that no model can have.  kDataLoss: tensors that are missing, have another shape or
// type than the configuration says, or that it does not know; one sentence names them.  Matrices come out of `store`
// where it has them; then their tensors are not looked at again.  `pages` is the mapped file of the tensors, if there
// is one: what has been read leaves memory, so that a load needs little more than what it makes.  `team` packs;
// null: the calling thread alone.
Result<FlowLmWeights> read_flow_lm(const Safetensors& file, const FlowLmConfig& config, size_t latent,
                                   size_t voice_width, const std::string& name, Precision precision = Precision::kF32,
                                   kernels::MatrixStore* store = nullptr, const MappedFile* pages = nullptr,
                                   ThreadTeam* team = nullptr);

}  // namespace syrinx::pocket
