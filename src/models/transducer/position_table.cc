#include "models/transducer/position_table.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "nn/linear.h"

namespace syrinx::transducer {
namespace {

constexpr double kMaxPeriod = 10000;

}  // namespace

PositionTable::PositionTable(const EncoderWeights& weights, size_t ahead, size_t behind, nn::Runner& runner)
    : ahead_(ahead),
      behind_(behind),
      offsets_(ahead + behind + 1),
      stride_(offsets_ + kernels::kRelativeAttentionSlack),
      width_(weights.config.width),
      heads_(weights.config.heads),
      positions_(weights.layers.size() * width_ * stride_ + kernels::kRelativeAttentionSlack),
      constants_(weights.layers.size() * heads_ * stride_ + kernels::kRelativeAttentionSlack) {
  const size_t reach = std::max(ahead_, behind_) + 1;
  nn::Plane sines, cosines;
  for (nn::Plane* plane : {&sines, &cosines}) plane->prepare(reach, width_, kernels::Storage::kF32);
  runner.split(width_ / 2, [&](size_t begin, size_t end) {
    for (size_t i = 2 * begin; i < 2 * end; i += 2) {
      const double omega = std::exp(-static_cast<double>(i) * std::log(kMaxPeriod) / static_cast<double>(width_));
      for (size_t r = 0; r < reach; ++r) {
        sines.f32(r)[i] = static_cast<float>(std::sin(static_cast<double>(r) * omega));
        cosines.f32(r)[i + 1] = static_cast<float>(std::cos(static_cast<double>(r) * omega));
      }
    }
  });
  for (size_t i = 0; i < weights.layers.size(); ++i) fill_layer(weights.layers[i], i, sines, cosines, runner);
}

void PositionTable::fill_layer(const EncoderLayer& layer, size_t index, const nn::Plane& sines,
                               const nn::Plane& cosines, nn::Runner& runner) {
  nn::Plane odd, even;
  for (nn::Plane* plane : {&odd, &even}) plane->prepare(sines.rows(), width_, kernels::Storage::kF32);
  nn::linear(runner, layer.position.view, sines.view(), {}, odd.view());
  nn::linear(runner, layer.position.view, cosines.view(), {}, even.view());
  float* const positions = positions_.data() + index * width_ * stride_;
  float* const constants = constants_.data() + index * heads_ * stride_;
  const size_t head_size = width_ / heads_;
  runner.split(heads_, [&](size_t begin, size_t end) {
    for (size_t m = 0; m < offsets_; ++m) {
      const ptrdiff_t offset = static_cast<ptrdiff_t>(ahead_) - static_cast<ptrdiff_t>(m);
      const size_t r = static_cast<size_t>(std::abs(offset));
      const float sign = offset < 0 ? -1.0f : 1.0f;
      for (size_t i = begin * head_size; i < end * head_size; ++i) {
        const float value = even.f32(r)[i] + sign * odd.f32(r)[i];
        positions[i * stride_ + m] = value;
        constants[i / head_size * stride_ + m] += layer.v_minus_u[i] * value;
      }
    }
  });
}

View<const float, 2> PositionTable::positions(size_t layer) const {
  return {positions_.data() + layer * width_ * stride_, {width_, offsets_}, {stride_, 1}};
}

View<const float, 2> PositionTable::constants(size_t layer) const {
  return {constants_.data() + layer * heads_ * stride_, {heads_, offsets_}, {stride_, 1}};
}

}  // namespace syrinx::transducer
