#include "engine/speech/finish_reason.h"

#include <gtest/gtest.h>

namespace syrinx {
namespace {

TEST(FinishReason, MostFrequentCutCounts) {
  FinishCounts counts;
  EXPECT_EQ(counts.worst(), FinishReason::kSpoken);
  counts.add(FinishReason::kSpoken, 9);
  EXPECT_EQ(counts.cut(), 0u);
  EXPECT_EQ(counts.worst(), FinishReason::kSpoken);
  counts.add(FinishReason::kRepeats);
  EXPECT_EQ(counts.worst(), FinishReason::kRepeats);
  counts.add(FinishReason::kSilence);
  EXPECT_EQ(counts.worst(), FinishReason::kSilence);
  FinishCounts more;
  more.add(FinishReason::kLength, 2);
  counts.add(more);
  EXPECT_EQ(counts.worst(), FinishReason::kLength);
  EXPECT_EQ(counts.cut(), 4u);
  EXPECT_EQ(counts.of(FinishReason::kSpoken), 9u);
}

}  // namespace
}  // namespace syrinx
