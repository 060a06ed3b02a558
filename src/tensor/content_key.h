// The SHA-256 of a mapped file, remembered in a folder of caches.  Hashing 92 MB takes 0.1 s or more, which a start
// should not pay each time: a stamp beside the caches keeps the digest with the file's size, inode and times of change
// to the nanosecond, and is believed while all of them are the same.  Anything else, a stamp that cannot be read
// included, means hashing.  Writing the stamp may fail; the digest is right all the same.
#pragma once

#include <span>
#include <string>

#include "base/mapped_file.h"

namespace syrinx {

// 64 lower-case digits.  `cache_dir` may be empty: then the content is hashed.
std::string content_key(const MappedFile& file, const std::string& cache_dir);
// The same for one file; for several, the SHA-256 of their digests in order.
std::string content_key(std::span<const MappedFile> files, const std::string& cache_dir);

}  // namespace syrinx
