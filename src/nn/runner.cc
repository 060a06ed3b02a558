#include "nn/runner.h"

#include <cmath>

#include "base/check.h"

namespace syrinx::nn {
namespace {

// Multiplications of a job where others may have the team between jobs: about 4 ms of two threads.  Smaller jobs cost
// a hundredth of a model's time and more, for panels of one tile that are cut each prepare the rows of its input.
constexpr size_t kJobProducts = 900'000'000, kJobProductsF32 = 330'000'000;
// An output counts as so many, for its pages are often touched for the first time.
constexpr size_t kOutputProducts = 256;

}  // namespace

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
  const Block all = whole(matrix, geometry), at_once = block_of_job(matrix, geometry);
  for (size_t tile = 0; tile < all.tiles.end; tile += at_once.tiles.end) {
    for (size_t panel = 0; panel < all.panels.end; panel += at_once.panels.end) {
      const Block block{{tile, std::min(tile + at_once.tiles.end, all.tiles.end)},
                        {panel, std::min(panel + at_once.panels.end, all.panels.end)}};
      team_.run([&](int member) {
        conv_block({.member = member, .rank = member, .size = team_.size()}, matrix, geometry, in, out, block, 1);
      });
      between();
    }
  }
}

Runner::Block Runner::whole(const PackedMatrix& matrix, const kernels::ConvGeometry& geometry) {
  return {{0, kernels::tile_count_for(geometry.rows)}, {0, matrix.panel_count()}};
}

// The first one; all where nothing is cut, else as many tiles as fill a job, the same number for each member, and not
// all of their panels where even that is too long.
Runner::Block Runner::block_of_job(const PackedMatrix& matrix, const kernels::ConvGeometry& geometry) const {
  Block block = whole(matrix, geometry);
  if (!cut() || block.tiles.end == 0) return block;
  const size_t members = static_cast<size_t>(team_.size());
  const size_t most = matrix.type == PanelType::kF32 ? kJobProductsF32 : kJobProducts;
  const size_t column = kernels::tile_rows_for(geometry.rows) * (matrix.depth() * matrix.taps + kOutputProducts);
  const size_t tiles = std::max<size_t>(most / (column * matrix.padded_columns() * members), 1) * members;
  block.tiles.end = std::min(tiles, block.tiles.end);
  const size_t products = block.tiles.end * column * matrix.padded_columns(), parts = (products + most - 1) / most;
  if (tiles == members && parts > 1) block.panels.end = std::max((block.panels.end + parts - 1) / parts, members);
  return block;
}

Share Runner::conv_part(const Part& part, const PackedMatrix& matrix, const kernels::ConvGeometry& geometry,
                        const kernels::ConvInput& in, const kernels::ConvOutput& out, size_t grain) {
  return conv_block(part, matrix, geometry, in, out, whole(matrix, geometry), grain);
}

// A member's part of a block.
Share Runner::conv_block(const Part& part, const PackedMatrix& matrix, const kernels::ConvGeometry& geometry,
                         const kernels::ConvInput& in, const kernels::ConvOutput& out, const Block& block,
                         size_t grain) {
  const size_t tiles = block.tiles.end - block.tiles.begin, panels = block.panels.end - block.panels.begin;
  const size_t members = static_cast<size_t>(part.size);
  const bool by_tiles = tiles >= 8 || tiles % members == 0 || panels < members;
  const Range own = by_tiles ? part.split(tiles) : part.split(panels, grain);
  if (own.begin == own.end) return {};
  const auto from = [&own](size_t first) { return Range{first + own.begin, first + own.end}; };
  const Range own_tiles = by_tiles ? from(block.tiles.begin) : block.tiles;
  const Range own_panels = by_tiles ? block.panels : from(block.panels.begin);
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
