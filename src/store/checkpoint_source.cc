#include "store/checkpoint_source.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>

#include "base/scoped_file.h"
#include "base/sha256.h"
#include "store/file_stamp.h"
#include "store/http_headers.h"
#include "store/model_lock.h"
#include "store/part_file.h"

namespace syrinx {
namespace {

namespace fs = std::filesystem;
using Kind = CheckpointReference::Kind;

constexpr uint64_t kSpareBytes = 16 << 20;  // left free on the disk
constexpr size_t kMaxReceiptBytes = 16384;

std::string hash_of(const std::string& text) { return sha256_hex(std::as_bytes(std::span(text))); }

std::string read_small(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(kMaxReceiptBytes, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  return text;
}

Status write_small(const std::string& path, const std::string& text) {
  SYRINX_TRY_VOID(make_folders(fs::path(path).parent_path().string()));
  SYRINX_TRY(ScopedFile file, ScopedFile::create(path));
  SYRINX_TRY_VOID(file.write(text));
  return file.commit();
}

}  // namespace

// Record of a file in the store, one line each.
struct CheckpointSource::Receipt {
  std::string path;  // below <data>/fetched
  std::string sha256;
  FileStamp stamp;

  std::string text() const {
    return fmt::format("syrinx-file 1\n{}\n{}\n{}\n{}\n", sha256, stamp.size_bytes, stamp.mtime_ns, path);
  }
  // Nothing for a damaged one: the file is then fetched anew.
  static std::optional<Receipt> parse(std::string_view text) {
    std::string_view lines[5];
    for (std::string_view& line : lines) {
      const size_t end = text.find('\n');
      if (end == std::string_view::npos) return std::nullopt;
      line = text.substr(0, end);
      text.remove_prefix(end + 1);
    }
    const auto size = header_number(lines[2]), mtime = header_number(lines[3]);
    const bool whole = lines[0] == "syrinx-file 1" && lines[1].size() == 64 && size && mtime && text.empty();
    const bool below = !lines[4].starts_with('/') && fmt::format("/{}/", lines[4]).find("/../") == std::string::npos;
    if (!whole || !below) return std::nullopt;
    return Receipt{std::string(lines[4]), std::string(lines[1]), {*size, static_cast<int64_t>(*mtime)}};
  }
};

CheckpointSource::CheckpointSource(UserPaths paths, HubSettings hub, SourceOptions options)
    : paths_(std::move(paths)), hub_(std::move(hub)), options_(std::move(options)) {}

Result<CheckpointSource> CheckpointSource::open(SourceOptions options) {
  SYRINX_TRY(auto paths, user_paths());
  SYRINX_TRY(auto hub, HubSettings::from_environment());
  return CheckpointSource(std::move(paths), std::move(hub), std::move(options));
}

void CheckpointSource::report(PullEvent::Kind kind, const std::string& name, const std::string& text,
                              uint64_t done_bytes, uint64_t total_bytes) const {
  if (!options_.on_event) return;
  PullEvent event;
  event.kind = kind;
  event.model = name;
  event.text = text;
  event.done_bytes = done_bytes;
  event.total_bytes = total_bytes;
  options_.on_event(event);
}

std::string CheckpointSource::receipt_path(const CheckpointReference& reference) const {
  // The same name on another hub may mean another file.
  const std::string hub = reference.kind == Kind::kHub ? hub_.endpoint + " " : std::string();
  return paths_.data + "/fetched/receipts/" + hash_of(hub + reference.text);
}

std::string CheckpointSource::destination(const CheckpointReference& reference, const RemoteFile& remote) const {
  if (reference.kind == Kind::kUrl) return "url/" + hash_of(reference.text) + url_suffix(reference.text);
  return fmt::format("hub/{}/{}/{}", reference.repository, remote.commit, reference.path);
}

// `stamp` is older than the hash: what is written to the file meanwhile shows.
Status CheckpointSource::write_receipt(const CheckpointReference& reference, const std::string& path,
                                       const std::string& sha256, const std::optional<FileStamp>& stamp) const {
  if (!stamp) return fail(Code::kIo, "'{}/fetched/{}' vanished while it was fetched", paths_.data, path);
  return write_small(receipt_path(reference), Receipt{path, sha256, *stamp}.text());
}

Result<std::string> CheckpointSource::find_receipt(const CheckpointReference& reference, bool verify) const {
  const auto absent = fail(Code::kNotFound, "'{}' is not on this disk", reference.text);
  const auto receipt = Receipt::parse(read_small(receipt_path(reference)));
  if (!receipt) return absent;
  const std::string path = paths_.data + "/fetched/" + receipt->path;
  const auto stamp = file_stamp(path);
  if (!stamp || stamp->size_bytes != receipt->stamp.size_bytes) return absent;
  if (!verify && stamp->mtime_ns == receipt->stamp.mtime_ns) return path;
  SYRINX_TRY(const std::string sha256, sha256_of_file(path, options_.cancel));
  if (sha256 == receipt->sha256) {
    // Touched, but the same: not to be read again.  Where the receipt cannot be written, it is.
    if (stamp->mtime_ns != receipt->stamp.mtime_ns) (void)write_receipt(reference, receipt->path, sha256, stamp);
    return path;
  }
  report(PullEvent::Kind::kNotice, reference.text, fmt::format("'{}' is damaged", path));
  return absent;
}

Result<std::string> CheckpointSource::find(const CheckpointReference& reference) const {
  if (reference.kind == Kind::kPath) {
    std::error_code error;
    if (fs::exists(reference.path, error)) return reference.path;
    return fail(Code::kNotFound, "there is no file or folder '{}'", reference.path);
  }
  std::string cached = find_in_caches(reference, hub_);
  if (!cached.empty()) return cached;
  return find_receipt(reference, false);
}

Result<std::string> CheckpointSource::get(const std::string& reference, const GetOptions& options) {
  SYRINX_TRY(const CheckpointReference parsed, parse_reference(reference));
  return get(parsed, options);
}

Result<std::string> CheckpointSource::get(const CheckpointReference& reference, const GetOptions& options) {
  auto found = find(reference);
  if (reference.kind == Kind::kPath) return found;
  const bool ours = found && found->starts_with(paths_.data + "/fetched/");
  if (options.verify && ours) found = find_receipt(reference, true);
  if (options.verify && found && !ours) SYRINX_TRY_VOID(verify_cached(*found));
  if (found || found.error().code != Code::kNotFound) return found;
  if (options_.offline || hub_.offline)
    return fail(Code::kUnavailable, "'{}' is not on this disk and the network is switched off ({})", reference.text,
                options_.offline ? "--offline" : "HF_HUB_OFFLINE");
  return fetch(reference, options);
}

// The caches of other tools are only read, so a damaged file of theirs is the user's to remove.
Status CheckpointSource::verify_cached(const std::string& path) const {
  const std::string right = cached_hash(path);
  if (right.empty()) return {};
  const bool git = right.size() == kGitBlobDigits;
  SYRINX_TRY(const std::string found, hash_like(right, path, options_.cancel));
  if (found == right) return {};
  std::error_code error;
  const fs::path blob = fs::weakly_canonical(path, error);
  return fail(Code::kDataLoss,
              "'{}', which the hub's tools keep, is damaged ({} {}, must be {}); remove it and run this again",
              error ? path : blob.string(), git ? "git blob" : "sha256", found, right);
}

Result<std::string> CheckpointSource::fetch(const CheckpointReference& reference, const GetOptions& options) {
  DownloadOptions patience = options_.download;
  patience.cancel = options_.cancel;
  patience.on_progress = nullptr;
  patience.on_notice = [&](const std::string& text) { report(PullEvent::Kind::kNotice, reference.text, text); };
  Downloader downloader(patience);
  SYRINX_TRY(const RemoteFile remote, ask_server(reference, hub_, options.max_bytes, options.hint, downloader));
  const std::string path = destination(reference, remote);
  SYRINX_TRY(const auto lock, ModelLock::acquire(paths_.data + "/locks/fetched/" + hash_of(path), options_.cancel,
                                                 [&] { report(PullEvent::Kind::kWaiting, reference.text, {}); }));
  // Another process, or another name for the same commit, may have brought it meanwhile.
  auto found = find_receipt(reference, options.verify);
  if (found) return found;
  return fetch_locked(reference, remote, path);
}

Result<std::string> CheckpointSource::fetch_locked(const CheckpointReference& reference, const RemoteFile& remote,
                                                   const std::string& path) {
  const std::string whole = paths_.data + "/fetched/" + path;
  if (const auto stamp = file_stamp(whole); stamp && !remote.sha256.empty()) {
    SYRINX_TRY(const std::string sha256, sha256_of_file(whole, options_.cancel));
    if (sha256 == remote.sha256) {
      SYRINX_TRY_VOID(write_receipt(reference, path, sha256, stamp));
      return whole;
    }
  }
  // Without a hash, a part is gone on with only if the server still has the version of which it is a part.
  const std::string tag_path = whole + ".part.tag";
  const std::string tag = fmt::format("{} {}\n", remote.size_bytes, remote.address.validator);
  const std::string& right_hash = remote.sha256.empty() ? remote.git_blob : remote.sha256;
  SYRINX_TRY(PartFile part, PartFile::open(whole, remote.size_bytes, right_hash, options_.cancel));
  if (right_hash.empty() && (remote.address.validator.empty() || read_small(tag_path) != tag)) {
    SYRINX_TRY_VOID(part.restart());
    if (!remote.address.validator.empty()) SYRINX_TRY_VOID(write_small(tag_path, tag));
  }
  SYRINX_TRY(const uint64_t free, free_bytes(paths_.data));
  const uint64_t missing = remote.size_bytes - part.size_bytes();
  if (missing + kSpareBytes > free)
    return fail(
        Code::kIo,
        "'{}' needs {:.0f} MB and '{}' has {:.0f} MB free; make room or set SYRINX_HOME to a folder on another disk",
        reference.text, static_cast<double>(missing + kSpareBytes) / 1e6, paths_.data, static_cast<double>(free) / 1e6);
  report(PullEvent::Kind::kSource, reference.text, reference.text, part.size_bytes(), remote.size_bytes);
  DownloadOptions patience = options_.download;
  patience.cancel = options_.cancel;
  patience.on_notice = [&](const std::string& text) { report(PullEvent::Kind::kNotice, reference.text, text); };
  patience.on_progress = [&](uint64_t done_bytes) {
    report(PullEvent::Kind::kProgress, reference.text, {}, done_bytes, remote.size_bytes);
  };
  patience.on_other_version = [&] { std::remove(tag_path.c_str()); };  // a later run could not tell: from the start
  Downloader downloader(patience);
  const Status fetched = downloader.fetch(remote.address, part);
  if (!fetched) {
    const Error& error = fetched.error();
    if (error.code == Code::kIo || error.code == Code::kCancelled) return tl::unexpected(error);
    return fail(error.code, "cannot fetch '{}': {}", reference.text, error.message);
  }
  SYRINX_TRY_VOID(write_receipt(reference, path, part.hash(), file_stamp(whole)));
  std::remove(tag_path.c_str());
  report(PullEvent::Kind::kDone, reference.text, {}, remote.size_bytes, remote.size_bytes);
  return whole;
}

}  // namespace syrinx
