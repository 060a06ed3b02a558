// Takes named members out of a zip (a wheel) or a gzipped tar (an npm package).  Nothing is written to a path that the
// archive chooses: a member is found by its exact name and its bytes go to the caller.  libarchive is used in
// archive_members.cc alone.  Errors: kDataLoss (damaged, not there, twice there, a link, too large), kCancelled, and
// what a sink returns.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace syrinx {

struct WantedMember {
  std::string path;  // as the archive writes it
  std::function<Status(std::span<const std::byte>)> sink;
};

// One pass; sinks are called in the archive's order.  Every wanted member must be there.
Status extract_members(const std::string& archive_path, const std::vector<WantedMember>& wanted,
                       const std::atomic<bool>* cancel);

}  // namespace syrinx
