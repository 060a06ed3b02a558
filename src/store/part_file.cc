#include "store/part_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "store/paths.h"

namespace syrinx {
namespace {

constexpr size_t kBlockBytes = 1 << 20;

std::string parent_of(const std::string& path) { return std::filesystem::path(path).parent_path().string(); }

Status io_failure(const char* what, const std::string& path, int error) {
  if (error == ENOSPC || error == EDQUOT) {
    return fail(Code::kIo, "the disk is full while writing '{}'; make room and run the same command again", path);
  }
  return fail(Code::kIo, "cannot {} '{}': {}", what, path, std::strerror(error));
}

Status write_all(int descriptor, const void* data, size_t size_bytes, const std::string& path) {
  const char* next = static_cast<const char*>(data);
  while (size_bytes > 0) {
    const ssize_t written = ::write(descriptor, next, size_bytes);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return io_failure("write", path, written == 0 ? ENOSPC : errno);
    next += written;
    size_bytes -= static_cast<size_t>(written);
  }
  return {};
}

// The rename itself must reach the disk, or a power cut could leave the old name.
void sync_folder(const std::string& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  ::fsync(descriptor);
  ::close(descriptor);
}

}  // namespace

PartFile::PartFile(int descriptor, std::string destination, uint64_t expected_bytes, std::string right_hash)
    : descriptor_(descriptor),
      destination_(std::move(destination)),
      expected_bytes_(expected_bytes),
      right_hash_(std::move(right_hash)),
      blob_(git_blob(expected_bytes)) {}

PartFile::PartFile(PartFile&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      destination_(std::move(other.destination_)),
      expected_bytes_(other.expected_bytes_),
      right_hash_(std::move(other.right_hash_)),
      size_bytes_(other.size_bytes_),
      finished_(other.finished_),
      hash_(other.hash_),
      blob_(other.blob_),
      bare_(other.bare_) {}

PartFile::~PartFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Result<PartFile> PartFile::open(const std::string& destination, uint64_t expected_bytes, const std::string& right_hash,
                                const std::atomic<bool>* cancel) {
  SYRINX_TRY_VOID(make_folders(parent_of(destination)));
  const std::string part = destination + ".part";
  const int descriptor = ::open(part.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (descriptor < 0) return tl::unexpected(io_failure("open", part, errno).error());
  PartFile file(descriptor, destination, expected_bytes, right_hash);
  struct stat info {};
  if (::fstat(descriptor, &info) != 0 || !S_ISREG(info.st_mode)) {
    return fail(Code::kIo, "'{}' is not a regular file; remove it and try again", part);
  }
  if (static_cast<uint64_t>(info.st_size) > expected_bytes) {
    SYRINX_TRY_VOID(file.restart());
  } else {
    SYRINX_TRY_VOID(file.hash_existing(cancel));
  }
  return file;
}

Status PartFile::hash_existing(const std::atomic<bool>* cancel) {
  std::vector<std::byte> block(kBlockBytes);
  while (true) {
    if (cancel != nullptr && cancel->load())
      return fail(Code::kCancelled, "stopped while checking '{}.part'", destination_);
    const ssize_t got = ::read(descriptor_, block.data(), block.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return io_failure("read", destination_ + ".part", errno);
    if (got == 0) return {};
    update_hashes(std::span(block).first(static_cast<size_t>(got)));
    size_bytes_ += static_cast<uint64_t>(got);
  }
}

void PartFile::update_hashes(std::span<const std::byte> bytes) {
  hash_.update(bytes);
  if (!is_git_blob()) return;
  blob_.update(bytes);
  bare_.update(bytes);
}

Status PartFile::append(std::span<const std::byte> bytes) {
  if (bytes.size() > expected_bytes_ - size_bytes_) {
    return fail(Code::kDataLoss, "'{}' is longer than the {} bytes it must have", destination_, expected_bytes_);
  }
  auto written = write_all(descriptor_, bytes.data(), bytes.size(), destination_ + ".part");
  if (!written) {
    // Part of the block may have landed: cut back to what the hash has seen, so that a later fetch can go on from it.
    if (::ftruncate(descriptor_, static_cast<off_t>(size_bytes_)) == 0) {
      ::lseek(descriptor_, static_cast<off_t>(size_bytes_), SEEK_SET);
    }
    return written;
  }
  update_hashes(bytes);
  size_bytes_ += bytes.size();
  return {};
}

Status PartFile::restart() {
  if (::ftruncate(descriptor_, 0) != 0 || ::lseek(descriptor_, 0, SEEK_SET) < 0) {
    return io_failure("empty", destination_ + ".part", errno);
  }
  hash_ = Sha256();
  blob_ = git_blob(expected_bytes_);
  bare_ = Sha1();
  size_bytes_ = 0;
  return {};
}

Status PartFile::finish() {
  if (!complete()) {
    return fail(Code::kDataLoss, "'{}' has {} bytes of {}", destination_, size_bytes_, expected_bytes_);
  }
  const std::string found = is_git_blob() ? blob_.hex() : hash_.hex();
  const bool right = found == right_hash_ || (is_git_blob() && bare_.hex() == right_hash_);
  if (has_known_hash() && !right) {
    SYRINX_TRY_VOID(restart());
    return fail(Code::kDataLoss, "'{}' has the wrong content ({} {}, must be {}); it was thrown away", destination_,
                is_git_blob() ? "git blob" : "sha256", found, right_hash_);
  }
  const std::string part = destination_ + ".part";
  if (::fsync(descriptor_) != 0) return io_failure("sync", part, errno);
  if (::rename(part.c_str(), destination_.c_str()) != 0) return io_failure("rename", part, errno);
  sync_folder(parent_of(destination_));
  finished_ = true;
  return {};
}

namespace {

// Hash has update(span) and hex().
template <class Hash>
Result<std::string> hash_of_file(Hash hash, const std::string& path, const std::atomic<bool>* cancel) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rbe"), std::fclose);
  if (file == nullptr) return fail(Code::kIo, "cannot open '{}': {}", path, std::strerror(errno));
  std::vector<std::byte> block(kBlockBytes);
  size_t got = 0;
  while ((got = std::fread(block.data(), 1, block.size(), file.get())) > 0) {
    hash.update(std::span<const std::byte>(block).first(got));
    if (cancel != nullptr && cancel->load()) return fail(Code::kCancelled, "stopped while checking '{}'", path);
  }
  if (std::ferror(file.get()) != 0) return fail(Code::kIo, "cannot read '{}'", path);
  return hash.hex();
}

}  // namespace

Result<std::string> sha256_of_file(const std::string& path, const std::atomic<bool>* cancel) {
  return hash_of_file(Sha256(), path, cancel);
}

Result<std::string> hash_like(const std::string& right, const std::string& path, const std::atomic<bool>* cancel) {
  if (right.size() != kGitBlobDigits) return sha256_of_file(path, cancel);
  std::error_code error;
  const uint64_t size = std::filesystem::file_size(path, error);
  if (error) return fail(Code::kIo, "cannot read '{}': {}", path, error.message());
  SYRINX_TRY(std::string git, hash_of_file(git_blob(size), path, cancel));
  if (git == right) return git;
  SYRINX_TRY(const std::string bare, hash_of_file(Sha1(), path, cancel));
  return bare == right ? bare : git;
}

}  // namespace syrinx
