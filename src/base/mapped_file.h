// A read-only memory mapping of a whole file.  Owns the mapping; bytes() is valid as long as the object lives.
// Thread-safe once made.  Errors: kNotFound, kIo (permission, not a regular file, out of address space).
// A file that another program shortens while it is mapped cannot be read safely by anyone: reading the missing pages is
// a SIGBUS.  So we replace model files and rewrite none in place (scoped_file.h); for those of others: watched_pages.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"

namespace syrinx {

class MappedFile {
 public:
  static Result<MappedFile> open(const std::string& path);
  // Maps the file behind an open descriptor, which stays the caller's.  `name` is used in messages.
  static Result<MappedFile> from_descriptor(int descriptor, const std::string& name);
  // Memory of the caller's that outlives the object, dressed as a file; release() then does nothing.
  static MappedFile borrow(std::span<const std::byte> bytes, const std::string& name);

  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::string& path() const { return path_; }
  // Tells the system that the pages wholly inside this range may leave memory; they are read again when touched.
  void release(size_t offset, size_t size_bytes) const;
  void release() const { release(0, size_); }

 private:
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
  bool mapped_ = false;  // ours to unmap
  std::string path_;
};

}  // namespace syrinx
