#include "models/transducer/tile_layers.h"

#include <algorithm>
#include <utility>

#include "kernels/activation.h"
#include "kernels/glu.h"
#include "kernels/layer_norm.h"
#include "kernels/narrow_gemm.h"
#include "kernels/row_conv.h"

namespace syrinx::transducer {
namespace {

constexpr float kEpsilon = 1e-5f;
// Whole blocks of the products (12 and 14 rows).  Hidden rows of 2048 are then 700 kB.
constexpr size_t kTileRows = 84;
// Fewer, and reading all weights on each member would weigh more than sharing rows gains.
constexpr size_t kRowsAMember = 36;

// Rows of a block are read side by side: at a power of two apart they would meet in one set of the first-level cache.
size_t apart(size_t columns) { return round_up(columns, kPanelColumns) + 16; }

// Calls work(first, count) for tiles of nearly equal size.
template <class Work>
void for_tiles(size_t rows, const Work& work) {
  const auto tiles = static_cast<int>((rows + kTileRows - 1) / kTileRows);
  for (int tile = 0; tile < tiles; ++tile) {
    const Range range = split_range(rows, tile, tiles);
    work(range.begin, range.end - range.begin);
  }
}

template <class T>
View<T, 2> some_rows(View<T, 2> all, size_t first, size_t count) {
  return {all.data() + first * all.stride(0), {count, all.extent(1)}, {all.stride(0), 1}};
}

}  // namespace

TileLayers::TileLayers(std::shared_ptr<const EncoderWeights> weights, nn::Runner& runner)
    : weights_(std::move(weights)), runner_(runner), members_(static_cast<size_t>(runner.team().size())) {}

bool TileLayers::takes(size_t rows) const { return rows >= kRowsAMember * members_.size(); }

void TileLayers::prepare() {
  const EncoderConfig& c = weights_->config;
  size_t bytes = 0;
  for (const EncoderLayer& layer : weights_->layers)
    for (const auto* matrix : {&layer.linear1, &layer.linear2, &layer.qkv, &layer.out, &layer.pointwise1})
      if (kernels::is_narrow(matrix->view.type))
        bytes = std::max(bytes, kernels::narrow_rows_bytes(matrix->view, kTileRows));
  for (size_t member = 0; member < members_.size(); ++member) {
    if (bytes > 0) runner_.scratch(static_cast<int>(member), bytes);
    if (members_[member].wide.size() > 0) continue;
    members_[member].narrow = Buffer<float>(kTileRows * apart(c.width));
    members_[member].wide = Buffer<float>(kTileRows * apart(std::max(c.hidden, 2 * c.width)));
  }
}

View<float, 2> TileLayers::narrow(int member, size_t rows) {
  const size_t width = weights_->config.width;
  return {members_[static_cast<size_t>(member)].narrow.data(), {rows, width}, {apart(width), 1}};
}

View<float, 2> TileLayers::wide(int member, size_t rows, size_t columns) {
  return {members_[static_cast<size_t>(member)].wide.data(), {rows, columns}, {apart(columns), 1}};
}

// y = x W + b (+ addend), or its SiLU.
void TileLayers::linear(int member, const PackedMatrix& matrix, View<const float, 2> x, View<const float, 2> addend,
                        View<float, 2> y, bool silu) {
  const size_t count = x.extent(0);
  const Range panels{0, matrix.panel_count()};
  if (kernels::is_narrow(matrix.type)) {
    const size_t bytes = kernels::narrow_rows_bytes(matrix, count);
    const kernels::NarrowRows rows = kernels::plan_narrow_rows(matrix, count, runner_.scratch(member, bytes));
    kernels::narrow_rows(matrix, x, {0, count}, rows);
    kernels::narrow_gemm(matrix, rows, addend, y, panels);
    for (size_t n = 0; silu && n < count; ++n) kernels::silu({y.row(n), y.extent(1)}, {y.row(n), y.extent(1)});
    return;
  }
  kernels::RowConv conv{.input = x.data(), .rows = count, .row_step = x.stride(0), .stride = y.stride(0)};
  conv.residual = addend.data();
  conv.residual_stride = addend.stride(0);
  conv.output = silu ? nullptr : y.data();
  conv.activated = silu ? y.data() : nullptr;
  conv.activation = silu ? kernels::RowActivation::kSilu : kernels::RowActivation::kNone;
  kernels::row_conv(matrix, conv, {0, count}, panels);
}

void TileLayers::feed_forward(int member, const NormWeights& norm, const kernels::OwnedMatrix& first,
                              const kernels::OwnedMatrix& second, View<float, 2> x) {
  for_tiles(x.extent(0), [&](size_t row, size_t count) {
    const View<float, 2> own = some_rows(x, row, count), normed = narrow(member, count);
    const View<float, 2> hidden = wide(member, count, first.view.columns);
    kernels::layer_norm(own, norm.affine(), kEpsilon, normed);
    linear(member, first.view, normed, {}, hidden, true);
    linear(member, second.view, hidden, own, own);
  });
}

void TileLayers::project(int member, const NormWeights& norm, const kernels::OwnedMatrix& matrix,
                         View<const float, 2> x, View<float, 2> to) {
  for_tiles(x.extent(0), [&](size_t row, size_t count) {
    const View<float, 2> normed = narrow(member, count);
    kernels::layer_norm(some_rows(x, row, count), norm.affine(), kEpsilon, normed);
    linear(member, matrix.view, normed, {}, some_rows(to, row, count));
  });
}

void TileLayers::gate(int member, const NormWeights& norm, const kernels::OwnedMatrix& matrix, View<const float, 2> x,
                      View<float, 2> to) {
  for_tiles(x.extent(0), [&](size_t row, size_t count) {
    const View<float, 2> normed = narrow(member, count), gates = wide(member, count, matrix.view.columns);
    kernels::layer_norm(some_rows(x, row, count), norm.affine(), kEpsilon, normed);
    linear(member, matrix.view, normed, {}, gates);
    kernels::glu(gates, some_rows(to, row, count));
  });
}

void TileLayers::add(int member, const kernels::OwnedMatrix& matrix, View<const float, 2> from, View<float, 2> x) {
  for_tiles(x.extent(0), [&](size_t row, size_t count) {
    const View<float, 2> own = some_rows(x, row, count), copy = narrow(member, count);
    for (size_t n = 0; n < count; ++n) std::copy_n(from.row(row + n), from.extent(1), copy.row(n));
    linear(member, matrix.view, copy, own, own);
  });
}

}  // namespace syrinx::transducer
