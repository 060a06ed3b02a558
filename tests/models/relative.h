// How far values are from the reference's.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace syrinx {

// Largest difference, as a part of the largest value.
inline double relative(const std::vector<float>& ours, const std::vector<float>& theirs) {
  EXPECT_EQ(ours.size(), theirs.size());
  if (ours.size() != theirs.size() || theirs.empty()) return 1e9;
  double worst = 0, largest = 0;
  for (size_t i = 0; i < ours.size(); ++i) {
    if (!std::isfinite(ours[i]) || !std::isfinite(theirs[i])) return 1e9;
    worst = std::max(worst, std::fabs(static_cast<double>(ours[i]) - theirs[i]));
    largest = std::max(largest, std::fabs(static_cast<double>(theirs[i])));
  }
  return worst / largest;
}

}  // namespace syrinx
