// GGUF, little endian, versions 2 and 3 (ggml's docs/gguf.md):
//
//   "GGUF" · u32 version · u64 number of tensors · u64 number of entries ·
//   per entry: string key, u32 type, its value · per tensor: string name, u32 rank, u64 dims[rank] (fastest first),
//   u32 type, u64 offset · padding · the tensors' blocks, from an aligned position on
//
// A string is u64 bytes and the bytes, an array u32 type of its elements, u64 their number and they.  The entry
// `general.alignment` says to what offsets are aligned, 32 bytes if it is not there.
//
// The reader checks everything before it hands out a span: kinds and lengths, no key and no tensor twice, whole blocks
// in agreement with the dims, offsets that are aligned, inside the file and do not overlap.  It does not own the bytes
// and takes memory for names and dims alone: arrays are read where they lie.  Thread-safe once made.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tensor/ggml_type.h"

namespace syrinx {

struct GgufTensor {
  std::string_view name;     // of the file's bytes
  std::vector<size_t> dims;  // outermost first
  GgmlType type = GgmlType::kF32;
  std::span<const std::byte> bytes;  // whole blocks, row by row, at any alignment
};

class GgufFile {
 public:
  static constexpr size_t kMaxEntries = size_t{1} << 16, kMaxTensors = size_t{1} << 16;
  static constexpr size_t kMaxKeyBytes = 65535, kMaxNameBytes = 255, kMaxDims = 4;
  static constexpr size_t kMaxAlignment = 65536;

  // `name` stands in messages.  kDataLoss; kUnsupported for other versions, byte orders and types of tensors, arrays of
  // arrays and tensors in several files; kLimitExceeded.
  static Result<GgufFile> parse(std::span<const std::byte> bytes, const std::string& name);

  uint32_t version() const { return version_; }
  // In the order of the file.
  const std::vector<GgufTensor>& tensors() const { return tensors_; }
  // Null if there is none of that name.
  const GgufTensor* find(std::string_view name) const;

  // Entries by key.  Nothing where there is none of that key; kDataLoss where it is of another kind.  An integer is one
  // of any width that is not negative; a number also an integer.
  bool has(std::string_view key) const { return find_entry(key) != nullptr; }
  Result<std::optional<uint64_t>> whole(std::string_view key) const;
  Result<std::optional<double>> number(std::string_view key) const;
  Result<std::optional<bool>> flag(std::string_view key) const;
  Result<std::optional<std::string_view>> text(std::string_view key) const;
  // Arrays, of which there is nothing to tell from empty ones.  kLimitExceeded beyond `most` elements.
  Result<std::vector<std::string_view>> texts(std::string_view key, size_t most) const;
  Result<std::vector<int64_t>> wholes(std::string_view key, size_t most) const;
  Result<std::vector<double>> numbers(std::string_view key, size_t most) const;

 private:
  // Kinds of values by their numbers in the file.
  enum Kind : uint32_t { kU8, kI8, kU16, kI16, kU32, kI32, kF32, kBool, kString, kArray, kU64, kI64, kF64, kKinds };
  struct Entry {
    std::string_view key;
    Kind kind = kU8;  // of an array that of its elements
    bool array = false;
    uint64_t count = 1;
    std::span<const std::byte> bytes;  // of the value; of an array of its elements
  };
  class Parser;

  static size_t kind_size(Kind kind);  // bytes; 0 for strings and arrays
  static double as_double(Kind kind, const std::byte* value);
  static std::optional<int64_t> as_whole(Kind kind, const std::byte* value);
  const Entry* find_entry(std::string_view key) const;
  // The entry of a key, or null; kDataLoss where it is no array or, of a single value, one.
  Result<const Entry*> entry(std::string_view key, bool array, size_t most = 1) const;
  tl::unexpected<Error> wrong_kind(std::string_view key, std::string_view wanted) const;

  std::string name_;
  uint32_t version_ = 0;
  std::vector<Entry> entries_;  // sorted by key
  std::vector<GgufTensor> tensors_;
  std::vector<uint32_t> by_name_;  // indices of tensors_, sorted by name
};

}  // namespace syrinx
