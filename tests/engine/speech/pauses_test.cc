#include "engine/speech/pauses.h"

#include <gtest/gtest.h>

namespace syrinx {
namespace {

TEST(Pauses, FollowTheLastMark) {
  const std::pair<const char*, double> pauses[] = {
      {"wˈʌn.", 300}, {"wˈʌn?”", 300},   {"wˈʌn! )", 300}, {"wˈʌn…", 300}, {"wˈʌn;", 200}, {"wˈʌn — ", 200},
      {"wˈʌn:", 200}, {"wˈʌn, tˈu", 60}, {"wˈʌn,", 120},   {"wˈʌn", 60},   {"", 60},       {"\xff", 60}};
  for (const auto& [phonemes, after_ms] : pauses) {
    EXPECT_EQ(pause_rule(phonemes).keep_after_ms, after_ms) << phonemes;
    EXPECT_EQ(pause_rule(phonemes).keep_before_ms, 50);
  }
}

}  // namespace
}  // namespace syrinx
