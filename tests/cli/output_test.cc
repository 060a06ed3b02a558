#include "cli/output.h"

#include <gtest/gtest.h>

#include "../models/allocation_count.h"

namespace syrinx::cli {
namespace {

TEST(Output, ThatMemoryIsOutIsToldWithoutMemory) {
  testing::internal::CaptureStderr();
  const size_t before = allocation_count();
  note_no_memory();
  const size_t after = allocation_count();
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "syrinx: out of memory; close other programs or give shorter text\n");
  EXPECT_EQ(after, before);
}

}  // namespace
}  // namespace syrinx::cli
