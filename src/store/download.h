// Fetches files over http and https into PartFiles: resumes what an earlier attempt left, tries again with growing
// pauses, and never leaves a half file under the destination's name.
//
// Proxies are taken from the environment (https_proxy, no_proxy, ...), certificates from the system or from
// CURL_CA_BUNDLE or SSL_CERT_FILE.  Nothing but the request for the file itself is sent.  A server that asks for
// patience (Retry-After) gets it, up to longest_wait_ms.
//
// Errors: kUnavailable (cannot be reached, stalled, server trouble: another source or a later try may do), kNotFound
// (the server has no such file), kDataLoss (wrong length or hash), kIo (our disk), kCancelled.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/result.h"
#include "store/curl_session.h"
#include "store/part_file.h"

namespace syrinx {

struct DownloadOptions {
  int attempts = 5;  // in a row without a new byte; each new byte starts the count afresh
  int64_t connect_timeout_ms = 10000;
  int64_t stall_timeout_ms = 30000;  // without a single byte
  int64_t first_pause_ms = 500;      // doubled after each failure, at most longest_pause_ms
  int64_t longest_pause_ms = 15000;
  int64_t longest_wait_ms = 60000;  // of what a server asks for
  int64_t max_redirects = 8;
  const std::atomic<bool>* cancel = nullptr;             // looked at several times a second
  std::function<void(uint64_t done_bytes)> on_progress;  // bytes of this file, resumed ones included
  std::function<void(const std::string&)> on_notice;     // one line: what went wrong and will be tried again
  std::function<void()> on_other_version;  // what comes is not the validator's version, but begins with its first byte
};

struct RemoteAddress {
  std::string url;
  std::string token;      // sent to the address's own origin alone; may be empty
  std::string validator;  // strong ETag of the version that is wanted: another one is fetched from its start
  bool hub = false;       // a hub's: its own headers are heard, and its answer ends the redirects
};

// Headers of a remote file, read before any of it is fetched.
struct RemoteHeaders {
  int64_t status = 0;  // the last answer's
  std::optional<uint64_t> size_bytes;
  std::string etag;                     // as sent, quotes and all; of the last answer
  bool own_origin = false;              // the last answer came from the address's own origin
  std::optional<uint64_t> linked_size;  // X-Linked-Size, X-Linked-Etag, X-Repo-Commit, X-Error-Code: of Hugging Face's
  std::string linked_etag;              // hub, and of others with its interface; of a hub's own origin alone
  std::string commit;
  std::string error_code;
};

// One connection, reused from file to file.  One thread.
class Downloader {
 public:
  explicit Downloader(DownloadOptions options);
  ~Downloader();
  Downloader(const Downloader&) = delete;
  Downloader& operator=(const Downloader&) = delete;

  // Fetches the address into `file` and finishes it.  A host that could not be reached is not asked again by this
  // object.
  Status fetch(const RemoteAddress& address, PartFile& file);
  Status fetch(const std::string& url, PartFile& file) { return fetch(RemoteAddress{url, {}, {}, false}, file); }

  // Asks about a file without fetching it (HEAD; where a server refuses that, GET of the first byte).  Follows
  // redirects, a hub's only until its own headers have come.  An answer of any kind is a value, its status to be judged
  // by the caller; errors are as above, without kNotFound.
  Result<RemoteHeaders> describe(const RemoteAddress& address);

 private:
  struct Transfer;
  struct Inquiry;
  enum class Next { kDone, kAgain, kStop, kNoRoute };
  Next attempt(RemoteAddress& address, PartFile& file, Error& error);
  Next ask(const RemoteAddress& address, bool head, RemoteHeaders& headers, Error& error);
  Next judge_transport(int curl_code, bool stalled, const std::string& what, Error& error);
  Next judge_answer(const Transfer& transfer, PartFile& file, Error& error);
  // Calls `attempt` until it is done, hopeless, or has failed too often since `progress` last grew.
  Status repeat(const std::string& url, const std::function<Next(Error&)>& attempt,
                const std::function<uint64_t()>& progress);
  void hear_wait(std::string_view retry_after);
  CurlLimits limits() const;
  bool pause(int64_t pause_ms) const;  // false when cancelled
  bool cancelled() const { return options_.cancel != nullptr && options_.cancel->load(); }

  DownloadOptions options_;
  CurlSession session_;
  std::set<std::string> unreachable_;  // hosts
  int64_t asked_wait_ms_ = 0;          // by the last answer
};

}  // namespace syrinx
