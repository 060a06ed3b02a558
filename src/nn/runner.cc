#include "nn/runner.h"

#include <cmath>

#include "base/check.h"

namespace syrinx::nn {

void Plane::prepare(size_t rows, size_t channels, kernels::Storage storage) {
  rows_ = rows;
  channels_ = channels;
  stride_ = round_up(channels, kPanelColumns);
  storage_ = storage;
  const size_t bytes = rows * stride_ * kernels::storage_bytes(storage);
  if (bytes_.size() < bytes) {
    bytes_ = Buffer<std::byte>();  // let the old go first
    bytes_ = Buffer<std::byte>(bytes);
  }
}

kernels::TileStats* PlaneStats::prepare(size_t rows, size_t channels) {
  tiles_.rows = rows;
  tiles_.columns = round_up(channels, kPanelColumns);
  const size_t needed = tiles_.tiles() * 4 * tiles_.columns;
  if (values_.size() < needed) values_.resize(needed);
  tiles_.values = values_.data();
  return &tiles_;
}

std::span<std::byte> Runner::scratch(int member, size_t size_bytes) {
  Buffer<std::byte>& own = scratch_[static_cast<size_t>(member)];
  if (own.size() < size_bytes) {
    own = Buffer<std::byte>();
    own = Buffer<std::byte>(size_bytes);
  }
  return own.span();
}

void Runner::conv(const PackedMatrix& matrix, const kernels::ConvGeometry& geometry, const kernels::ConvInput& in,
                  const kernels::ConvOutput& out) {
  const size_t bytes = kernels::conv_scratch_bytes(matrix, geometry);
  for (int member = 0; member < team_.size(); ++member) scratch(member, bytes);
  team_.run([&](int member) {
    conv_part({.member = member, .rank = member, .size = team_.size()}, matrix, geometry, in, out);
  });
}

Share Runner::conv_part(const Part& part, const PackedMatrix& matrix, const kernels::ConvGeometry& geometry,
                        const kernels::ConvInput& in, const kernels::ConvOutput& out, size_t grain) {
  const size_t tiles = kernels::tile_count_for(geometry.rows), panels = matrix.panel_count();
  const size_t members = static_cast<size_t>(part.size);
  const bool by_tiles = tiles >= 8 || tiles % members == 0 || panels < members;
  const Range own = by_tiles ? part.split(tiles) : part.split(panels, grain);
  if (own.begin == own.end) return {};
  const Range own_tiles = by_tiles ? own : Range{0, tiles}, own_panels = by_tiles ? Range{0, panels} : own;
  kernels::conv(matrix, geometry, in, out, own_tiles, own_panels, scratch_[static_cast<size_t>(part.member)].span());
  const size_t tile_rows = kernels::tile_rows_for(geometry.rows);
  return {.rows = {own_tiles.begin * tile_rows, std::min(own_tiles.end * tile_rows, geometry.rows)},
          .columns = {own_panels.begin * kPanelColumns, own_panels.end * kPanelColumns}};
}

void Runner::linear(const PackedMatrix& matrix, View<const float, 2> x, View<float, 2> y) {
  SYRINX_CHECK(x.extent(1) == matrix.channels && y.extent(1) == matrix.columns && x.extent(0) == y.extent(0),
               "linear {} -> {} on {} -> {}", matrix.channels, matrix.columns, x.extent(1), y.extent(1));
  conv(matrix, {.rows = x.extent(0)}, {.data = x.data(), .rows = x.extent(0), .stride = x.stride(0)},
       {.data = y.data(), .stride = y.stride(0)});
}

void Runner::stats(const Plane& plane, PlaneStats& stats) {
  kernels::TileStats* const tiles = stats.prepare(plane.rows(), plane.channels());
  split(tiles->tiles(), [&](size_t begin, size_t end) {
    kernels::column_stats(plane.row(0), plane.storage(), plane.stride(), plane.rows(), tiles->columns, *tiles,
                          {begin, end});
  });
}

void adain_coefficients(const kernels::TileStats& stats, size_t channels, const float* gamma_beta, float* scale,
                        float* shift) {
  constexpr float kEpsilon = 1e-5f;
  constexpr size_t kAtOnce = kPanelColumns;
  const double rows = static_cast<double>(stats.rows);
  for (size_t first = 0; first < stats.columns; first += kAtOnce) {
    double mean[kAtOnce] = {}, squares[kAtOnce] = {};
    for (size_t t = 0; t < stats.tiles(); ++t) {
      const double count = static_cast<double>(std::min(stats.tile_rows(), stats.rows - t * stats.tile_rows()));
      for (size_t i = 0; i < kAtOnce; ++i) mean[i] += count * stats.mean(t)[first + i];
    }
    for (double& m : mean) m /= rows;
    for (size_t t = 0; t < stats.tiles(); ++t) {
      const double count = static_cast<double>(std::min(stats.tile_rows(), stats.rows - t * stats.tile_rows()));
      for (size_t i = 0; i < kAtOnce; ++i) {
        const double away = stats.mean(t)[first + i] - mean[i];
        squares[i] += stats.squares(t)[first + i] + count * away * away;
      }
    }
    for (size_t i = 0; i < kAtOnce; ++i) {
      const size_t c = first + i;
      if (c >= channels) {
        scale[c] = shift[c] = 0.0f;
        continue;
      }
      const double inverse = 1.0 / std::sqrt(squares[i] / rows + kEpsilon);
      const double a = (1.0 + gamma_beta[c]) * inverse;
      scale[c] = static_cast<float>(a);
      shift[c] = static_cast<float>(gamma_beta[channels + c] - mean[i] * a);
    }
  }
}

}  // namespace syrinx::nn
