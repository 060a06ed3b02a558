#include "tensor/kept_pages.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>
#include <vector>

namespace syrinx {
namespace {

constexpr size_t kPage = 4096;

// Pages that nothing has touched yet.
class FreshPages {
 public:
  explicit FreshPages(size_t pages)
      : bytes_(pages * kPage),
        data_(::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    EXPECT_NE(data_, MAP_FAILED);
    ::madvise(data_, bytes_, MADV_NOHUGEPAGE);
  }
  ~FreshPages() { ::munmap(data_, bytes_); }
  FreshPages(const FreshPages&) = delete;
  FreshPages& operator=(const FreshPages&) = delete;

  std::span<const std::byte> bytes() const { return {static_cast<const std::byte*>(data_), bytes_}; }
  size_t resident() const {
    std::vector<unsigned char> pages(bytes_ / kPage);
    EXPECT_EQ(::mincore(data_, bytes_, pages.data()), 0);
    return static_cast<size_t>(std::ranges::count_if(pages, [](unsigned char page) { return (page & 1) != 0; }));
  }

 private:
  const size_t bytes_;
  void* const data_;
};

TEST(KeptPages, EachPageIsRead) {
  const FreshPages small(3), large(1100);  // of more than two slices
  const KeptPages one(small.bytes().first(2 * kPage + 1)), other(large.bytes());
  EXPECT_EQ(small.resident() + large.resident(), 0U);
  EXPECT_EQ(read_kept_pages().pages, 1103U);
  EXPECT_EQ(small.resident(), 3U);
  EXPECT_EQ(large.resident(), 1100U);
}

TEST(KeptPages, MovedOnesAreReadOnce) {
  const FreshPages first(5), second(7);
  KeptPages one(first.bytes());
  KeptPages other(std::move(one));
  EXPECT_EQ(read_kept_pages().pages, 5U);
  other = KeptPages(second.bytes());
  EXPECT_EQ(read_kept_pages().pages, 7U) << "what was kept before is no more";
}

TEST(KeptPages, EndedOnesStayUntouched) {
  const FreshPages pages(5);
  { const KeptPages ended(pages.bytes()); }
  { const KeptPages none; }
  EXPECT_EQ(read_kept_pages().pages, 0U);
  EXPECT_EQ(pages.resident(), 0U);
}

// Memory is unmapped as soon as its run has ended.
TEST(KeptPages, RunsComeAndGoMeanwhile) {
  std::atomic<bool> ends{false};
  std::thread reader([&] {
    while (!ends) {
      read_kept_pages();
      std::this_thread::yield();
    }
  });
  for (int n = 0; n < 300; ++n) {
    const FreshPages pages(600);
    const KeptPages kept(pages.bytes());
    const KeptPages again(pages.bytes().first(kPage));
  }
  ends = true;
  reader.join();
  EXPECT_EQ(read_kept_pages().pages, 0U);
}

}  // namespace
}  // namespace syrinx
