// The weights of the codec's encoder, in f32 (spec qwen3-tts.md, sections 1.4 and 5.3).  Immutable once loaded: any
// number of threads and recordings share them.
#pragma once

#include <optional>
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
  std::vector<mimi::SeanetLayer> seanet;
  nn::DecoderWeights transformer;
  kernels::OwnedMatrix downsample;   // width -> width, 2 * downsample taps
  kernels::OwnedMatrix projections;  // width -> 2 * row_width: for the semantic codebook, for the acoustic ones
  std::optional<nn::Rvq> semantic, acoustic;

  // Tensors "encoder.*", of which the codebooks beyond used_codebooks stay unread.  Their faults are gathered by the
  // reader, whose team packs; with one the weights are not to be used.
  static CodecEncoderWeights load(nn::WeightReader& reader, const CodecEncoderConfig& config);
};

}  // namespace syrinx::qwen_tts
