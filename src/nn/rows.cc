#include "nn/rows.h"

#include <cmath>
#include <limits>

namespace syrinx::nn {

void quantise_rows(View<const float, 2> rows, View<int8_t, 2> to, float* scales) {
  constexpr float kMost = 127;
  for (size_t n = 0; n < rows.extent(0); ++n) {
    const float* const row = rows.row(n);
    float most = 0, sum = 0;
    for (size_t i = 0; i < rows.extent(1); ++i) {
      most = std::max(most, std::abs(row[i]));
      sum += std::abs(row[i]);
    }
    const bool finite = std::isfinite(sum);
    scales[n] = finite ? most / kMost : std::numeric_limits<float>::quiet_NaN();
    const float inverse = finite && scales[n] >= std::numeric_limits<float>::min() ? 1.0f / scales[n] : 0.0f;
    for (size_t i = 0; i < rows.extent(1); ++i)
      to.row(n)[i] =
          inverse == 0 ? int8_t{0} : static_cast<int8_t>(std::clamp(std::nearbyint(row[i] * inverse), -kMost, kMost));
  }
}

}  // namespace syrinx::nn
