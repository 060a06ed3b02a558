#include "tensor/buffer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "tensor/buffer_count.h"

namespace syrinx {
namespace {

// Around the size where memory comes straight from the system.
class BufferTest : public testing::TestWithParam<size_t> {};
INSTANTIATE_TEST_SUITE_P(Sizes, BufferTest,
                         testing::Values(1, 63, 64, 65, (128 << 10) - 1, 128 << 10, (128 << 10) + 1, 1 << 20,
                                         (2 << 20) - 64, 2 << 20, 5 << 20));

TEST_P(BufferTest, AlignedZeroedAndReadableBehindTheEnd) {
  Buffer<uint8_t> buffer(GetParam());
  ASSERT_EQ(buffer.size(), GetParam());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % 64, 0u);
  EXPECT_TRUE(std::all_of(buffer.begin(), buffer.end(), [](uint8_t v) { return v == 0; }));
  const volatile uint8_t* const end = buffer.data() + buffer.size();
  int sum = 0;
  for (int i = 0; i < 64; ++i) sum += end[i];
  EXPECT_EQ(sum, 0);
  std::fill(buffer.begin(), buffer.end(), uint8_t{9});
}

TEST_P(BufferTest, Moves) {
  Buffer<uint8_t> a(GetParam());
  a[0] = 5;
  Buffer<uint8_t> b = std::move(a);
  EXPECT_EQ(a.data(), nullptr);
  EXPECT_EQ(a.size(), 0u);
  Buffer<uint8_t> c(7);
  c = std::move(b);
  EXPECT_EQ(c[0], 5);
  EXPECT_EQ(c.span().size(), GetParam());
}

// The hint changes nothing that can be read, whatever the buffer's size.
TEST_P(BufferTest, HugePagesHoldTheSame) {
  Buffer<uint8_t> buffer(GetParam());
  prefer_huge_pages(buffer.data(), buffer.size());
  EXPECT_TRUE(std::all_of(buffer.begin(), buffer.end(), [](uint8_t v) { return v == 0; }));
  if (GetParam() >= size_t{2} << 20) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % (2 << 20), 0u);
  }
  std::fill(buffer.begin(), buffer.end(), uint8_t{7});
  EXPECT_EQ(buffer[buffer.size() - 1], 7);
}

// Whole pages become zeros, what lies around them stays.
TEST(Buffer, PagesAreGivenBack) {
  constexpr size_t kPage = 4096;
  Buffer<uint8_t> buffer(size_t{5} << 20);
  std::fill(buffer.begin(), buffer.end(), uint8_t{9});
  give_back_pages(buffer.data() + 100, 10 * kPage);
  EXPECT_EQ(buffer[kPage - 1], 9);
  EXPECT_TRUE(std::all_of(&buffer[kPage], &buffer[10 * kPage], [](uint8_t v) { return v == 0; }));
  EXPECT_EQ(buffer[10 * kPage], 9);
  give_back_pages(buffer.data() + 11 * kPage + 1, kPage);
  EXPECT_EQ(buffer[11 * kPage + 2], 9) << "no whole page";
}

TEST_P(BufferTest, IsCounted) {
  const size_t before = buffer_count();
  Buffer<uint8_t> buffer(GetParam());
  EXPECT_EQ(buffer_count(), before + 1);
  Buffer<uint8_t> moved = std::move(buffer);
  EXPECT_EQ(buffer_count(), before + 1) << "moving makes none";
}

TEST(Buffer, EmptyOnes) {
  const Buffer<float> none;
  EXPECT_EQ(none.data(), nullptr);
  EXPECT_TRUE(none.span().empty());
  Buffer<float> zero(0);
  EXPECT_EQ(zero.begin(), zero.end());
}

TEST(BufferDeathTest, NoAddressSpace) { EXPECT_DEATH(allocate_aligned(size_t{1} << 62), "bytes"); }

TEST(BufferDeathTest, CountThatOverflows) { EXPECT_DEATH(Buffer<double>(size_t{1} << 62), "items"); }

}  // namespace
}  // namespace syrinx
