#include "models/kokoro/layers.h"

#include <cmath>
#include <cstring>
#include <numbers>

#include "kernels/depthwise.h"

namespace syrinx::kokoro {

using kernels::Activation;
using kernels::Storage;

namespace {
constexpr float kSlope = 0.2f;  // LeakyReLU of these blocks
}

void StyleNorm::set(std::span<const float> style) {
  const size_t padded = round_up(style.size(), kPanelColumns);
  style_.assign(padded, 0.0f);
  std::copy(style.begin(), style.end(), style_.begin());
  leading_.assign(padded, 0.0f);
  rest_.assign(padded, 0.0f);
  float most = 0.0f;
  for (float v : style_) most = std::max(most, std::fabs(v));
  const float step = most > 1e-30f ? most / 127.0f : 1.0f;
  for (size_t i = 0; i < padded; ++i) {
    leading_[i] = std::nearbyint(style_[i] / step) * step;
    rest_[i] = style_[i] - leading_[i];
  }
}

const float* StyleNorm::gamma_beta(const PackedMatrix& fc) {
  if (gamma_beta_.size() < fc.padded_columns()) gamma_beta_.resize(fc.padded_columns());
  const size_t bytes = kernels::gemv_scratch_bytes(fc);
  if (scratch_.size() < bytes) scratch_.resize(bytes);
  const Range all{0, fc.panel_count()};
  if (fc.type == PanelType::kF32) {
    kernels::gemv(fc, style_.data(), nullptr, gamma_beta_.data(), all, scratch_);
    return gamma_beta_.data();
  }
  PackedMatrix unbiased = fc;
  const size_t padded = fc.padded_columns();
  if (scale_.size() < padded) scale_.resize(padded);
  std::fill_n(scale_.data(), padded, 0.0f);
  unbiased.bias = scale_.data();
  kernels::gemv(unbiased, rest_.data(), nullptr, gamma_beta_.data(), all, scratch_);
  kernels::gemv(fc, leading_.data(), gamma_beta_.data(), gamma_beta_.data(), all, scratch_);
  return gamma_beta_.data();
}

void StyleNorm::coefficients(const PackedMatrix& fc, const kernels::TileStats& stats, size_t channels) {
  const float* const affine = gamma_beta(fc);
  if (scale_.size() < stats.columns) scale_.resize(stats.columns);
  if (shift_.size() < stats.columns) shift_.resize(stats.columns);
  nn::adain_coefficients(stats, channels, affine, scale_.data(), shift_.data());
}

const nn::Plane& ResBlockRunner::upsampled(const ResBlock& b, StyleNorm& style, const nn::Plane& x) {
  activated_.prepare(x.rows(), b.in, Storage::kF32);
  upsampled_.prepare(2 * x.rows(), b.in, Storage::kF32);
  const float *scale = style.scale(), *shift = style.shift();
  const size_t width = activated_.stride();
  runner_.split(x.rows(), [&](size_t begin, size_t end) {
    for (size_t t = begin; t < end; ++t) {
      const float* const in = x.f32(t);
      float* const out = activated_.f32(t);
      for (size_t c = 0; c < width; ++c) {
        const float v = in[c] * scale[c] + shift[c];
        out[c] = v < 0.0f ? v * kSlope : v;
      }
    }
  });
  const View<const float, 2> wide(activated_.f32(), {x.rows(), width}, {width, 1});
  const View<float, 2> out(upsampled_.f32(), {2 * x.rows(), width}, {width, 1});
  runner_.split(x.rows(), [&](size_t begin, size_t end) {
    kernels::depthwise_conv_transpose(wide, b.pool, b.pool_bias, begin, end, out);
  });
  return upsampled_;
}

const nn::Plane* ResBlockRunner::shortcut(const ResBlock& b, const nn::Plane& x) {
  const nn::Plane* rows = &x;
  if (b.shortcut.columns != 0) {
    shortcut_.prepare(x.rows(), b.out, Storage::kF32);
    runner_.conv(b.shortcut, {.rows = x.rows()}, {.data = x.row(0), .rows = x.rows(), .stride = x.stride()},
                 {.data = shortcut_.row(0), .stride = shortcut_.stride()});
    rows = &shortcut_;
  }
  if (!b.upsample) return rows;
  repeated_.prepare(2 * x.rows(), b.out, Storage::kF32);
  for (size_t t = 0; t < repeated_.rows(); ++t)
    std::memcpy(repeated_.f32(t), rows->f32(t / 2), repeated_.stride() * sizeof(float));
  return &repeated_;
}

void ResBlockRunner::release() {
  for (nn::Plane* plane : {&activated_, &upsampled_, &hidden_, &shortcut_, &repeated_}) plane->release();
}

void ResBlockRunner::run(const ResBlock& b, StyleNorm& style, const nn::Plane& x, nn::Plane& out) {
  runner_.stats(x, stats_);
  style.coefficients(b.norm1, stats_.tiles(), b.in);
  kernels::ConvInput in{.data = x.row(0),
                        .rows = x.rows(),
                        .stride = x.stride(),
                        .scale = style.scale(),
                        .shift = style.shift(),
                        .activation = Activation::kLeakyRelu,
                        .slope = kSlope,
                        .range = &stats_.tiles()};
  if (b.upsample) {
    const nn::Plane& up = upsampled(b, style, x);
    runner_.stats(up, stats_);
    in = {.data = up.row(0), .rows = up.rows(), .stride = up.stride(), .range = &stats_.tiles()};
  }
  const size_t rows = in.rows;
  hidden_.prepare(rows, b.out, Storage::kF32);
  kernels::TileStats* const hidden_stats = hidden_stats_.prepare(rows, b.out);
  const kernels::ConvGeometry geometry{.rows = rows, .pad = 1};
  runner_.conv(b.conv1, geometry, in, {.data = hidden_.row(0), .stride = hidden_.stride(), .stats = hidden_stats});
  style.coefficients(b.norm2, *hidden_stats, b.out);
  const nn::Plane* const direct = shortcut(b, x);
  runner_.conv(b.conv2, geometry,
               {.data = hidden_.row(0),
                .rows = rows,
                .stride = hidden_.stride(),
                .scale = style.scale(),
                .shift = style.shift(),
                .activation = Activation::kLeakyRelu,
                .slope = kSlope,
                .range = hidden_stats},
               {.data = out.row(0),
                .stride = out.stride(),
                .residual = direct->row(0),
                .residual_stride = direct->stride(),
                .factor = static_cast<float>(1.0 / std::numbers::sqrt2)});
}

}  // namespace syrinx::kokoro
