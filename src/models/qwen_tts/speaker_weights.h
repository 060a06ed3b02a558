// The weights of the speaker encoder, an ECAPA-TDNN, in f32 (spec qwen3-tts.md, sections 1.4 and 5.4).  Immutable once
// loaded: any number of threads share them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/pack.h"
#include "models/qwen_tts/config.h"
#include "models/qwen_tts/speaker_features.h"
#include "nn/weight_reader.h"

namespace syrinx::qwen_tts {

// A convolution over time that keeps the length: `reach` rows before and behind the sound are its mirror image.
struct SpeakerConv {
  kernels::OwnedMatrix matrix;
  size_t dilation = 1;
  size_t reach() const { return (matrix.view.taps - 1) / 2 * dilation; }
};

// SE-Res2Net.  C channels in `scale` chunks, S squeezed ones.
struct SpeakerBlock {
  SpeakerConv enter;                     // C -> C, tdnn1
  std::vector<SpeakerConv> chunks;       // C / scale -> C / scale, of the second chunk and those behind it
  SpeakerConv leave;                     // C -> C, tdnn2
  kernels::OwnedMatrix squeeze, excite;  // C -> S, S -> C
};

// A channels in the attention, M = (blocks) C channels aggregated.
struct SpeakerWeights {
  SpeakerEncoderConfig config;
  SpeakerFeatures features;
  SpeakerConv first;  // mels -> C
  std::vector<SpeakerBlock> blocks;
  SpeakerConv aggregate;           // M -> M, mfa
  kernels::OwnedMatrix attention;  // M -> A, asp.tdnn on the rows
  kernels::OwnedMatrix
      attention_of_statistics;  // 2 M -> A, the rest of it and its bias: mean and deviation of all rows
  kernels::OwnedMatrix scores;  // A -> M
  kernels::OwnedMatrix out;     // 2 M -> width

  std::shared_ptr<const PackedFile> packed;  // what the matrices are views of, if they are

  // Tensors "speaker_encoder.*" of a checkpoint; `file` stands in messages.  kUnsupported: a rate that is not the
  // maker's.  kDataLoss: tensors that are missing or have another shape or type, all of them named; values that are not
  // finite.  Matrices come out of `store`, borrowed, where it has them.
  static Result<SpeakerWeights> load(nn::TensorSource source, const std::string& file,
                                     const SpeakerEncoderConfig& config, kernels::MatrixStore* store = nullptr);
};

}  // namespace syrinx::qwen_tts
