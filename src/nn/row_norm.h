// The norm in front of a matrix product, inside a task of a crew.  A few rows are normed by every member for itself,
// which costs less than a barrier; many are shared out in a stage of their own.  The numbers are the same either way.
#pragma once

#include <span>

#include "nn/crew.h"
#include "nn/decoder_config.h"
#include "nn/norm_weights.h"
#include "nn/runner.h"

namespace syrinx::nn {

class RowNorm {
 public:
  // Room for passes of `rows` rows of `width` numbers on a team of `members`.
  void prepare(size_t rows, size_t width, int members);

  struct Work {
    Norm kind = Norm::kLayer;
    const NormWeights* weights = nullptr;
    float epsilon = 1e-5f;
    View<const float, 2> x;  // [n, width]
    // [n] or none: the normed row is multiplied by the numbers from gains[row] + gain_offset on.
    std::span<const float* const> gains{};
    size_t gain_offset = 0;
  };
  // The stage in which many rows are normed; nothing for a few.
  void stage(Crew::Seat& seat, const Work& work);
  // Norms these rows in a stage of the caller's, in place of stage().
  View<const float, 2> share(Range rows, const Work& work);
  View<const float, 2> shared() const { return normed_.view(); }
  // The normed rows, in the stage behind it; valid until that ends.
  View<const float, 2> rows(const Part& part, const Work& work);

 private:
  bool alone(size_t rows) const { return rows <= rows_alone_; }

  Plane normed_;
  size_t rows_alone_ = 1;  // that a member norms for itself
};

}  // namespace syrinx::nn
