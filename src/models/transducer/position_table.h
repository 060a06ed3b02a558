// Relative positions for attention, for each layer: p_r = W_pos pe(r) and (v - u) . p_r, where pe holds sines and
// cosines of the offset r (spec transducer-asr.md, section 3.2).  Independent of the audio, so made once a length.
//
// pe(-r) has the sines negated: W_pos pe(r) and W_pos pe(-r) are the sum and the difference of a product with the
// cosines and one with the sines, which halves the work.
//
// Immutable once made; may be shared.
#pragma once

#include <optional>

#include "kernels/relative_attention.h"
#include "kernels/relative_head.h"
#include "models/transducer/encoder_weights.h"
#include "nn/runner.h"
#include "tensor/buffer.h"

namespace syrinx::transducer {

class PositionTable {
 public:
  PositionTable() = default;
  // Offsets from `ahead` down to -`behind`, query minus key: transposed for relative_attention(), or packed for
  // relative_head() in that type.
  PositionTable(const EncoderWeights& weights, size_t ahead, size_t behind, nn::Runner& runner,
                std::optional<DType> packed = {});

  // Whether it holds these offsets.
  bool covers(size_t ahead, size_t behind) const { return offsets_ > 0 && ahead <= ahead_ && behind <= behind_; }
  size_t ahead() const { return ahead_; }
  size_t behind() const { return behind_; }
  View<const float, 2> positions(size_t layer) const;                            // [H K, offsets], by falling offset
  std::span<const std::byte> packed_positions(size_t layer, size_t head) const;  // of pack_positions()
  View<const float, 2> constants(size_t layer) const;  // [H, offsets]; room for a panel behind

 private:
  // The parts of one layer's table while it is being made, reused by the next.
  struct Work {
    nn::Plane sines, cosines, odd, even;  // [reach, d]; the last two projected
    nn::Plane rows;                       // [offsets, d]
  };
  static Work prepare(size_t width, size_t reach, size_t offsets, nn::Runner& runner);
  void fill_layer(const EncoderLayer& layer, size_t index, Work& work, nn::Runner& runner);
  void keep(size_t index, const nn::Plane& rows, Range heads);

  size_t ahead_ = 0, behind_ = 0, offsets_ = 0, stride_ = 0, width_ = 0, heads_ = 0;
  std::optional<DType> packed_;
  size_t head_bytes_ = 0;                // packed
  Buffer<float> positions_, constants_;  // [layers, H K, stride] unless packed, [layers, H, stride]
  Buffer<std::byte> panels_;             // [layers, H, head_bytes] if packed
};

}  // namespace syrinx::transducer
