#include "nn/rvq.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "kernels/argmax.h"
#include "kernels/pack_rows.h"
#include "kernels/row_conv.h"

namespace syrinx::nn {

std::vector<float> codebook_rows(std::span<const float> sums, std::span<const float> usage) {
  constexpr float kLeast = 1e-5f;  // the makers', against rows that nothing fell to
  SYRINX_CHECK(!usage.empty() && sums.size() % usage.size() == 0, "{} sums of {} rows", sums.size(), usage.size());
  const size_t width = sums.size() / usage.size();
  std::vector<float> rows(sums.begin(), sums.end());
  for (size_t i = 0; i < rows.size(); ++i) rows[i] /= std::max(usage[i / width], kLeast);
  return rows;
}

Rvq::Rvq(std::vector<std::vector<float>> codebooks, size_t width) : width_(width), codebooks_(std::move(codebooks)) {
  SYRINX_CHECK(!codebooks_.empty() && width > 0, "{} codebooks of width {}", codebooks_.size(), width);
  for (const std::vector<float>& rows : codebooks_)
    SYRINX_CHECK(rows.size() == codebooks_.front().size() && rows.size() % width == 0 && !rows.empty(),
                 "a codebook of {} numbers of width {}", rows.size(), width);
}

Rvq::Rvq(std::vector<std::vector<float>> codebooks, size_t width, ThreadTeam& team) : Rvq(std::move(codebooks), width) {
  for (const std::vector<float>& rows : codebooks_) {
    std::vector<float> bias(bins());
    for (size_t i = 0; i < rows.size(); ++i) bias[i / width_] -= rows[i] * rows[i] / 2;
    const kernels::StoredRows stored{.bytes = std::as_bytes(std::span(rows)), .columns = bins()};
    nearness_.push_back(kernels::pack_rows(PanelType::kF32, width_, {&stored, 1}, bias, team));
  }
}

void Rvq::decode(std::span<const int32_t> codes, std::span<float> out) const {
  SYRINX_CHECK(codes.size() <= levels() && out.size() == width_, "{} codes into {}", codes.size(), out.size());
  std::fill(out.begin(), out.end(), 0.0f);
  for (size_t level = 0; level < codes.size(); ++level) {
    SYRINX_CHECK(codes[level] >= 0 && static_cast<size_t>(codes[level]) < bins(), "code {} of {}", codes[level],
                 bins());
    const float* const row = codebooks_[level].data() + static_cast<size_t>(codes[level]) * width_;
    for (size_t i = 0; i < width_; ++i) out[i] += row[i];
  }
}

size_t Rvq::scratch_size(size_t vectors) const {
  return vectors * (round_up(width_, kPanelColumns) + round_up(bins(), kPanelColumns));
}

void Rvq::encode(View<float, 2> rests, View<int32_t, 2> codes, std::span<float> scratch) const {
  const size_t count = rests.extent(0), levels = codes.extent(1);
  SYRINX_CHECK(levels <= nearness_.size() && codes.extent(0) == count && rests.extent(1) == width_ &&
                   scratch.size() >= scratch_size(count),
               "{} codes of {} vectors of {}, scratch {}", levels, count, rests.extent(1), scratch.size());
  const View<float, 2> x(scratch.data(), {count, round_up(width_, kPanelColumns)});
  const View<float, 2> near(x.data() + x.size(), {count, round_up(bins(), kPanelColumns)});
  std::fill_n(x.data(), x.size(), 0.0f);
  for (size_t level = 0; level < levels; ++level) {
    const PackedMatrix& matrix = nearness_[level].view;
    for (size_t n = 0; n < count; ++n) std::copy_n(rests.row(n), width_, x.row(n));
    const kernels::RowConv products{
        .input = x.data(), .rows = count, .row_step = x.stride(0), .output = near.data(), .stride = near.stride(0)};
    kernels::row_conv(matrix, products, {0, count}, {0, matrix.panel_count()});
    for (size_t n = 0; n < count; ++n) {
      const size_t code = kernels::argmax({near.row(n), bins()}).index;
      codes.row(n)[level] = static_cast<int32_t>(code);
      const float* const row = codebooks_[level].data() + code * width_;
      for (size_t i = 0; i < width_; ++i) rests.row(n)[i] -= row[i];
    }
  }
}

}  // namespace syrinx::nn
