#include "engine/download.h"

#include <curl/curl.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <string_view>
#include <thread>

#include "engine/version.h"

namespace syrinx {
namespace {

using Clock = std::chrono::steady_clock;

int64_t ms_since(Clock::time_point start) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start).count();
}

std::string host_of(const std::string& url) {
  const size_t start = url.find("://") + 3;
  return url.substr(start, url.find('/', start) - start);
}

bool starts_with_ignoring_case(std::string_view text, std::string_view lower_prefix) {
  if (text.size() < lower_prefix.size()) return false;
  return std::equal(lower_prefix.begin(), lower_prefix.end(), text.begin(), [](char expected, char given) {
    return expected == static_cast<char>(std::tolower(static_cast<unsigned char>(given)));
  });
}

// "Content-Range: bytes 5-99/100": the first byte and the whole size, or false.
bool parse_content_range(std::string_view header, uint64_t& first, uint64_t& total) {
  const size_t unit = header.find("bytes ");
  const size_t slash = header.find('/');
  if (unit == std::string_view::npos || slash == std::string_view::npos) return false;
  const auto number = [](std::string_view text, uint64_t& value) {
    return std::from_chars(text.data(), text.data() + text.size(), value).ec == std::errc();
  };
  return number(header.substr(unit + 6), first) && number(header.substr(slash + 1), total);
}

}  // namespace

struct Downloader::CurlHandle {
  CurlHandle() {
    static std::once_flag once;
    std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
    handle = curl_easy_init();
  }
  ~CurlHandle() { curl_easy_cleanup(handle); }
  CURL* handle = nullptr;
};

// What the callbacks of one attempt share.
struct Downloader::Transfer {
  Downloader* owner = nullptr;
  PartFile* file = nullptr;
  CURL* handle = nullptr;
  uint64_t asked_from = 0;  // the range that was asked for starts here
  bool body_started = false;
  bool range_known = false;  // a usable Content-Range came with the answer
  uint64_t range_first = 0;
  uint64_t range_total = 0;
  uint64_t received_bytes = 0;
  bool stalled = false;
  Status fault;  // set by a callback that ended the transfer
  Clock::time_point last_byte = Clock::now();

  // First bytes of an answer that will be kept: is it the file, and from where?
  Status begin_body() {
    body_started = true;
    long status = 0;
    curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
    if (status == 206) {
      if (!range_known || range_first != asked_from || range_total != file->expected_bytes()) {
        SYRINX_TRY_VOID(file->restart());
        return fail(Code::kUnavailable, "the server sent another range than the one asked for");
      }
      return {};
    }
    if (asked_from > 0) SYRINX_TRY_VOID(file->restart());  // the server cannot resume: from the start, then
    curl_off_t length = -1;
    curl_easy_getinfo(handle, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
    if (length >= 0 && static_cast<uint64_t>(length) != file->expected_bytes()) {
      return fail(Code::kDataLoss, "the server's file has {} bytes where the catalogue says {}", length,
                  file->expected_bytes());
    }
    return {};
  }

  size_t write(const char* data, size_t size_bytes) {
    long status = 0;
    curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
    last_byte = Clock::now();
    if (status >= 300) return size_bytes;  // the text of an error page
    if (!body_started) fault = begin_body();
    if (fault) fault = file->append(std::as_bytes(std::span(data, size_bytes)));
    if (!fault) return 0;
    received_bytes += size_bytes;
    if (owner->options_.on_progress) owner->options_.on_progress(file->size_bytes());
    return size_bytes;
  }

  size_t header(std::string_view line) {
    last_byte = Clock::now();
    if (starts_with_ignoring_case(line, "http/")) range_known = false;  // a redirect's headers do not count
    if (starts_with_ignoring_case(line, "content-range:")) {
      range_known = parse_content_range(line, range_first, range_total);
    }
    return line.size();
  }

  int tick() {
    stalled = ms_since(last_byte) > owner->options_.stall_timeout_ms;
    return owner->cancelled() || stalled ? 1 : 0;
  }
};

Downloader::Downloader(DownloadOptions options) : options_(std::move(options)), curl_(std::make_unique<CurlHandle>()) {}

Downloader::~Downloader() = default;

void Downloader::prepare(const std::string& url, Transfer& transfer) {
  CURL* const c = curl_->handle;
  curl_easy_reset(c);  // keeps the connection
  curl_easy_setopt(c, CURLOPT_URL, url.c_str());
  curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
  // From https never down to http: what was asked for in private is not sent on in the open.
  curl_easy_setopt(c, CURLOPT_REDIR_PROTOCOLS_STR, url.rfind("https://", 0) == 0 ? "https" : "http,https");
  curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 1L);
  curl_easy_setopt(c, CURLOPT_MAXREDIRS, static_cast<long>(options_.max_redirects));
  curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(options_.connect_timeout_ms));
  curl_easy_setopt(c, CURLOPT_TCP_KEEPALIVE, 1L);
  const std::string agent = fmt::format("syrinx/{}", version());
  curl_easy_setopt(c, CURLOPT_USERAGENT, agent.c_str());
  for (const char* const name : {"CURL_CA_BUNDLE", "SSL_CERT_FILE"}) {
    const char* const bundle = std::getenv(name);
    if (bundle == nullptr || *bundle == '\0') continue;
    curl_easy_setopt(c, CURLOPT_CAINFO, bundle);
    break;
  }
  if (transfer.asked_from > 0) {
    const std::string range = fmt::format("{}-", transfer.asked_from);
    curl_easy_setopt(c, CURLOPT_RANGE, range.c_str());
  }
  using Write = size_t (*)(char*, size_t, size_t, void*);
  const Write on_write = [](char* data, size_t size, size_t count, void* user) {
    return static_cast<Transfer*>(user)->write(data, size * count);
  };
  const Write on_header = [](char* data, size_t size, size_t count, void* user) {
    return static_cast<Transfer*>(user)->header(std::string_view(data, size * count));
  };
  using Tick = int (*)(void*, curl_off_t, curl_off_t, curl_off_t, curl_off_t);
  const Tick on_tick = [](void* user, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
    return static_cast<Transfer*>(user)->tick();
  };
  curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_write);
  curl_easy_setopt(c, CURLOPT_WRITEDATA, &transfer);
  curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, on_header);
  curl_easy_setopt(c, CURLOPT_HEADERDATA, &transfer);
  curl_easy_setopt(c, CURLOPT_XFERINFOFUNCTION, on_tick);
  curl_easy_setopt(c, CURLOPT_XFERINFODATA, &transfer);
  curl_easy_setopt(c, CURLOPT_NOPROGRESS, 0L);
}

Downloader::Next Downloader::attempt(const std::string& url, PartFile& file, Error& error) {
  if (cancelled()) {
    error = Error{Code::kCancelled, fmt::format("stopped; '{}' can be continued", file.destination())};
    return Next::kStop;
  }
  if (file.complete()) {  // an earlier run ended between the last byte and the rename
    const Status finished = file.finish();
    if (finished) return Next::kDone;
    error = finished.error();
    return error.code == Code::kDataLoss ? Next::kAgain : Next::kStop;
  }
  Transfer transfer;
  transfer.owner = this;
  transfer.file = &file;
  transfer.handle = curl_->handle;
  transfer.asked_from = file.size_bytes();
  prepare(url, transfer);
  char text[CURL_ERROR_SIZE] = {};
  curl_easy_setopt(curl_->handle, CURLOPT_ERRORBUFFER, text);
  const CURLcode code = curl_easy_perform(curl_->handle);
  curl_easy_setopt(curl_->handle, CURLOPT_ERRORBUFFER, nullptr);
  const Next transport = judge_transport(code, text[0] != '\0' ? text : curl_easy_strerror(code), transfer, error);
  return transport == Next::kDone ? judge_answer(transfer, file, error) : transport;
}

// Did an answer arrive whole?
Downloader::Next Downloader::judge_transport(int curl_code, const std::string& curl_text, const Transfer& transfer,
                                             Error& error) {
  if (!transfer.fault) {
    error = transfer.fault.error();
    return error.code == Code::kUnavailable ? Next::kAgain : Next::kStop;
  }
  long status = 0;
  curl_easy_getinfo(curl_->handle, CURLINFO_RESPONSE_CODE, &status);
  error = Error{Code::kUnavailable, curl_text};
  switch (curl_code) {
    case CURLE_OK: return Next::kDone;
    case CURLE_ABORTED_BY_CALLBACK:
      if (!transfer.stalled) {
        error = Error{Code::kCancelled, fmt::format("stopped; '{}' can be continued", transfer.file->destination())};
        return Next::kStop;
      }
      error.message = fmt::format("no data came for {:.0f} s", static_cast<double>(options_.stall_timeout_ms) / 1e3);
      return Next::kAgain;
    case CURLE_TOO_MANY_REDIRECTS:
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_URL_MALFORMAT:
    case CURLE_SSL_CACERT_BADFILE: return Next::kStop;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT: return Next::kNoRoute;
    case CURLE_OPERATION_TIMEDOUT: return status == 0 ? Next::kNoRoute : Next::kAgain;  // 0: never connected
    default: return Next::kAgain;
  }
}

// Is the answer the file?
Downloader::Next Downloader::judge_answer(const Transfer& transfer, PartFile& file, Error& error) {
  const auto because = [&error](Code code, Next next, std::string message) {
    error = Error{code, std::move(message)};
    return next;
  };
  long status = 0;
  curl_easy_getinfo(curl_->handle, CURLINFO_RESPONSE_CODE, &status);
  if (status == 416) {  // our range lies outside: what we kept is not the beginning of this file
    const Status restarted = file.restart();
    if (!restarted) return because(restarted.error().code, Next::kStop, restarted.error().message);
    return because(Code::kUnavailable, Next::kAgain, "the server could not continue; from the start");
  }
  if (status == 408 || status == 425 || status == 429 || status >= 500) {
    return because(Code::kUnavailable, Next::kAgain, fmt::format("the server answered {}", status));
  }
  if (status < 200 || status >= 300) {
    const Code code = status == 404 || status == 410 ? Code::kNotFound : Code::kUnavailable;
    return because(code, Next::kStop, fmt::format("the server answered {}", status));
  }
  if (!file.complete()) {
    return because(Code::kUnavailable, Next::kAgain,
                   fmt::format("the transfer ended after {} of {} bytes", file.size_bytes(), file.expected_bytes()));
  }
  const Status finished = file.finish();
  if (finished) return Next::kDone;
  // Wrong bytes after a resumed start may be the old part's fault; wrong bytes from one go are the server's.
  const bool resumed = transfer.asked_from > 0 && transfer.received_bytes < file.expected_bytes();
  return because(finished.error().code, resumed ? Next::kAgain : Next::kStop, finished.error().message);
}

bool Downloader::pause(int64_t pause_ms) const {
  const auto start = Clock::now();
  while (!cancelled() && ms_since(start) < pause_ms) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  return !cancelled();
}

Status Downloader::fetch(const std::string& url, PartFile& file) {
  const std::string host = host_of(url);
  if (unreachable_.count(host) != 0) return fail(Code::kUnavailable, "{} cannot be reached", host);
  int failures = 0;
  int64_t next_pause_ms = options_.first_pause_ms;
  // The longest the file has been: a server that cuts at random and cannot resume makes no progress below it.
  const uint64_t first_bytes = file.size_bytes();
  uint64_t best_bytes = first_bytes;
  Error error;
  while (true) {
    Next next = attempt(url, file, error);
    if (next == Next::kDone) return {};
    if (file.size_bytes() > best_bytes) {
      best_bytes = file.size_bytes();
      failures = 0;
      next_pause_ms = options_.first_pause_ms;
    }
    if (next == Next::kNoRoute && best_bytes == first_bytes) {
      unreachable_.insert(host);
      next = Next::kStop;
    }
    if (next == Next::kStop || ++failures >= options_.attempts) break;
    if (options_.on_notice) options_.on_notice(fmt::format("{}: {}; trying again", host, error.message));
    if (!pause(next_pause_ms)) return fail(Code::kCancelled, "stopped; '{}' can be continued", file.destination());
    next_pause_ms = std::min(next_pause_ms * 2, options_.longest_pause_ms);
  }
  if (error.code == Code::kIo || error.code == Code::kCancelled) return tl::unexpected(error);
  return fail(error.code, "{}: {}", host, error.message);
}

}  // namespace syrinx
