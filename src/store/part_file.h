// A file that is being fetched.  Its bytes gather in `<destination>.part`; only when size and hash are right is it
// synced and renamed, so that the destination is either absent or whole.  What a broken fetch left in the .part is
// picked up by the next one.  One thread.  Errors: kIo (disk full, permission), kDataLoss (wrong bytes).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"
#include "base/sha1.h"
#include "base/sha256.h"

namespace syrinx {

inline constexpr size_t kGitBlobDigits = 40;

class PartFile {
 public:
  // Creates missing folders and hashes what an earlier fetch left; a .part that is too long is emptied.  Where nobody
  // knows the content's hash, `right_hash` is empty: then the size alone is checked, and hash() says what came.  Of 64
  // digits it is a SHA-256, of 40 git's name of the content, or its bare SHA-1, by which mirrors tag (sha1.h).
  // A set `cancel` flag (may be null) ends the hashing with kCancelled.
  static Result<PartFile> open(const std::string& destination, uint64_t expected_bytes, const std::string& right_hash,
                               const std::atomic<bool>* cancel = nullptr);

  PartFile(PartFile&& other) noexcept;
  PartFile& operator=(PartFile&& other) = delete;
  PartFile(const PartFile&) = delete;
  ~PartFile();  // closes; the .part stays

  uint64_t size_bytes() const { return size_bytes_; }
  uint64_t expected_bytes() const { return expected_bytes_; }
  const std::string& destination() const { return destination_; }
  bool complete() const { return size_bytes_ == expected_bytes_; }
  bool finished() const { return finished_; }
  bool has_known_hash() const { return !right_hash_.empty(); }
  std::string hash() const { return hash_.hex(); }  // SHA-256 of all bytes so far

  // More bytes than expected are kDataLoss and nothing is written.
  Status append(std::span<const std::byte> bytes);
  Status restart();  // empties the .part
  // Checks size and hash, syncs, renames.  On a wrong hash the .part is emptied, since nothing in it can be trusted.
  Status finish();

 private:
  PartFile(int descriptor, std::string destination, uint64_t expected_bytes, std::string right_hash);
  bool is_git_blob() const { return right_hash_.size() == kGitBlobDigits; }
  void update_hashes(std::span<const std::byte> bytes);
  Status hash_existing(const std::atomic<bool>* cancel);

  int descriptor_ = -1;
  std::string destination_;
  uint64_t expected_bytes_ = 0;
  std::string right_hash_;
  uint64_t size_bytes_ = 0;
  bool finished_ = false;
  Sha256 hash_;
  Sha1 blob_, bare_;  // where is_git_blob()
};

// Hash of a file, read in blocks; a set `cancel` flag (may be null) ends it with kCancelled.
Result<std::string> sha256_of_file(const std::string& path, const std::atomic<bool>* cancel);
// Its hash of the kind that `right` is, as in PartFile::open(): `right` if that is its content's.
Result<std::string> hash_like(const std::string& right, const std::string& path, const std::atomic<bool>* cancel);

}  // namespace syrinx
