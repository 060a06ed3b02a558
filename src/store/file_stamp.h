// A cheap test of whether a file has changed since it was seen.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace syrinx {

struct FileStamp {
  uint64_t size_bytes = 0;
  int64_t mtime_ns = 0;  // since 1970
};

// Nothing if there is no regular file of that name.
std::optional<FileStamp> file_stamp(const std::string& path);

}  // namespace syrinx
