#include "store/archive_members.h"

#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <memory>

namespace syrinx {
namespace {

constexpr size_t kMaxEntries = 65536;
constexpr int64_t kMaxSkippedBytes = int64_t{4} << 30;  // unpacked bytes of members that nobody asked for
constexpr size_t kBlockBytes = 1 << 18;

using Reader = std::unique_ptr<archive, decltype(&archive_read_free)>;

std::string reason(archive* reader) {
  const char* const text = archive_error_string(reader);
  return text == nullptr ? "damaged" : text;
}

Status pour(archive* reader, const std::string& archive_path, const WantedMember& member,
            const std::atomic<bool>* cancel) {
  std::vector<std::byte> block(kBlockBytes);
  while (true) {
    if (cancel != nullptr && cancel->load()) return fail(Code::kCancelled, "stopped while unpacking '{}'", member.path);
    const la_ssize_t got = archive_read_data(reader, block.data(), block.size());
    if (got == 0) return {};
    if (got < 0) {
      return fail(Code::kDataLoss, "cannot unpack '{}' of '{}': {}", member.path, archive_path, reason(reader));
    }
    SYRINX_TRY_VOID(member.sink(std::span(block.data(), static_cast<size_t>(got))));
  }
}

Status take_regular(archive* reader, archive_entry* entry, const std::string& archive_path, const WantedMember& member,
                    const std::atomic<bool>* cancel) {
  if (archive_entry_filetype(entry) != AE_IFREG || archive_entry_hardlink(entry) != nullptr) {
    return fail(Code::kDataLoss, "'{}' of '{}' is not a plain file", member.path, archive_path);
  }
  return pour(reader, archive_path, member, cancel);
}

}  // namespace

Status extract_members(const std::string& archive_path, const std::vector<WantedMember>& wanted,
                       const std::atomic<bool>* cancel) {
  const Reader reader(archive_read_new(), &archive_read_free);
  archive_read_support_filter_gzip(reader.get());
  archive_read_support_format_zip_seekable(reader.get());
  archive_read_support_format_tar(reader.get());
  if (archive_read_open_filename(reader.get(), archive_path.c_str(), 1 << 16) != ARCHIVE_OK) {
    return fail(Code::kDataLoss, "cannot open the package '{}': {}", archive_path, reason(reader.get()));
  }
  std::vector<bool> found(wanted.size(), false);
  int64_t skipped_bytes = 0;
  for (size_t entries = 0;; ++entries) {
    archive_entry* entry = nullptr;
    const int status = archive_read_next_header(reader.get(), &entry);
    if (status == ARCHIVE_EOF) break;
    if (status != ARCHIVE_OK && status != ARCHIVE_WARN) {
      return fail(Code::kDataLoss, "the package '{}' is damaged: {}", archive_path, reason(reader.get()));
    }
    if (cancel != nullptr && cancel->load())
      return fail(Code::kCancelled, "stopped while unpacking '{}'", archive_path);
    const char* const path = archive_entry_pathname(entry);
    const auto match = std::find_if(wanted.begin(), wanted.end(), [path](const WantedMember& member) {
      return path != nullptr && member.path == path;
    });
    if (match == wanted.end()) {
      skipped_bytes += std::max<int64_t>(0, std::min(archive_entry_size(entry), kMaxSkippedBytes));
      if (entries >= kMaxEntries || skipped_bytes >= kMaxSkippedBytes) {
        return fail(Code::kDataLoss, "the package '{}' holds more than {} members or {} bytes", archive_path,
                    kMaxEntries, kMaxSkippedBytes);
      }
      continue;
    }
    const size_t index = static_cast<size_t>(match - wanted.begin());
    if (found[index]) return fail(Code::kDataLoss, "the package '{}' has '{}' twice", archive_path, match->path);
    found[index] = true;
    SYRINX_TRY_VOID(take_regular(reader.get(), entry, archive_path, *match, cancel));
  }
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (!found[i]) return fail(Code::kDataLoss, "the package '{}' has no member '{}'", archive_path, wanted[i].path);
  }
  return {};
}

}  // namespace syrinx
