#include "store/hub_pull.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "store/catalogue.h"

namespace syrinx {
namespace {

constexpr size_t kBlockBytes = 1 << 20;

Status copy_into(const std::string& path, PartFile& part, const std::atomic<bool>* cancel) {
  SYRINX_TRY_VOID(part.restart());
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rbe"), std::fclose);
  if (file == nullptr) return fail(Code::kIo, "cannot open '{}': {}", path, std::strerror(errno));
  std::vector<std::byte> block(kBlockBytes);
  size_t got = 0;
  while ((got = std::fread(block.data(), 1, block.size(), file.get())) > 0) {
    if (cancel != nullptr && cancel->load()) return fail(Code::kCancelled, "stopped while copying '{}'", path);
    SYRINX_TRY_VOID(part.append(std::span(block).first(got)));
  }
  if (std::ferror(file.get()) != 0) return fail(Code::kIo, "cannot read '{}'", path);
  return part.finish();
}

}  // namespace

Result<HubFile> locate_hub_file(const CheckpointReference& reference, const HubSettings& settings,
                                const std::string& hint, Downloader& downloader, const std::atomic<bool>* cancel) {
  HubFile file;
  file.cached = find_in_caches(reference, settings);
  std::error_code error;
  const uint64_t size = file.cached.empty() ? 0 : std::filesystem::file_size(file.cached, error);
  const std::string right = cached_hash(file.cached);
  const bool git = right.size() == kGitBlobDigits;
  (git ? file.git_blob : file.sha256) = right;
  bool whole = !error && size > 0;
  if (whole && !right.empty()) {
    const auto found = hash_like(right, file.cached, cancel);
    if (!found && found.error().code == Code::kCancelled) return tl::unexpected(found.error());
    whole = found == right;
  }
  if (whole) {
    file.size_bytes = size;
    return file;
  }
  const std::filesystem::path blob = std::filesystem::weakly_canonical(std::exchange(file.cached, {}), error);
  if (settings.offline && !blob.empty())
    return fail(Code::kDataLoss,
                "'{}', which the hub's tools keep, is damaged, and the network is switched off ({}); remove it and run "
                "this again with the network",
                blob.string(), settings.offline_by);
  if (settings.offline)
    return fail(Code::kUnavailable, "'{}' is not on this disk and the network is switched off ({})", reference.text,
                settings.offline_by);
  SYRINX_TRY(file.remote, ask_server(reference, settings, kMaxModelFileBytes, hint, downloader));
  file.size_bytes = file.remote.size_bytes;
  file.sha256 = file.remote.sha256;
  file.git_blob = file.remote.git_blob;
  return file;
}

Status fetch_hub_file(const HubFile& file, PartFile& part, Downloader& downloader, const std::atomic<bool>* cancel) {
  if (!file.cached.empty()) return copy_into(file.cached, part, cancel);
  // Without a hash an old part cannot be matched with this file.
  if (file.right_hash().empty()) SYRINX_TRY_VOID(part.restart());
  return downloader.fetch(file.remote.address, part);
}

}  // namespace syrinx
