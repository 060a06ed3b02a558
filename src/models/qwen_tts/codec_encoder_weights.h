// The weights of the codec's encoder, in f32 (spec qwen3-tts.md, sections 1.4 and 5.3).  Immutable once loaded: any
// number of threads and recordings share them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/pack.h"
#include "models/mimi/seanet_weights.h"
#include "models/qwen_tts/codec_config.h"
#include "nn/decoder_weights.h"
#include "nn/rvq.h"
#include "nn/weight_reader.h"

namespace syrinx::qwen_tts {

struct CodecEncoderWeights {
  CodecEncoderConfig config;
  size_t sample_rate = 0;  // of what is encoded
  std::vector<mimi::SeanetLayer> seanet;
  nn::DecoderWeights transformer;
  kernels::OwnedMatrix downsample;   // width -> width, 2 * downsample taps
  kernels::OwnedMatrix projections;  // width -> 2 * row_width: for the semantic codebook, for the acoustic ones
  nn::Rvq semantic, acoustic;
  std::shared_ptr<const PackedFile> packed;  // what the matrices are views of, if they are

  // Tensors "encoder.*" of speech_tokenizer/model.safetensors, of which the codebooks beyond used_codebooks stay
  // unread; `file` stands in messages.  kUnsupported: a configuration that check() refuses.  kLimitExceeded: layers
  // that are too large.  kDataLoss: tensors that are missing or have another shape or type, all of them named; values
  // that are not finite, codebooks whose rows are not.  The source's team packs; matrices come out of `store`,
  // borrowed, where it has them.
  static Result<CodecEncoderWeights> load(nn::TensorSource source, const std::string& file, const CodecConfig& config,
                                          kernels::MatrixStore* store = nullptr);
};

}  // namespace syrinx::qwen_tts
