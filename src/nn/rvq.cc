#include "nn/rvq.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "kernels/argmax.h"
#include "kernels/conv.h"
#include "kernels/pack_rows.h"

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

size_t Rvq::scratch_size() const { return round_up(width_, kPanelColumns) + round_up(bins(), kPanelColumns); }

void Rvq::encode(std::span<float> rest, std::span<int32_t> codes, std::span<float> scratch) const {
  SYRINX_CHECK(codes.size() <= nearness_.size() && rest.size() == width_ && scratch.size() >= scratch_size(),
               "{} codes of {}, scratch {}", codes.size(), rest.size(), scratch.size());
  float* const x = scratch.data();
  float* const near = x + round_up(width_, kPanelColumns);
  std::fill(x + width_, near, 0.0f);
  for (size_t level = 0; level < codes.size(); ++level) {
    const PackedMatrix& matrix = nearness_[level].view;
    std::copy(rest.begin(), rest.end(), x);
    kernels::gemv(matrix, x, nullptr, near, {0, matrix.panel_count()}, {});
    const size_t code = kernels::argmax({near, bins()}).index;
    codes[level] = static_cast<int32_t>(code);
    const float* const row = codebooks_[level].data() + code * width_;
    for (size_t i = 0; i < width_; ++i) rest[i] -= row[i];
  }
}

}  // namespace syrinx::nn
