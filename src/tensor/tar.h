// A bounded reader of tar archives as model files use them (.nemo): ustar with pax and GNU long names and sizes.
// Source of the facts: POSIX.1-2017, pax, "ustar Interchange Format" and "pax Header Block"; GNU tar's manual.
//
// The members stay where they lie, 512-byte aligned.  A leading "./" is taken from names.  Refused: headers whose
// checksum is wrong, sizes that leave the file, names that are empty, absolute, stand twice or step upwards ("../"),
// links, devices and sparse files.  Nothing is written to disk, so names are never used as paths.
// Does not own the bytes.  Thread-safe once made.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace syrinx {

struct TarMember {
  std::string name;
  std::span<const std::byte> bytes;
};

class TarArchive {
 public:
  static constexpr size_t kMaxMembers = 4096, kMaxNameBytes = 1024;

  // True if the bytes begin like a tar archive of this kind.
  static bool looks_like(std::span<const std::byte> bytes);
  // `name` stands in messages.  kDataLoss, kUnsupported, kLimitExceeded.
  static Result<TarArchive> parse(std::span<const std::byte> bytes, const std::string& name);

  const std::vector<TarMember>& members() const { return members_; }  // regular files, in the archive's order
  const TarMember* find(std::string_view name) const;

 private:
  std::vector<TarMember> members_;
};

}  // namespace syrinx
