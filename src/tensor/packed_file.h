// A file of named arrays that are mapped and used in place: the packed form of a model's weights, ready for the
// kernels. Layout: a header (magic, version, key), an index with a checksum, then 64-byte aligned arrays.  The key says
// what the arrays were made from (content hash, precision, layout version); a file with another key, a damaged index or
// a wrong length is refused and simply made again.  Written to a temporary name and renamed, so two processes at once
// are safe.
#pragma once

#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/mapped_file.h"
#include "base/result.h"

namespace syrinx {

inline constexpr size_t kMaxPackedArrays = 1 << 16;

class PackedFile {
 public:
  // kDataLoss when the file is not whole or not made from `key`.
  static Result<PackedFile> open(MappedFile file, std::string_view key);
  // kDataLoss when there is no such array, or its size is no multiple of the element.
  Result<std::span<const std::byte>> find(std::string_view name) const;
  template <class T>
  Result<std::span<const T>> array(std::string_view name) const {
    SYRINX_TRY(const std::span<const std::byte> bytes, find(name));
    if (bytes.size() % sizeof(T) != 0) return fail(Code::kDataLoss, "packed array '{}' has an odd size", name);
    return std::span<const T>(reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T));
  }
  size_t size_bytes() const { return file_.bytes().size(); }
  // Lets the pages of the arrays that were written before `name` leave memory; they come back when read.
  void release_before(std::string_view name) const;
  // The same for the pages wholly inside an array that find() gave.
  void release(std::span<const std::byte> array) const;

 private:
  MappedFile file_;
  std::unordered_map<std::string, std::span<const std::byte>> arrays_;
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
  };
  int descriptor_ = -1;
  std::string path_, temporary_, key_;
  std::vector<Entry> entries_;
  size_t end_ = 0;
};

}  // namespace syrinx
