// Fetches files over http and https into PartFiles: resumes what an earlier attempt left, tries again with growing
// pauses, and never leaves a half file under the destination's name.  libcurl is used in download.cc alone.
//
// Proxies are taken from the environment (https_proxy, no_proxy, ...), certificates from the system or from
// CURL_CA_BUNDLE or SSL_CERT_FILE.  Nothing but the request for the file itself is sent.
//
// Errors: kUnavailable (cannot be reached, stalled, server trouble: another source or a later try may do), kNotFound
// (the server has no such file), kDataLoss (wrong length or hash), kIo (our disk), kCancelled.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "base/result.h"
#include "engine/part_file.h"

namespace syrinx {

struct DownloadOptions {
  int attempts = 5;  // in a row without a new byte; each new byte starts the count afresh
  int64_t connect_timeout_ms = 10000;
  int64_t stall_timeout_ms = 30000;  // without a single byte
  int64_t first_pause_ms = 500;      // doubled after each failure, at most longest_pause_ms
  int64_t longest_pause_ms = 15000;
  int64_t max_redirects = 8;
  const std::atomic<bool>* cancel = nullptr;             // looked at several times a second
  std::function<void(uint64_t done_bytes)> on_progress;  // bytes of this file, resumed ones included
  std::function<void(const std::string&)> on_notice;     // one line: what went wrong and will be tried again
};

// One connection, reused from file to file.  One thread.
class Downloader {
 public:
  explicit Downloader(DownloadOptions options);
  ~Downloader();
  Downloader(const Downloader&) = delete;
  Downloader& operator=(const Downloader&) = delete;

  // Fetches `url` into `file` and finishes it.  A host that could not be reached is not asked again by this object.
  Status fetch(const std::string& url, PartFile& file);

 private:
  struct Transfer;
  struct CurlHandle;
  enum class Next { kDone, kAgain, kStop, kNoRoute };
  Next attempt(const std::string& url, PartFile& file, Error& error);
  Next judge_transport(int curl_code, const std::string& curl_text, const Transfer& transfer, Error& error);
  Next judge_answer(const Transfer& transfer, PartFile& file, Error& error);
  void prepare(const std::string& url, Transfer& transfer);
  bool pause(int64_t pause_ms) const;  // false when cancelled
  bool cancelled() const { return options_.cancel != nullptr && options_.cancel->load(); }

  DownloadOptions options_;
  std::unique_ptr<CurlHandle> curl_;
  std::set<std::string> unreachable_;  // hosts
};

}  // namespace syrinx
