#include "models/kokoro/generator.h"

#include "kernels/stft20.h"

namespace syrinx::kokoro {

using kernels::Activation;
using kernels::Storage;

namespace {
// Rows before and behind a signal: a transposed convolution of stride 10 begins 5 rows early and ends 5 late.
constexpr size_t kGuard = 10;
constexpr float kUpSlope = 0.1f, kPostSlope = 0.01f;
}  // namespace

void Generator::source(const nn::Plane& f0, const SourceNoise& noise) {
  signal_.resize(f0.rows() * 300);
  source_.run(f0.f32(), f0.stride(), f0.rows(), w_.source, noise, signal_, runner_.cut());
  const size_t rows = kernels::stft20_rows(signal_.size());
  spectrum_.prepare(rows, kSpectrum, Storage::kF32);
  runner_.split(rows, [&](size_t begin, size_t end) {
    const View<float, 2> out(spectrum_.f32(begin), {end - begin, kSpectrum}, {spectrum_.stride(), 1});
    kernels::stft20(signal_, begin, end, out);
    for (size_t t = begin; t < end; ++t)
      std::fill(spectrum_.f32(t) + kSpectrum, spectrum_.f32(t) + spectrum_.stride(), 0.0f);
  });
}

void Generator::release() {
  for (nn::Plane* plane : {&spectrum_, &x_, &work_, &hidden_, &sum_}) plane->release();
}

Generator::Rows Generator::body(nn::Plane& plane, size_t rows, size_t channels) const {
  plane.prepare(rows + 2 * kGuard, channels, storage());
  return {plane.row(kGuard), rows, plane.stride()};
}

// hidden = x + transposed convolution of LeakyReLU(features).  Stage 1 puts a reflected row in front of the result.
void Generator::upsample(size_t index, const nn::Plane& features, size_t rows) {
  const PackedMatrix& up = w_.up[index];
  const size_t stride = kUpsample[index], spill = stride / 2;
  const Rows out = body(hidden_, rows, channels_of(index));
  runner_.stats(features, feature_stats_);
  kernels::ConvInput in{.data = features.row(0),
                        .storage = features.storage(),
                        .rows = features.rows(),
                        .stride = features.stride(),
                        .activation = Activation::kLeakyRelu,
                        .slope = kUpSlope,
                        .range = &feature_stats_.tiles()};
  if (index == 1) {  // `features` is the sum of three blocks, their mean is meant
    in.scale = third_.data();
    in.shift = zero_.data();
  }
  // Column phase p of virtual row m is output row stride * m + p - spill; the two taps see inputs m - 1 and m.
  const size_t first = kGuard - spill + index;
  runner_.conv(up, {.rows = features.rows() + 1, .pad = 1}, in,
               {.data = hidden_.row(first),
                .storage = storage(),
                .stride = stride * out.stride,
                .residual = x_.row(first),
                .residual_stride = stride * out.stride});
  if (index == 1) reflect_first_row(out.stride);
}

// out[0] = up[1] + x[0], where out[2] = up[1] + x[2] is there already.
void Generator::reflect_first_row(size_t width) {
  row_.resize(3 * width);
  float *out = row_.data(), *x0 = out + width, *x2 = x0 + width;
  kernels::read_row(hidden_.row(kGuard + 2), storage(), width, out);
  kernels::read_row(x_.row(kGuard), storage(), width, x0);
  kernels::read_row(x_.row(kGuard + 2), storage(), width, x2);
  for (size_t c = 0; c < width; ++c) out[c] += x0[c] - x2[c];
  kernels::write_row(out, storage(), width, hidden_.row(kGuard));
}

// x_ and its statistics: what the three blocks read.
void Generator::begin_stage(size_t index, const nn::Plane& features, StyleNorm& style) {
  const size_t channels = channels_of(index);
  const size_t rows = kUpsample[index] * features.rows() + index;
  Rows x = body(x_, rows, channels);
  runner_.conv(w_.noise_conv[index],
               {.rows = rows, .stride = kNoiseStride[index], .pad = static_cast<ptrdiff_t>(kNoisePad[index])},
               {.data = spectrum_.row(0), .rows = spectrum_.rows(), .stride = spectrum_.stride()},
               {.data = x.data, .storage = storage(), .stride = x.stride, .stats = x_stats_.prepare(rows, channels)});
  snake_block(w_.noise_res[index], style, x, x_stats_, x, x, false);
  upsample(index, features, rows);
  std::swap(x_, hidden_);
  x = {x_.row(kGuard), rows, x_.stride()};
  kernels::TileStats* const stats = x_stats_.prepare(rows, channels);
  runner_.split(stats->tiles(), [&](size_t begin, size_t end) {
    kernels::column_stats(x.data, storage(), x.stride, rows, stats->columns, *stats, {begin, end});
  });
}

void Generator::add_block(size_t stage, size_t block, StyleNorm& style) {
  const size_t rows = x_.rows() - 2 * kGuard, channels = channels_of(stage);
  const Rows x{x_.row(kGuard), rows, x_.stride()};
  const Rows work = body(work_, rows, channels);
  if (block == 0) sum_.prepare(rows, channels, storage());
  const Rows sum{sum_.row(0), rows, sum_.stride()};
  snake_block(w_.resblocks[3 * stage + block], style, x, x_stats_, work, sum, block > 0);
}

void Generator::snake_block(const SnakeBlock& b, StyleNorm& style, const Rows& x, const nn::PlaneStats& x_stats,
                            const Rows& work, const Rows& out, bool add) {
  const Rows hidden = body(hidden_, x.count, b.channels);
  const size_t padded = round_up(b.channels, kPanelColumns);
  const auto input = [&](const Rows& rows, const kernels::TileStats& stats, const PackedMatrix& fc,
                         const float* alpha) {
    style.coefficients(fc, stats, b.channels);
    return kernels::ConvInput{.data = rows.data,
                              .storage = storage(),
                              .rows = rows.count,
                              .stride = rows.stride,
                              .scale = style.scale(),
                              .shift = style.shift(),
                              .activation = Activation::kSnake,
                              .alpha_over_pi = alpha,
                              .inverse_alpha = alpha + padded,
                              .range = &stats};
  };
  for (size_t j = 0; j < 3; ++j) {
    const Rows& from = j == 0 ? x : work;
    const kernels::TileStats& from_stats = j == 0 ? x_stats.tiles() : work_stats_.tiles();
    const size_t dilation = kResDilation[j];
    kernels::TileStats* const hidden_stats = hidden_stats_.prepare(x.count, b.channels);
    runner_.conv(b.conv1[j],
                 {.rows = x.count, .dilation = dilation, .pad = static_cast<ptrdiff_t>((b.kernel - 1) * dilation / 2)},
                 input(from, from_stats, b.norm1[j], b.alpha1[j]),
                 {.data = hidden.data, .storage = storage(), .stride = hidden.stride, .stats = hidden_stats});
    const bool last = j == 2;
    const Rows& to = last ? out : work;
    kernels::ConvOutput output{.data = to.data,
                               .storage = storage(),
                               .stride = to.stride,
                               .residual = from.data,
                               .residual_stride = from.stride};
    if (last && add) {
      output.addend = out.data;
      output.addend_stride = out.stride;
    }
    if (!last) output.stats = work_stats_.prepare(x.count, b.channels);
    runner_.conv(b.conv2[j], {.rows = x.count, .pad = static_cast<ptrdiff_t>((b.kernel - 1) / 2)},
                 input(hidden, *hidden_stats, b.norm2[j], b.alpha2[j]), output);
  }
}

void Generator::spectrum(const nn::Plane& features) {
  runner_.conv(w_.conv_post, {.rows = features.rows(), .pad = 3},
               {.data = features.row(0),
                .storage = features.storage(),
                .rows = features.rows(),
                .stride = features.stride(),
                .scale = third_.data(),
                .shift = zero_.data(),
                .activation = Activation::kLeakyRelu,
                .slope = kPostSlope},
               {.data = spectrum_.row(0), .stride = spectrum_.stride()});
}

void Generator::inverse(std::span<float> samples) {
  const kernels::SpectrumPart whole{
      .rows = View<const float, 2>(spectrum_.f32(), {spectrum_.rows(), kSpectrum}, {spectrum_.stride(), 1}),
      .first = 0,
      .total = spectrum_.rows()};
  runner_.split(samples.size() / kernels::kStftHop, [&](size_t begin, size_t end) {
    kernels::istft20_of_head(whole, begin, end,
                             samples.subspan(begin * kernels::kStftHop, (end - begin) * kernels::kStftHop));
  });
}

}  // namespace syrinx::kokoro
