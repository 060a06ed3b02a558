// NumPy arrays: one .npy, or an .npz archive of them.  Source of the facts: numpy.lib.format (versions 1.0 to 3.0).
// Little-endian numbers, booleans and texts (str and bytes); pickled objects and records are refused.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/dtype.h"
#include "tensor/zip.h"

namespace syrinx {

// One array in row-major order.  Owns its values.
struct NpyArray {
  DType dtype = DType::kF32;  // of `bytes`, unless the array holds texts
  std::vector<size_t> dims;
  std::vector<std::byte> bytes;
  bool is_text = false;
  std::vector<std::string> texts;  // UTF-8, trailing zeros dropped

  std::vector<float> f32() const { return to_f32(bytes, dtype); }
};

// `name` stands in messages.  kDataLoss, kUnsupported, kLimitExceeded (a header over 64 KiB).
Result<NpyArray> parse_npy(std::span<const std::byte> bytes, const std::string& name);

// Does not own the file's bytes; arrays are read, and inflated, one at a time.
class NpzFile {
 public:
  static constexpr size_t kMaxArrayBytes = size_t{1} << 30;

  static Result<NpzFile> parse(std::span<const std::byte> bytes, const std::string& name);
  std::vector<std::string> names() const;  // sorted, without ".npy"
  bool contains(std::string_view array) const;
  // kNotFound for an unknown array.
  Result<NpyArray> read(std::string_view array, size_t max_bytes = kMaxArrayBytes) const;

 private:
  NpzFile(ZipArchive archive, std::string name) : archive_(std::move(archive)), name_(std::move(name)) {}
  ZipArchive archive_;
  std::string name_;
};

}  // namespace syrinx
