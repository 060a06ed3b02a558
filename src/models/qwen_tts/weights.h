// The weights of the talker and of the code predictor (spec qwen3-tts.md, sections 1.4 and 3), packed for streaming.
// Immutable once made; any number of threads and streams may share them.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/thread_team.h"
#include "models/qwen_tts/checkpoint.h"
#include "models/qwen_tts/config.h"
#include "nn/decoder_weights.h"
#include "nn/row_table.h"
#include "nn/weight_reader.h"

namespace syrinx::qwen_tts {

// D the talker's width, P the predictor's, X the text side's, V the talker's vocabulary, C codes of a further codebook.
// kInt8 narrows all matrices but the text projection and the talker's head, kInt4 the talker's layers further: the
// predictor, which draws 15 codes one from another, loses too much by 4 bits (section 8.5).
struct Weights {
  Config config;
  Precision precision = Precision::kF32;
  nn::RowTable text_embedding;              // [text vocabulary, X], as the file stores it
  kernels::OwnedMatrix text_fc1, text_fc2;  // X -> X, X -> D
  nn::RowTable codec_embedding;             // [V, D], as the file stores it
  nn::DecoderWeights talker;
  nn::NormWeights talker_norm;      // [D], before the head and the predictor
  kernels::OwnedMatrix codec_head;  // D -> V
  // Codebook g + 1 of a frame, g from 0 on.
  std::vector<nn::RowTable> code_embeddings;                 // each [C, D], as the file stores it
  std::optional<kernels::OwnedMatrix> predictor_projection;  // D -> P, unless they are equal
  nn::DecoderWeights predictor;
  nn::NormWeights predictor_norm;                // [P]
  std::vector<kernels::OwnedMatrix> code_heads;  // each P -> C
  std::shared_ptr<const PackedFile> packed;      // where they lie, if they are kept
};

struct ReadOptions {
  Precision precision = Precision::kF32;
  kernels::MatrixStore* store = nullptr;  // keeps what is packed, borrowed; null: nothing is kept
  std::function<void()> release = {};     // lets the pages of the file that have been read leave memory
  ThreadTeam* team = nullptr;             // packs, borrowed; null: the calling thread alone
};
// `name` stands in messages.  kDataLoss names every tensor that is missing or has another shape; kUnsupported those
// that no model of this kind has.  Tensors of the speaker encoder are passed over.
Result<Weights> read_weights(std::span<const TensorRef> tensors, const Config& config, const ReadOptions& options,
                             const std::string& name);

struct LoadOptions {
  Precision precision = Precision::kF32;
  std::string cache_folder = {};  // where packed weights are kept for the next start; empty: nowhere
  ThreadTeam* team = nullptr;     // packs the weights, borrowed; null: the calling thread alone
};
// Errors of read_weights().
Result<std::shared_ptr<const Weights>> load_weights(const Checkpoint& checkpoint, const LoadOptions& options = {});

}  // namespace syrinx::qwen_tts
