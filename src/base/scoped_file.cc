#include "base/scoped_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/signals.h"

namespace syrinx {
namespace {

namespace fs = std::filesystem;

const char* remedy(int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT: return "; make room or choose another place";
    case EACCES:
    case EPERM:
    case EROFS: return "; choose a place that you may write to";
    case EPIPE: return "; the reader has gone away";
    case ENAMETOOLONG: return "; choose a shorter name";
    case ENOTDIR: return "; a part of the path is not a folder";
    default: return "";
  }
}

tl::unexpected<Error> cannot_write(const std::string& path, int error) {
  if (error == EINTR) return fail(Code::kCancelled, "stopped while opening '{}'", path);
  return fail(Code::kIo, "cannot write '{}': {}{}", path, std::strerror(error), remedy(error));
}

int open_retrying(const char* path, int flags, mode_t mode) {
  int descriptor = -1;
  do {
    descriptor = ::open(path, flags | O_CLOEXEC, mode);
  } while (descriptor < 0 && errno == EINTR && !cancel_requested());
  return descriptor;
}

// Distinct within the process by the count and between processes by the id; the time guards against a left-over file.
std::string temporary_name(const fs::path& destination) {
  static std::atomic<uint32_t> count{0};
  const auto ticks = std::chrono::steady_clock::now().time_since_epoch().count();
  const auto name = fmt::format(".syrinx-{}-{}-{:x}.part", ::getpid(), count.fetch_add(1), ticks & 0xffffff);
  return (destination.parent_path() / name).string();
}

void sync_folder(const std::string& file) {
  const fs::path parent = fs::path(file).parent_path();
  const int folder = open_retrying(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_DIRECTORY, 0);
  if (folder < 0) return;
  ::fsync(folder);
  ::close(folder);
}

}  // namespace

Result<ScopedFile> ScopedFile::create(const std::string& target, unsigned mode) {
  if (target.empty()) return fail(Code::kInvalidArgument, "the name of the output file is empty");
  ScopedFile file;
  file.target_ = target;
  std::error_code ignored;
  const fs::path resolved = fs::is_symlink(target, ignored) ? fs::weakly_canonical(target, ignored) : fs::path(target);
  file.destination_ = resolved.empty() ? target : resolved.string();

  struct stat info {};
  const bool exists = ::stat(file.destination_.c_str(), &info) == 0;
  if (!exists && errno != ENOENT) return cannot_write(target, errno);
  if (exists && S_ISDIR(info.st_mode)) {
    return fail(Code::kIo, "cannot write '{}': it is a folder; add a file name", target);
  }
  if (exists && !S_ISREG(info.st_mode)) {
    file.descriptor_ = open_retrying(file.destination_.c_str(), O_WRONLY | O_NOCTTY, 0);
    if (file.descriptor_ < 0) return cannot_write(target, errno);
    return file;
  }
  // rename() would replace a read-only file without asking.
  if (exists && ::access(file.destination_.c_str(), W_OK) != 0) return cannot_write(target, errno);
  const fs::path parent = fs::path(file.destination_).parent_path();
  if (!parent.empty() && !fs::is_directory(parent, ignored)) {
    return fail(Code::kIo, "cannot write '{}': there is no folder '{}'; make it first", target, parent.string());
  }
  std::string temporary = temporary_name(file.destination_);
  file.descriptor_ = open_retrying(temporary.c_str(), O_RDWR | O_CREAT | O_EXCL, mode);
  if (file.descriptor_ < 0) return cannot_write(target, errno);
  file.temporary_ = std::move(temporary);
  if (exists) (void)::fchmod(file.descriptor_, info.st_mode & 07777);  // best effort: a foreign owner may forbid it
  file.seekable_ = true;
  return file;
}

ScopedFile::ScopedFile(ScopedFile&& other) noexcept { *this = std::move(other); }

ScopedFile& ScopedFile::operator=(ScopedFile&& other) noexcept {
  if (this == &other) return *this;
  discard();
  target_ = std::move(other.target_);
  destination_ = std::move(other.destination_);
  temporary_ = std::exchange(other.temporary_, {});
  descriptor_ = std::exchange(other.descriptor_, -1);
  size_bytes_ = std::exchange(other.size_bytes_, 0);
  seekable_ = std::exchange(other.seekable_, false);
  broken_ = std::exchange(other.broken_, false);
  return *this;
}

ScopedFile::~ScopedFile() { discard(); }

void ScopedFile::discard() noexcept {
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  temporary_.clear();
}

Status ScopedFile::failed(const char* doing, int error) {
  broken_ = true;
  if (error == EINTR) return fail(Code::kCancelled, "stopped while writing '{}'", target_);
  return fail(Code::kIo, "cannot {} '{}': {}{}", doing, target_, std::strerror(error), remedy(error));
}

Status ScopedFile::write(std::span<const std::byte> bytes) {
  if (descriptor_ < 0 || broken_) {
    return fail(Code::kIo, "cannot write '{}': it is closed or an earlier write failed", target_);
  }
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR && !cancel_requested()) continue;
      return failed("write", errno);
    }
    size_bytes_ += static_cast<uint64_t>(written);
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return {};
}

Status ScopedFile::write_at(uint64_t offset, std::span<const std::byte> bytes) {
  if (!seekable_ || descriptor_ < 0 || broken_) {
    return fail(Code::kIo, "cannot write '{}' out of order: it is not a plain open file", target_);
  }
  if (offset > size_bytes_ || bytes.size() > size_bytes_ - offset) {
    return fail(Code::kInternal, "write of {} bytes at {}, past the {} of '{}'", bytes.size(), offset, size_bytes_,
                target_);
  }
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0) {
      if (errno == EINTR && !cancel_requested()) continue;
      return failed("write", errno);
    }
    offset += static_cast<uint64_t>(written);
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return {};
}

Status ScopedFile::commit() {
  if (descriptor_ < 0 || broken_) return fail(Code::kIo, "cannot finish '{}': an earlier write failed", target_);
  if (!temporary_.empty() && ::fsync(descriptor_) != 0) return failed("finish", errno);
  // close() is where some network file systems tell of a full disk.
  if (::close(std::exchange(descriptor_, -1)) != 0 && errno != EINTR) return failed("finish", errno);
  if (temporary_.empty()) return {};
  if (::rename(temporary_.c_str(), destination_.c_str()) != 0) return failed("finish", errno);
  temporary_.clear();
  sync_folder(destination_);
  return {};
}

}  // namespace syrinx
