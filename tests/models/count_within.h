// The check that compared stages get in a test.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "seen_stages.h"

namespace syrinx {

// Expects each stage within the bound, in parts of its largest value; prints the worst and returns how many there were.
inline size_t count_within(const Result<std::vector<StageDifference>>& stages, double bound) {
  if (!stages) {
    ADD_FAILURE() << stages.error().message;
    return 0;
  }
  double worst = 0;
  for (const StageDifference& stage : *stages) {
    EXPECT_LE(stage.worst, bound) << stage.stage;
    worst = std::max(worst, stage.worst);
  }
  std::printf("worst: %.2g of a stage's maximum, %zu stages\n", worst, stages->size());
  return stages->size();
}

}  // namespace syrinx
