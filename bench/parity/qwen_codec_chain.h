// The decoder of Qwen3-TTS's codec over a whole utterance, a part at a time and each part in a form of its own: f32,
// the forms of the product, and forms that it lacks, whose rows and weights are rounded as they would be and multiplied
// in f32.  In f32 and int16 it gives the product's samples to the bit.  For measuring; allocates.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/qwen_tts/codec_weights.h"
#include "nn/runner.h"

namespace syrinx::qwen_tts {

// kInt8: weights of 8 bits with a scale a column, rows of 8 bits with a scale a row; with kInt8Groups a scale a row and
// 64 channels.  The others have rows of 14 bits and weights of 8 bits, with a scale a column or with one a column and
// 32 depths.  The transformer is bf16 beside int16, and in kInt8 and kInt8Groups as the talker is: 8 bits, a scale a
// column and a row.
enum class CodecForm : uint8_t { kF32, kBf16, kInt16, kInt8, kInt8Groups, kInt8Weights, kInt8WeightBlocks };
inline constexpr std::string_view kCodecForms[] = {
    "f32", "bf16", "int16", "int8", "int8_groups", "int8_weights", "int8_weight_blocks"};

// Layers of the chain that are measured together, and what stands before them.
struct CodecPart {
  std::string name;
  Range layers{};
};

class CodecChain {
 public:
  // Weights in f32, which must outlive it.
  CodecChain(const CodecDecoderWeights& weights, ThreadTeam& team);

  // From the codes' rows on: "pre_conv", "transformer" with its projections, "upsampling", "first", the decoder's
  // blocks from "block1" on, and "output", which the product keeps in f32.
  const std::vector<CodecPart>& parts() const { return parts_; }

  // Weights of a part.
  struct Weights {
    CodecForm form = CodecForm::kF32;
    std::vector<nn::CausalConv> layers;  // of the part
    nn::DecoderWeights transformer{};    // of the part that has it
  };
  Weights weights(size_t part, CodecForm form);

  // Rows that the first part reads.  codes [frames, codebooks]
  std::vector<float> quantise(std::span<const int32_t> codes) const;
  // The last layer's rows as they are, and as the next part reads them.  Samples are not bounded.
  struct Rows {
    std::vector<float> made, ready;
  };
  Rows run(size_t part, const Weights& weights, std::vector<float> ready);

 private:
  void transform(const nn::DecoderWeights& transformer, size_t layer, Rows& rows);
  void upsample(size_t layer, Rows& rows) const;
  void convolve(size_t layer, const nn::CausalConv& conv, CodecForm form, const std::vector<float>& kept, Rows& rows);

  const CodecDecoderWeights& w_;
  nn::Runner runner_;
  std::vector<CodecPart> parts_;
};

}  // namespace syrinx::qwen_tts
