#include "kernels/matrix_store.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <thread>

#include "../base/temp_folder.h"
#include "base/thread_team.h"

namespace syrinx::kernels {
namespace {

constexpr MatrixShape kShape{.columns = 40, .channels = 10, .taps = 2};

float weight(size_t n, size_t k, size_t t) { return static_cast<float>(n) - 3.0f * static_cast<float>(k + 7 * t); }

struct Made {
  OwnedMatrix f32, int8;
  size_t packed = 0;  // how many were not in the file
};
Made make(MatrixStore& store) {
  Made made;
  const std::vector<float> bias(kShape.columns, 0.5f);
  made.f32 = store.get("a", kShape, {PanelType::kF32, PanelType::kBf16}, [&] {
    ++made.packed;
    return pack_f32(kShape, weight, bias);
  });
  made.int8 = store.get("b", kShape, {PanelType::kInt8}, [&] {
    ++made.packed;
    return pack_int8(kShape, weight, {});
  });
  return made;
}

void expect_equal(const PackedMatrix& a, const PackedMatrix& b) {
  EXPECT_EQ(a.type, b.type);
  ASSERT_EQ(a.panel_count() * a.panel_bytes(), b.panel_count() * b.panel_bytes());
  EXPECT_EQ(std::memcmp(a.panels, b.panels, a.panel_count() * a.panel_bytes()), 0);
  EXPECT_EQ(std::memcmp(a.bias, b.bias, a.padded_columns() * sizeof(float)), 0);
  ASSERT_EQ(a.scale == nullptr, b.scale == nullptr);
  if (a.scale == nullptr) return;
  EXPECT_EQ(std::memcmp(a.scale, b.scale, a.padded_columns() * sizeof(float)), 0);
  EXPECT_EQ(std::memcmp(a.column_sum, b.column_sum, a.padded_columns() * sizeof(int32_t)), 0);
}

void expect_right(const Made& made) {
  MatrixStore nothing;
  const Made fresh = make(nothing);
  expect_equal(made.f32.view, fresh.f32.view);
  expect_equal(made.int8.view, fresh.int8.view);
}

TEST(MatrixStore, SecondOpenReturnsThePackedArrays) {
  const TempFolder folder;
  const std::string path = folder.file("weights.packed");
  MatrixStore first = MatrixStore::open(path, "key");
  EXPECT_EQ(make(first).packed, 2u);
  EXPECT_TRUE(first.finish());
  EXPECT_FALSE(first.finish());
  MatrixStore second = MatrixStore::open(path, "key");
  const Made bound = make(second);
  EXPECT_EQ(bound.packed, 0u);
  EXPECT_EQ(bound.f32.panels.size(), 0u) << "a view owns nothing";
  expect_right(bound);
  EXPECT_FALSE(second.finish());
  EXPECT_NE(second.file(), nullptr);
  EXPECT_EQ(folder.entries(), 1u);
}

// The first start packs and then reads, the second reads; where nothing is kept one pass makes all.
TEST(MatrixStore, ReadKeptEndsWithTheFilesMatrices) {
  const TempFolder folder;
  const auto passes = [](const std::string& path) {
    std::vector<size_t> packed;
    std::shared_ptr<const PackedFile> file;  // behind the views
    Made made;
    EXPECT_TRUE(read_kept(path, "key", [&](MatrixStore& store) -> Status {
      made = make(store);
      file = store.file();
      packed.push_back(made.packed);
      return {};
    }));
    expect_right(made);
    return packed;
  };
  EXPECT_EQ(passes(folder.file("weights.packed")), (std::vector<size_t>{2, 0}));
  EXPECT_EQ(passes(folder.file("weights.packed")), (std::vector<size_t>{0}));
  EXPECT_EQ(passes(""), (std::vector<size_t>{2}));
  size_t tries = 0;
  const Status failed = read_kept(folder.file("other.packed"), "key", [&](MatrixStore&) -> Status {
    ++tries;
    return fail(Code::kDataLoss, "a tensor is missing");
  });
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().message, "a tensor is missing");
  EXPECT_EQ(tries, 1u);
}

// Passes of read_kept(), and matrices with panels in the first.
struct Passes {
  size_t with_panels = 0, all = 0;
};
Passes passes_without_written(const std::string& path) {
  Passes passes;
  std::shared_ptr<const PackedFile> file;  // behind the views
  Made made;
  StoredBytes bytes;
  const auto read = [&](MatrixStore& store) -> Status {
    made = make(store);
    bytes = store.get_bytes("c", 100, [] { return Buffer<std::byte>(100); });
    file = store.file();
    const auto given = static_cast<size_t>(made.f32.view.panels != nullptr) + (made.int8.view.panels != nullptr);
    if (passes.all++ == 0) passes.with_panels = given;
    return {};
  };
  EXPECT_TRUE(read_kept(path, "key", read, Written::kGoes));
  expect_right(made);
  EXPECT_EQ(bytes.view.size(), 100u);
  return passes;
}

TEST(MatrixStore, WrittenMatricesGoUntilTheyAreRead) {
  const TempFolder folder;
  const Passes first = passes_without_written(folder.file("weights.packed"));
  EXPECT_EQ(first.all, 2u);
  EXPECT_EQ(first.with_panels, 0u);
  const Passes second = passes_without_written(folder.file("weights.packed"));
  EXPECT_EQ(second.all, 1u);
  EXPECT_EQ(second.with_panels, 2u);
  EXPECT_EQ(passes_without_written("").with_panels, 2u) << "nothing is written";
}

// The first matrix fits the disk and has gone when the second one does not.
TEST(MatrixStore, FullDiskMakesGoneMatricesAgain) {
  const TempFolder folder;
  MatrixStore one = MatrixStore::open(folder.file("one.packed"), "key");
  one.get("a", kShape, {PanelType::kF32}, [] { return pack_f32(kShape, weight, {}); });
  ASSERT_TRUE(one.finish());
  const auto room = static_cast<rlim_t>(std::filesystem::file_size(folder.file("one.packed")));
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{.rlim_cur = room, .rlim_max = before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &small);
  const Passes passes = passes_without_written(folder.file("weights.packed"));
  ::setrlimit(RLIMIT_FSIZE, &before);
  ::signal(SIGXFSZ, handler);
  EXPECT_EQ(passes.with_panels, 1u);
  EXPECT_EQ(passes.all, 2u);
  EXPECT_EQ(folder.entries(), 1u) << "nothing but the file of one matrix";
}

// Large and small matrices lie behind each other in one run of memory, or, if asked so, in the mapped file.
TEST(MatrixStore, MatricesAreInMemoryOrInTheFile) {
  const TempFolder folder;
  const std::string path = folder.file("weights.packed");
  constexpr MatrixShape kLarge{.columns = 1024, .channels = 520};
  const auto pack = [&] { return pack_f32(kLarge, weight, {}); };
  const auto nothing = [] { return OwnedMatrix(); };
  MatrixStore first = MatrixStore::open(path, "key");
  const OwnedMatrix made = first.get("large", kLarge, {PanelType::kF32}, pack);
  make(first);
  ASSERT_TRUE(first.finish());
  MatrixStore second = MatrixStore::open(path, "key");
  const OwnedMatrix mapped = second.get("large", kLarge, {PanelType::kF32}, nothing, Place::kFile);
  const OwnedMatrix copied = second.get("large", kLarge, {PanelType::kF32}, nothing);
  EXPECT_FALSE(second.finish());
  EXPECT_EQ(mapped.view.panels, second.file()->find("large/panels")->data());
  EXPECT_NE(copied.view.panels, mapped.view.panels);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(copied.view.panels) % 64, 0u);
  expect_equal(mapped.view, made.view);
  expect_equal(copied.view, made.view);
}

TEST(MatrixStore, KeepsBytes) {
  const TempFolder folder;
  const std::string path = folder.file("weights.packed");
  const auto make_bytes = [] {
    Buffer<std::byte> bytes(100);
    bytes[99] = std::byte{7};
    return bytes;
  };
  MatrixStore first = MatrixStore::open(path, "key");
  EXPECT_EQ(first.get_bytes("table", 100, make_bytes).view[99], std::byte{7});
  ASSERT_TRUE(first.finish());
  MatrixStore second = MatrixStore::open(path, "key");
  const StoredBytes bound = second.get_bytes("table", 100, [] { return Buffer<std::byte>(); });
  ASSERT_EQ(bound.view.size(), 100u);
  EXPECT_EQ(bound.view[99], std::byte{7});
  EXPECT_EQ(bound.own.size(), 0u);
  EXPECT_EQ(second.get_bytes("table", 50, [] { return Buffer<std::byte>(50); }).view.size(), 50u) << "another size";
  EXPECT_TRUE(second.finish()) << "the file does not fit and went";
}

// Where the arrays of a packed file lie (tensor/packed_file.h), in bytes.
std::vector<Range> arrays_of(const std::string& file) {
  constexpr size_t kCountAt = 12, kIndexAt = 16, kEntryBytes = 128, kOffsetAt = 104;
  uint32_t count = 0;
  uint64_t index = 0;
  std::memcpy(&count, file.data() + kCountAt, sizeof count);
  std::memcpy(&index, file.data() + kIndexAt, sizeof index);
  std::vector<Range> arrays;
  for (size_t i = 0; i < count; ++i) {
    uint64_t place[2];  // offset, size
    std::memcpy(place, file.data() + index + i * kEntryBytes + kOffsetAt, sizeof place);
    arrays.push_back({place[0], place[0] + place[1]});
  }
  return arrays;
}

// Whatever byte is damaged: what is used is right, and the file is made again, which is demanded wherever an array
// lies.
TEST(MatrixStore, AFlippedByteIsSeen) {
  const TempFolder folder;
  const std::string path = folder.file("weights.packed");
  const auto load = [&] {
    for (bool again = true; again;) {
      MatrixStore store = MatrixStore::open(path, "key");
      expect_right(make(store));
      again = store.finish();
    }
  };
  load();
  const std::string whole = read_text(path);
  const std::vector<Range> arrays = arrays_of(whole);
  ASSERT_EQ(arrays.size(), 8u);  // a header, panels and a bias each; scales and sums of int8
  size_t inside = 0;
  const auto flip = [&](size_t at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    write_text(path, damaged);
    load();
    const std::string now = read_text(path);
    const bool in_array =
        std::any_of(arrays.begin(), arrays.end(), [&](Range array) { return at >= array.begin && at < array.end; });
    inside += in_array ? 1 : 0;
    if (in_array) {
      ASSERT_TRUE(now == whole) << "byte " << at << " of an array";
    } else {
      // Unread bytes, between the arrays and behind the key, may stay as they are.
      ASSERT_TRUE(now == whole || (now == damaged && whole[at] == 0)) << "byte " << at;
    }
  };
  for (size_t at = 0; at < whole.size(); at += 197) ASSERT_NO_FATAL_FAILURE(flip(at));
  for (const Range array : arrays) {
    ASSERT_NO_FATAL_FAILURE(flip(array.begin));
    ASSERT_NO_FATAL_FAILURE(flip(array.end - 1));
  }
  EXPECT_GT(inside, whole.size() / 197 / 2);
}

TEST(MatrixStore, ForeignFilesAreMadeAnew) {
  const TempFolder folder;
  const std::string path = folder.file("weights.packed");
  {
    MatrixStore store = MatrixStore::open(path, "key");
    make(store);
    ASSERT_TRUE(store.finish());
  }
  MatrixStore other_key = MatrixStore::open(path, "another key");
  EXPECT_EQ(make(other_key).packed, 2u);
  EXPECT_TRUE(other_key.finish());

  // Another shape under the same key: the file goes, so that the next start makes a new one.
  MatrixStore store = MatrixStore::open(path, "another key");
  const MatrixShape wider{.columns = 50, .channels = 10, .taps = 2};
  const OwnedMatrix wide = store.get("a", wider, {PanelType::kF32}, [&] { return pack_f32(wider, weight, {}); });
  EXPECT_EQ(wide.view.columns, 50u);
  EXPECT_TRUE(store.finish());
  EXPECT_EQ(folder.entries(), 0u);
}

TEST(MatrixStore, ADamagedFileIsMadeAgain) {
  const TempFolder folder;
  const std::string path = folder.file("weights.packed");
  for (const std::string& damage : {std::string("x"), std::string(5000, 'x')}) {
    MatrixStore store = MatrixStore::open(path, "key");
    make(store);
    store.finish();
    write_text(path, damage);
    MatrixStore again = MatrixStore::open(path, "key");
    const Made made = make(again);
    EXPECT_EQ(made.packed, 2u);
    expect_right(made);
    EXPECT_TRUE(again.finish());
    MatrixStore whole = MatrixStore::open(path, "key");
    EXPECT_EQ(make(whole).packed, 0u);
  }
}

TEST(MatrixStore, WhereNothingCanBeWrittenEverythingIsMade) {
  for (const std::string path : {"", "/proc/no/such/folder/weights.packed"}) {
    MatrixStore store = MatrixStore::open(path, "key");
    const Made made = make(store);
    EXPECT_EQ(made.packed, 2u);
    expect_right(made);
    EXPECT_FALSE(store.finish());
    EXPECT_EQ(store.file(), nullptr);
  }
}

TEST(MatrixStore, TwoWritersAtOnceLeaveAWholeFile) {
  const TempFolder folder;
  const std::string path = folder.file("weights.packed");
  std::thread threads[4];
  for (std::thread& thread : threads) {
    thread = std::thread([&] {
      for (int i = 0; i < 10; ++i) {
        MatrixStore store = MatrixStore::open(path, i % 2 == 0 ? "even" : "odd");
        expect_right(make(store));
        store.finish();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(folder.entries(), 1u) << "no temporary file stays";
}

}  // namespace
}  // namespace syrinx::kernels
