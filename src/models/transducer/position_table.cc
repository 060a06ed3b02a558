#include "models/transducer/position_table.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "nn/linear.h"

namespace syrinx::transducer {
namespace {

constexpr double kMaxPeriod = 10000;

}  // namespace

PositionTable::PositionTable(const EncoderWeights& weights, size_t ahead, size_t behind, nn::Runner& runner,
                             std::optional<DType> packed)
    : ahead_(ahead),
      behind_(behind),
      offsets_(ahead + behind + 1),
      stride_(offsets_ + kernels::kRelativeAttentionSlack),
      width_(weights.config.width),
      heads_(weights.config.heads),
      packed_(packed),
      constants_(weights.layers.size() * heads_ * stride_ + kernels::kRelativeAttentionSlack) {
  const size_t layers = weights.layers.size();
  if (packed_) {
    head_bytes_ = kernels::packed_positions_bytes(*packed_, offsets_, width_ / heads_);
    panels_ = Buffer<std::byte>(layers * heads_ * head_bytes_);
  } else {
    positions_ = Buffer<float>(layers * width_ * stride_ + kernels::kRelativeAttentionSlack);
  }
  Work work = prepare(width_, std::max(ahead_, behind_) + 1, offsets_, runner);
  for (size_t i = 0; i < layers; ++i) fill_layer(weights.layers[i], i, work, runner);
}

PositionTable::Work PositionTable::prepare(size_t width, size_t reach, size_t offsets, nn::Runner& runner) {
  Work work;
  for (nn::Plane* plane : {&work.sines, &work.cosines, &work.odd, &work.even})
    plane->prepare(reach, width, kernels::Storage::kF32);
  work.rows.prepare(offsets, width, kernels::Storage::kF32);
  runner.split(width / 2, [&](size_t begin, size_t end) {
    for (size_t i = 2 * begin; i < 2 * end; i += 2) {
      const double omega = std::exp(-static_cast<double>(i) * std::log(kMaxPeriod) / static_cast<double>(width));
      for (size_t r = 0; r < reach; ++r) {
        work.sines.f32(r)[i] = static_cast<float>(std::sin(static_cast<double>(r) * omega));
        work.cosines.f32(r)[i + 1] = static_cast<float>(std::cos(static_cast<double>(r) * omega));
      }
    }
  });
  return work;
}

void PositionTable::fill_layer(const EncoderLayer& layer, size_t index, Work& work, nn::Runner& runner) {
  nn::linear(runner, layer.position.view, std::as_const(work.sines).view(), {}, work.odd.view());
  nn::linear(runner, layer.position.view, std::as_const(work.cosines).view(), {}, work.even.view());
  float* const constants = constants_.data() + index * heads_ * stride_;
  const size_t head_size = width_ / heads_;
  runner.split(offsets_, [&](size_t begin, size_t end) {
    for (size_t m = begin; m < end; ++m) {
      const ptrdiff_t offset = static_cast<ptrdiff_t>(ahead_) - static_cast<ptrdiff_t>(m);
      const size_t r = static_cast<size_t>(std::abs(offset));
      const float sign = offset < 0 ? -1.0f : 1.0f;
      const float *const even = work.even.f32(r), *const odd = work.odd.f32(r);
      float* const row = work.rows.f32(m);
      for (size_t i = 0; i < width_; ++i) {
        row[i] = even[i] + sign * odd[i];
        constants[i / head_size * stride_ + m] += layer.v_minus_u[i] * row[i];
      }
    }
  });
  runner.split(heads_, [&](size_t begin, size_t end) { keep(index, work.rows, {begin, end}); });
}

// The rows of some heads, in the table's form.
void PositionTable::keep(size_t index, const nn::Plane& rows, Range heads) {
  const size_t head_size = width_ / heads_, first = heads.begin * head_size;
  if (!packed_) {
    const size_t count = (heads.end - heads.begin) * head_size;
    float* const to = positions_.data() + (index * width_ + first) * stride_;
    return kernels::transpose_rows({rows.f32() + first, {offsets_, count}, {rows.stride(), 1}}, 0, false,
                                   {to, {count, offsets_}, {stride_, 1}});
  }
  for (size_t head = heads.begin; head < heads.end; ++head) {
    kernels::pack_positions(*packed_, {rows.f32() + head * head_size, {offsets_, head_size}, {rows.stride(), 1}},
                            {panels_.data() + (index * heads_ + head) * head_bytes_, head_bytes_});
  }
}

std::span<const std::byte> PositionTable::packed_positions(size_t layer, size_t head) const {
  return {panels_.data() + (layer * heads_ + head) * head_bytes_, head_bytes_};
}

View<const float, 2> PositionTable::positions(size_t layer) const {
  return {positions_.data() + layer * width_ * stride_, {width_, offsets_}, {stride_, 1}};
}

View<const float, 2> PositionTable::constants(size_t layer) const {
  return {constants_.data() + layer * heads_ * stride_, {heads_, offsets_}, {stride_, 1}};
}

}  // namespace syrinx::transducer
