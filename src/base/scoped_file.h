// An output file that appears whole or not at all: written beside its target under a hidden temporary name, moved over
// the target by commit(), removed when the object dies uncommitted.  A target that is a device, pipe or socket is
// written directly, since it cannot be replaced.  A target that is a symbolic link stays one: what it points to is
// replaced.  Owns its descriptor.  One thread at a time.  Errors: kIo with the path, the system's reason, the remedy;
// kCancelled when a signal (signals.h) interrupted a call that would have blocked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace syrinx {

class ScopedFile {
 public:
  // `mode` is that of a new file, less the process's umask.
  static Result<ScopedFile> create(const std::string& target, unsigned mode = 0666);

  ScopedFile() = default;
  ScopedFile(ScopedFile&& other) noexcept;
  ScopedFile& operator=(ScopedFile&& other) noexcept;
  ScopedFile(const ScopedFile&) = delete;
  ScopedFile& operator=(const ScopedFile&) = delete;
  ~ScopedFile();

  // Appends all of `bytes`.  After an error the file cannot be committed any more.
  Status write(std::span<const std::byte> bytes);
  Status write(std::string_view text) { return write(std::as_bytes(std::span(text.data(), text.size()))); }
  // Overwrites bytes already written; only when seekable().
  Status write_at(uint64_t offset, std::span<const std::byte> bytes);
  bool seekable() const { return seekable_; }
  uint64_t size_bytes() const { return size_bytes_; }  // written so far

  // Makes the content durable and gives it its name.  Nothing can be written afterwards.
  Status commit();

  const std::string& target() const { return target_; }
  int descriptor() const { return descriptor_; }  // for a library that writes by itself; stays ours

 private:
  Status failed(const char* doing, int error);
  void discard() noexcept;

  std::string target_;
  std::string destination_;  // target_ with symbolic links resolved
  std::string temporary_;    // empty when the target is written directly, and after commit()
  int descriptor_ = -1;
  uint64_t size_bytes_ = 0;
  bool seekable_ = false;
  bool broken_ = false;
};

}  // namespace syrinx
