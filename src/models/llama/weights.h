// The weights of a language model (config.h), packed for streaming.  Immutable once made; any number of threads and
// conversations may share them.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/thread_team.h"
#include "models/llama/config.h"
#include "nn/decoder_weights.h"
#include "nn/row_table.h"
#include "nn/weight_reader.h"

namespace syrinx::llama {

struct Weights : nn::DecoderWeights {
  Config config;
  Precision precision = Precision::kF32;
  nn::RowTable embedding;                    // [V, D], as the file stores it
  nn::NormWeights norm;                      // [D], before the head
  kernels::OwnedMatrix head;                 // D -> V
  std::shared_ptr<const PackedFile> packed;  // where they lie, if they are kept
};

struct ReadOptions {
  Precision precision = Precision::kF32;
  kernels::MatrixStore* store = nullptr;  // keeps what is packed, borrowed; null: nothing is kept
  std::function<void()> release = {};     // lets the pages of the file that have been read leave memory
  ThreadTeam* team = nullptr;             // packs, borrowed; null: the calling thread alone
};

// `name` stands in messages.  kDataLoss names every tensor that is missing or has another shape; kUnsupported those
// that no model of the architecture has.
Result<Weights> read_weights(const GgufFile& file, const Config& config, const ReadOptions& options,
                             const std::string& name);
// From safetensors in transformers' layout.
Result<Weights> read_weights(std::span<const TensorRef> tensors, const Config& config, const ReadOptions& options,
                             const std::string& name);

}  // namespace syrinx::llama
