// The weights of the codec, packed for the kernels (spec pocket-tts.md, sections 1.3 and 4).  Immutable once loaded:
// any number of threads and streams share them.
//
// Weights also say how what they meet is stored.  In the narrow precisions a matrix of bf16 weights reads rows of bf16
// where the processor multiplies those faster (kernels/row_conv.h); in f32, for other weights and on other processors
// rows are f32.  The quantizer, the upsampling, the first convolution from samples, the last one to samples, the
// downsampling, the attention, the norms and everything that is added up stay in f32 in any case.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/matrix_store.h"
#include "kernels/pack.h"
#include "models/mimi/config.h"
#include "models/mimi/seanet_weights.h"
#include "nn/decoder_weights.h"
#include "tensor/precision.h"
#include "tensor/safetensors.h"

namespace syrinx::mimi {

struct DecoderWeights {
  Config config;
  std::shared_ptr<const PackedFile> packed;  // what the matrices are views of, if they are
  kernels::OwnedMatrix quantizer;            // latent -> width
  std::vector<float> upsample;               // [2 * resample_stride, width padded to 32], tap-major
  nn::DecoderWeights transformer;
  std::vector<SeanetLayer> seanet;  // the last one makes samples
  Buffer<std::byte> panels;         // of the transformer and the SEANet, in the order in which a frame reads them

  // Tensors "mimi.quantizer", "mimi.upsample", "mimi.decoder_transformer", "mimi.decoder"; `file` stands in messages.
  // kUnsupported: a configuration or an element type we cannot run.  kDataLoss: missing tensors, all of them named;
  // another shape than the configuration's; values that are not finite.
  // Matrices come out of `store` where it has them; then they are not looked at again.
  static Result<DecoderWeights> load(const Safetensors& tensors, const std::string& file, const Config& config,
                                     Precision precision = Precision::kF32, kernels::MatrixStore* store = nullptr);
};

struct EncoderWeights {
  Config config;
  std::vector<SeanetLayer> seanet;
  nn::DecoderWeights transformer;
  kernels::OwnedMatrix downsample;  // width -> inner_width, 2 * resample_stride taps
  Buffer<std::byte> panels;         // as above

  // Tensors "mimi.encoder", "mimi.encoder_transformer", "mimi.downsample"; errors as above.
  static Result<EncoderWeights> load(const Safetensors& tensors, const std::string& file, const Config& config,
                                     Precision precision = Precision::kF32);
};

// Whether a matrix of theirs is multiplied in bf16.  All are of a checkpoint whose tensors are bf16 throughout; where
// types are mixed, as in flow_matching, those of the transformer may not be.
bool reads_bf16(const DecoderWeights& weights);
bool reads_bf16(const EncoderWeights& weights);

}  // namespace syrinx::mimi
