// Weights of a Conformer encoder, bound from a checkpoint (spec transducer-asr.md, sections 1.4, 3.1 to 3.5; the
// maker's modules/conformer_encoder.py).  What can be folded is: batch norm into the depthwise convolution before it,
// the half of the feed-forward modules into their second matrix, the content bias u of attention into the queries'
// bias.
//
// Immutable once read; any number of threads and streams may share them.
#pragma once

#include <memory>
#include <vector>

#include "models/transducer/config.h"
#include "models/transducer/weight_reader.h"

namespace syrinx::transducer {

// d width, F feed-forward width, H heads, K head size, k taps.
struct EncoderLayer {
  NormWeights norm_feed_forward1, norm_attention, norm_convolution, norm_feed_forward2, norm_out;  // [d]
  kernels::OwnedMatrix linear1, linear2;         // d -> F -> d, the second halved
  kernels::OwnedMatrix qkv;                      // d -> 3 d; the bias of the queries holds u
  kernels::OwnedMatrix position;                 // d -> d, f32
  std::vector<float> v_minus_u;                  // [H K]
  kernels::OwnedMatrix out;                      // d -> d
  kernels::OwnedMatrix pointwise1;               // d -> 2 d
  std::vector<float> depthwise, depthwise_bias;  // [k, d], [d]; batch norm folded in
  NormWeights convolution_norm;                  // [d]; only with EncoderConfig::layer_norm
  kernels::OwnedMatrix pointwise2;               // d -> d
  kernels::OwnedMatrix linear3, linear4;         // the second feed-forward module
};

// One halving of time and mels; P is C padded.
struct SubsamplingStage {
  std::vector<float> weight, bias;  // [3, 3, P], [P]: the first convolution, or a depthwise one
  kernels::OwnedMatrix pointwise;  // C -> C; or 9 P -> C, where the convolution is a full one; the first stage has none
};

// A language added to the frames: second(relu(first(x) + its row)).  h hidden width.
struct PromptWeights {
  kernels::OwnedMatrix first;    // d -> h
  std::vector<float> languages;  // [count, h]: the columns of the one-hot rows, and the bias
  kernels::OwnedMatrix second;   // h -> d
};

struct EncoderWeights {
  EncoderConfig config;
  std::vector<SubsamplingStage> stages;
  kernels::OwnedMatrix subsampled;  // F P -> d, channels inside; times sqrt(d) with xscaling
  std::vector<EncoderLayer> layers;
  PromptWeights prompt;                      // with EncoderConfig::prompt
  std::shared_ptr<const PackedFile> packed;  // what the matrices are views of, if they are
};

// WeightReader::finish() reports errors.
EncoderWeights read_encoder(WeightReader& reader, const EncoderConfig& config);

}  // namespace syrinx::transducer
