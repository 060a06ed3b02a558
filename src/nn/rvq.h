// Residual vector quantisation: a vector as the sum of one row of each of some codebooks.  Projections in front and
// behind are the models'.  Immutable once made; any number of threads may share one.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_team.h"
#include "kernels/pack.h"
#include "tensor/view.h"

namespace syrinx::nn {

// The rows of a codebook as training leaves it: sums of what fell to each, and how much that was.  sums [bins, width],
// usage [bins].
std::vector<float> codebook_rows(std::span<const float> sums, std::span<const float> usage);

class Rvq {
 public:
  // Codebooks [bins, width] each.  One that encodes holds them a second time, packed for the search; the team packs.
  Rvq(std::vector<std::vector<float>> codebooks, size_t width);
  Rvq(std::vector<std::vector<float>> codebooks, size_t width, ThreadTeam& team);

  size_t levels() const { return codebooks_.size(); }
  size_t bins() const { return codebooks_.front().size() / width_; }
  size_t width() const { return width_; }

  // The sum of the rows that codes [n] name, n <= levels(), each from 0 to bins() - 1, in the order of the levels, into
  // out [width].
  void decode(std::span<const int32_t> codes, std::span<float> out) const;

  // Floats of scratch of encode() for so many vectors.
  size_t scratch_size(size_t vectors) const;
  // codes [N, n]: at each level the row nearest to what the levels before have left of `rests` [N, width], the first of
  // equals; `rests` are what remains.  All N read a codebook once; codes of one do not depend on the others.  Distances
  // are of float sums: of rows that are equally near to 1e-6 of their squares either may be taken.  Allocates nothing.
  void encode(View<float, 2> rests, View<int32_t, 2> codes, std::span<float> scratch) const;

 private:
  size_t width_;
  std::vector<std::vector<float>> codebooks_;
  std::vector<kernels::OwnedMatrix> nearness_;  // width -> bins: e . x - |e|^2 / 2
};

}  // namespace syrinx::nn
