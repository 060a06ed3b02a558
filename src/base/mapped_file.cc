#include "base/mapped_file.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/descriptor.h"

namespace syrinx {

// A pipe without a writer is refused below rather than waited for.
Result<MappedFile> MappedFile::open(const std::string& path) {
  SYRINX_TRY(const Descriptor descriptor, Descriptor::open(path));
  return from_descriptor(descriptor.value(), path);
}

Result<MappedFile> MappedFile::from_descriptor(int descriptor, const std::string& name) {
  struct stat info {};
  if (::fstat(descriptor, &info) != 0) return fail(Code::kIo, "cannot stat '{}': {}", name, std::strerror(errno));
  if (S_ISDIR(info.st_mode)) return fail(Code::kIo, "'{}' is a folder, not a file", name);
  if (!S_ISREG(info.st_mode)) return fail(Code::kIo, "'{}' is not a regular file", name);
  MappedFile file;
  file.path_ = name;
  file.size_ = static_cast<size_t>(info.st_size);
  if (file.size_ == 0) return file;
  void* const address = ::mmap(nullptr, file.size_, PROT_READ, MAP_PRIVATE, descriptor, 0);
  if (address == MAP_FAILED) {
    file.size_ = 0;
    return fail(Code::kIo, "cannot map '{}': {}", name, std::strerror(errno));
  }
  file.data_ = static_cast<const std::byte*>(address);
  file.mapped_ = true;
  return file;
}

MappedFile MappedFile::borrow(std::span<const std::byte> bytes, const std::string& name) {
  MappedFile file;
  file.data_ = bytes.data();
  file.size_ = bytes.size();
  file.path_ = name;
  return file;
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      mapped_(std::exchange(other.mapped_, false)),
      path_(std::move(other.path_)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(mapped_, other.mapped_);
  std::swap(path_, other.path_);
  return *this;
}

MappedFile::~MappedFile() {
  if (mapped_) ::munmap(const_cast<std::byte*>(data_), size_);
}

void MappedFile::release(size_t offset, size_t size_bytes) const {
  if (!mapped_ || offset >= size_) return;
  const size_t page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const size_t stop = offset + std::min(size_bytes, size_ - offset);
  const size_t begin = (offset + page - 1) / page * page;
  // The last page of the mapping holds nothing of a neighbour's.
  const size_t end = stop == size_ ? stop : stop / page * page;
  if (begin < end) ::madvise(const_cast<std::byte*>(data_) + begin, end - begin, MADV_DONTNEED);
}

}  // namespace syrinx
