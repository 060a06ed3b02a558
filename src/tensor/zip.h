// A bounded reader of zip archives as model files use them (.pth, .npz): the central directory, zip64 included.
// Source of the facts: PKWARE APPNOTE 6.3.
//
// Sizes come from the central directory, so members written with data descriptors need nothing special.  Refused:
// encrypted members, several disks, duplicate or empty names, members that overlap or leave the file, and local headers
// that name another member.  Nothing is written to disk, so names are never used as paths.
// Does not own the bytes.  Thread-safe once made.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace syrinx {

struct ZipMember {
  std::string name;
  uint16_t method = 0;  // 0 stored, 8 deflated
  uint32_t crc32 = 0;
  uint64_t size_bytes = 0;            // uncompressed
  std::span<const std::byte> packed;  // as in the file
};

class ZipArchive {
 public:
  static constexpr size_t kMaxMembers = 65536;

  // True if the bytes begin like a zip archive.
  static bool looks_like(std::span<const std::byte> bytes);
  // `name` stands in messages.  kDataLoss, kUnsupported, kLimitExceeded.
  static Result<ZipArchive> parse(std::span<const std::byte> bytes, const std::string& name);

  const std::vector<ZipMember>& members() const { return members_; }  // sorted by name
  const ZipMember* find(std::string_view name) const;
  // The values of a stored member in place; kUnsupported for a compressed one.  The checksum is not verified.
  Result<std::span<const std::byte>> stored(const ZipMember& member) const;
  // A copy, inflated if need be, checksum verified; kLimitExceeded if larger than `max_bytes`.
  Result<std::vector<std::byte>> extract(const ZipMember& member, size_t max_bytes) const;

 private:
  std::string name_;
  std::vector<ZipMember> members_;
};

}  // namespace syrinx
