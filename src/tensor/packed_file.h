// A file of named arrays, the packed form of a model's weights, ready for the kernels: mapped and used in place, or
// copied into memory where they are streamed faster.  Layout: a header (magic, version, key), 64-byte aligned arrays,
// an index with a checksum of each and one of itself.  The key says what the arrays were made from (content hash,
// precision, layout version); a file with another key, a damaged index or a wrong length is refused and simply made
// again, and so is one whose arrays turn out damaged when they are checked or copied.  Written to a temporary name and
// renamed, so two processes at once are safe.
#pragma once

#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/mapped_file.h"
#include "base/result.h"
#include "tensor/buffer.h"
#include "tensor/kept_pages.h"

namespace syrinx {

inline constexpr size_t kMaxPackedArrays = 1 << 16;

class PackedFile {
 public:
  // kDataLoss when the file is not whole or not made from `key`.  Looks at header and index alone.
  static Result<PackedFile> open(MappedFile file, std::string_view key);
  // As it lies in the file, unchecked.  kDataLoss when there is no such array, or its size is not a multiple of the
  // element.
  Result<std::span<const std::byte>> find(std::string_view name) const;
  template <class T>
  Result<std::span<const T>> array(std::string_view name) const {
    SYRINX_TRY(const std::span<const std::byte> bytes, find(name));
    if (bytes.size() % sizeof(T) != 0) return fail(Code::kDataLoss, "packed array '{}' has an odd size", name);
    return std::span<const T>(reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T));
  }
  // kDataLoss when an array is not what was written.  check_all() reads in the order of the file, and lets its pages
  // leave memory meanwhile.
  Status check(std::string_view name) const;
  Status check_all() const;
  // A checked copy in one run of memory, on huge pages where the system has them, in the order of the calls; lives as
  // long as this.  The file's pages leave memory meanwhile.
  Result<std::span<const std::byte>> copy(std::string_view name);
  // After the last copy: what the run has too much goes back, and its pages are among the kept ones (kept_pages.h).
  void trim_copies();
  size_t size_bytes() const { return file_.bytes().size(); }
  // Lets the pages of the arrays that were written before `name` leave memory; they come back when read.
  void release_before(std::string_view name) const;
  // The same for all pages.
  void release() const { file_.release(); }

 private:
  struct Array {
    std::span<const std::byte> bytes;
    uint64_t checksum = 0;
  };
  Result<Array> entry(std::string_view name) const;
  tl::unexpected<Error> damaged(std::string_view name) const;

  MappedFile file_;
  std::unordered_map<std::string, Array> arrays_;
  Buffer<std::byte> copies_;  // room for all arrays, in memory as far as it is used
  size_t copied_ = 0;         // bytes
  KeptPages kept_;            // of copies_, which outlives it
};

class PackedFileWriter {
 public:
  // An empty path writes to memory that no file system sees.
  static Result<PackedFileWriter> create(const std::string& path, std::string_view key);
  PackedFileWriter(PackedFileWriter&& other) noexcept;
  PackedFileWriter& operator=(PackedFileWriter&&) = delete;
  ~PackedFileWriter();  // removes the temporary file of an unfinished write

  Status add(std::string_view name, std::span<const std::byte> bytes);
  template <class T>
  Status add_array(std::string_view name, std::span<const T> values) {
    return add(name, std::as_bytes(values));
  }
  // Writes the index, moves the file to its name and maps it.
  Result<PackedFile> finish();

 private:
  PackedFileWriter() = default;
  Status write_at(size_t offset, std::span<const std::byte> bytes) const;

  struct Entry {
    std::string name;
    size_t offset = 0;
    size_t size_bytes = 0;
    uint64_t checksum = 0;
  };
  int descriptor_ = -1;
  std::string path_, temporary_, key_;
  std::vector<Entry> entries_;
  size_t end_ = 0;
};

}  // namespace syrinx
