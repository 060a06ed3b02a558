#include "tensor/content_key.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "base/sha256.h"

namespace syrinx {
namespace {

std::string hash_content(const MappedFile& file) {
  constexpr size_t kChunk = size_t{8} << 20;  // read and let go, so that hashing does not fill the memory
  Sha256 hash;
  for (size_t at = 0; at < file.bytes().size(); at += kChunk) {
    hash.update(file.bytes().subspan(at, std::min(kChunk, file.bytes().size() - at)));
    file.release(at, kChunk);
  }
  return hash.hex();
}

// A stored digest is valid while this stays unchanged; empty when the path is not (or no longer) this file.  The
// inode's time counts beside the content's, which programs that copy in place set back.
std::string identity(const MappedFile& file) {
  struct stat info {};
  if (::stat(file.path().c_str(), &info) != 0 || static_cast<size_t>(info.st_size) != file.bytes().size()) return {};
  return fmt::format("{} {} {} {}.{:09} {}.{:09}", info.st_size, info.st_dev, info.st_ino, info.st_mtim.tv_sec,
                     info.st_mtim.tv_nsec, info.st_ctim.tv_sec, info.st_ctim.tv_nsec);
}

bool is_digest(const std::string& text) {
  return text.size() == 64 &&
         std::all_of(text.begin(), text.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

void write_stamp(const std::string& path, const std::string& content) {
  const std::string temporary = fmt::format("{}.{}", path, ::getpid());
  std::ofstream(temporary, std::ios::binary) << content;
  if (std::rename(temporary.c_str(), path.c_str()) != 0) std::remove(temporary.c_str());
}

}  // namespace

std::string content_key(const MappedFile& file, const std::string& cache_dir) {
  const std::string same = cache_dir.empty() ? std::string() : identity(file);
  if (same.empty()) return hash_content(file);
  char absolute[PATH_MAX];
  if (::realpath(file.path().c_str(), absolute) == nullptr) return hash_content(file);
  const std::string path_hash =
      sha256_hex(std::as_bytes(std::span<const char>(absolute, std::char_traits<char>::length(absolute))));
  const std::string stamp = fmt::format("{}/{}.stamp", cache_dir, path_hash.substr(0, 16));
  std::ifstream in(stamp, std::ios::binary);
  std::string known, digest;
  if (std::getline(in, known) && std::getline(in, digest) && known == same && is_digest(digest)) return digest;
  digest = hash_content(file);
  write_stamp(stamp, same + "\n" + digest + "\n");
  return digest;
}

std::string content_key(std::span<const MappedFile> files, const std::string& cache_dir) {
  if (files.size() == 1) return content_key(files.front(), cache_dir);
  std::string digests;
  for (const MappedFile& file : files) digests += content_key(file, cache_dir);
  return sha256_hex(std::as_bytes(std::span<const char>(digests)));
}

}  // namespace syrinx
