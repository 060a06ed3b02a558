#include "base/result.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <string>

#include "base/check.h"

namespace syrinx {
namespace {

constexpr Code kAll[] = {Code::kInvalidArgument, Code::kNotFound,      Code::kDataLoss,
                         Code::kUnsupported,     Code::kLimitExceeded, Code::kIo,
                         Code::kUnavailable,     Code::kCancelled,     Code::kInternal};

Result<int> half(int value) {
  if (value % 2 != 0) return fail(Code::kInvalidArgument, "{} is odd", value);
  return value / 2;
}

Result<std::map<int, int>> table(int value) {
  SYRINX_TRY(const int halved, half(value));
  SYRINX_TRY(auto one, Result<std::map<int, int>>{{{value, halved}}});
  return one;
}

Status both(int a, int b) {
  SYRINX_TRY_VOID(half(a).map([](int) {}));
  SYRINX_TRY_VOID(half(b).map([](int) {}));
  return {};
}

Result<std::unique_ptr<int>> owned(int value) {
  SYRINX_TRY(const int halved, half(value));
  return std::make_unique<int>(halved);
}

TEST(Result, ValueAndError) {
  EXPECT_EQ(*half(4), 2);
  const auto bad = half(3);
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().code, Code::kInvalidArgument);
  EXPECT_EQ(bad.error().message, "3 is odd");
}

TEST(Result, TryPassesOn) {
  EXPECT_EQ(table(6)->at(6), 3);
  EXPECT_EQ(table(7).error().message, "7 is odd");
  EXPECT_TRUE(both(2, 4));
  EXPECT_EQ(both(2, 5).error().message, "5 is odd");
  SCOPED_TRACE("move-only values travel");
  EXPECT_EQ(**owned(8), 4);
  EXPECT_FALSE(owned(9));
}

TEST(Result, CodesHaveDistinctNamesAndStatuses) {
  std::set<std::string> names;
  std::set<int> statuses;
  for (Code code : kAll) {
    names.insert(code_name(code));
    statuses.insert(exit_status(code));
  }
  EXPECT_EQ(names.size(), std::size(kAll));
  EXPECT_EQ(statuses.size(), std::size(kAll));
  EXPECT_FALSE(statuses.contains(0));
  EXPECT_FALSE(statuses.contains(1));
  EXPECT_EQ(exit_status(Code::kCancelled), 130);
}

TEST(CheckDeathTest, NamesPlaceConditionAndValues) {
  const int rows = 3;
  SYRINX_CHECK(rows == 3);
  EXPECT_DEATH(SYRINX_CHECK(rows < 2, "rows {}", rows), "result_test.cc:[0-9]+: rows < 2: rows 3");
  EXPECT_DEATH(SYRINX_CHECK(rows < 2), "rows < 2");
}

}  // namespace
}  // namespace syrinx
