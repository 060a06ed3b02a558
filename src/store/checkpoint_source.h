// From the name of a checkpoint's file (checkpoint_reference.h) to a file on this disk.  A path is looked at and given
// back.  What lies elsewhere is looked for in the caches of the hub's and the maker's tools (hub.h), then in our own
// store, and is fetched into the store when it is nowhere: resumed after a break, whole or absent, checked against the
// hub's SHA-256 where it tells one.
//
//   <data>/fetched/hub/OWNER/REPOSITORY/COMMIT/PATH    a commit's files never change; a branch means what it meant
//   <data>/fetched/url/SHA256-OF-THE-ADDRESS.SUFFIX    when it was fetched, until its receipt is removed
//   <data>/fetched/receipts/SHA256-OF-THE-REFERENCE    which file it is, with its size, time and SHA-256
//   <data>/locks/fetched/...                           one process at a time fetches a file; others wait
//
// One thread; several processes may share the folders.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/result.h"
#include "store/catalogue.h"
#include "store/checkpoint_reference.h"
#include "store/download.h"
#include "store/file_stamp.h"
#include "store/hub.h"
#include "store/paths.h"
#include "store/pull_event.h"

namespace syrinx {

struct SourceOptions {
  bool offline = false;                            // HF_HUB_OFFLINE does the same
  const std::atomic<bool>* cancel = nullptr;       // looked at several times a second
  std::function<void(const PullEvent&)> on_event;  // kWaiting, kSource, kProgress, kNotice, kDone
  DownloadOptions download;                        // patience; its callbacks are ours
};

struct GetOptions {
  uint64_t max_bytes = kMaxModelFileBytes;
  // Read what is in our store, and fetch it again where its SHA-256 is another; what is in the hub's cache and has
  // another than the hub's tools knew is kDataLoss.
  bool verify = false;
  std::string hint;  // ends the sentence that says how to get at gated weights: what can be done without them
};

class CheckpointSource {
 public:
  CheckpointSource(UserPaths paths, HubSettings hub, SourceOptions options);
  // The user's folders and the hub that the environment names.
  static Result<CheckpointSource> open(SourceOptions options);

  // The file, as far as it is on this disk; kNotFound otherwise.  Asks nobody.
  Result<std::string> find(const CheckpointReference& reference) const;
  // The file, fetched if need be.  Errors: kInvalidArgument (no reference), kNotFound, kUnavailable (offline, no
  // answer, refused), kLimitExceeded, kDataLoss (wrong length or hash), kIo (disk), kCancelled.
  Result<std::string> get(const CheckpointReference& reference, const GetOptions& options = {});
  Result<std::string> get(const std::string& reference, const GetOptions& options = {});

 private:
  struct Receipt;
  std::string receipt_path(const CheckpointReference& reference) const;
  std::string destination(const CheckpointReference& reference, const RemoteFile& remote) const;
  Result<std::string> find_receipt(const CheckpointReference& reference, bool verify) const;
  Status verify_cached(const std::string& path) const;
  Status write_receipt(const CheckpointReference& reference, const std::string& path, const std::string& sha256,
                       const std::optional<FileStamp>& stamp) const;
  Result<std::string> fetch(const CheckpointReference& reference, const GetOptions& options);
  Result<std::string> fetch_locked(const CheckpointReference& reference, const RemoteFile& remote,
                                   const std::string& path);
  void report(PullEvent::Kind kind, const std::string& name, const std::string& text, uint64_t done_bytes = 0,
              uint64_t total_bytes = 0) const;

  UserPaths paths_;
  HubSettings hub_;
  SourceOptions options_;
};

}  // namespace syrinx
