// A norm's factors and addends, [width] each; no beta where the model has none.
#pragma once

#include <vector>

#include "kernels/layer_norm.h"

namespace syrinx::nn {

struct NormWeights {
  std::vector<float> gamma, beta;
  kernels::NormAffine affine() const { return {gamma.data(), beta.empty() ? nullptr : beta.data()}; }
};

}  // namespace syrinx::nn
