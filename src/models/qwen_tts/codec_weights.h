// The weights of the codec's decoder, packed for the kernels (spec qwen3-tts.md, sections 1.4 and 5.1).  Immutable once
// loaded: any number of threads and streams share them.
//
// The decoder is a chain of convolutions, of which linear layers are those of one tap; what else it has stands before a
// layer of the chain.  In f32 all is f32.  In the narrow precisions the chain is int16 with a scale a row where the
// processor multiplies that as fast as f32 (kernels/row_conv.h); else its matrices are bf16, as those of the
// transformer are, and rows that they read are bf16 too where the processor multiplies those faster; the codebooks and
// their projections, the depthwise convolutions, the last one to samples, attention, norms and everything that is added
// up stay in f32.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "kernels/matrix_store.h"
#include "kernels/row_conv.h"
#include "models/qwen_tts/codec_config.h"
#include "nn/causal_conv.h"
#include "nn/decoder_weights.h"
#include "nn/norm_weights.h"
#include "nn/rvq.h"
#include "nn/weight_reader.h"
#include "tensor/precision.h"

namespace syrinx::qwen_tts {

// Names of rows in the maker's code, for tests; a number stands behind one where there are many.
enum class CodecStage : uint8_t { kNone, kQuantizer, kPreConv, kPreTransformer, kUpsample, kDecoder };

struct CodecLayer {
  enum class Before : uint8_t {
    kNothing,
    kTransformer,  // its rows are made by the layer before, its result and the final norm are read by this one
    kConvNext,     // the same of a depthwise convolution and a norm; the rows that it reads are kept
  };

  nn::CausalConv conv{};
  Before before = Before::kNothing;
  size_t rate = 0;                                                    // input rows a frame
  bool begins_block = false;                                          // of the decoder: upsamples, by 1 or more
  kernels::RowActivation activation = kernels::RowActivation::kNone;  // of its rows, for the next layer
  std::vector<float> alpha{}, inverse_beta{};                         // of kSnakeBeta, [up * width]
  std::vector<float> scale{};                                         // of its rows, [up * width]; none: 1
  bool keeps = false;                                                 // its rows, as they are, are added to later ones
  bool adds = false;                                                  // the rows that were kept are added to its own
  CodecStage stage = CodecStage::kNone;
  size_t stage_index = 0;
};

// Depthwise, causal, and layer norm: the first half of a ConvNeXt block.  C channels.
struct ConvNextWeights {
  static constexpr size_t kTaps = 7;
  static constexpr float kEpsilon = 1e-6f;
  std::vector<float> depthwise, bias;  // [taps, C], [C]
  nn::NormWeights norm;
};

struct CodecDecoderWeights {
  CodecDecoderConfig config;
  nn::Rvq first, rest;  // the semantic codebook, the acoustic ones
  nn::DecoderWeights transformer;
  nn::NormWeights norm;                      // behind it, RMS
  std::vector<ConvNextWeights> upsampling;   // of each layer that has one before it
  std::vector<CodecLayer> chain;             // from codes' rows [2 row_width] to samples
  std::shared_ptr<const PackedFile> packed;  // what the matrices are views of, if they are
  Buffer<std::byte> panels;                  // in the order in which a frame reads them

  // Tensors "decoder.*" of speech_tokenizer/model.safetensors; `file` stands in messages.  kUnsupported: a
  // configuration that check() refuses.  kDataLoss: tensors that are missing or have another shape or type, all of them
  // named; values that are not finite; codebooks or slopes of activations that are too large.  Matrices come out of
  // `store` where it has them; then they are not looked at again.  f32 and bf16 must not share one store.
  static Result<CodecDecoderWeights> load(nn::TensorSource source, const std::string& file, const CodecConfig& config,
                                          Precision precision = Precision::kF32, kernels::MatrixStore* store = nullptr);
};

// Whether the convolutions multiply rows of bf16, of int16; else of f32.
bool reads_bf16(const CodecDecoderWeights& weights);
bool reads_int16(const CodecDecoderWeights& weights);

}  // namespace syrinx::qwen_tts
