#include "store/download.h"

#include <curl/curl.h>

#include <algorithm>
#include <chrono>
#include <string_view>
#include <thread>

#include "store/checkpoint_reference.h"
#include "store/http_headers.h"

namespace syrinx {
namespace {

using SteadyClock = std::chrono::steady_clock;

int64_t ms_since(SteadyClock::time_point start) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(SteadyClock::now() - start).count();
}

std::string host_of(const std::string& url) {
  const size_t start = url.find("://") + 3;
  return url.substr(start, url.find('/', start) - start);
}

constexpr uint64_t kMaxErrorPageBytes = 1 << 20;

}  // namespace

// State shared by the callbacks of one attempt.
struct Downloader::Transfer {
  Downloader* owner = nullptr;
  PartFile* file = nullptr;
  CURL* handle = nullptr;
  uint64_t asked_from = 0;  // the range that was asked for starts here
  bool body_started = false;
  std::optional<ContentRange> range;  // came with the answer
  std::string etag;                   // likewise
  std::string* validator = nullptr;   // the version that is wanted; becomes the one that comes
  uint64_t received_bytes = 0;
  uint64_t ignored_bytes = 0;  // of an error's page
  bool stalled = false;
  Status fault;  // set by a callback that ended the transfer
  SteadyClock::time_point last_byte = SteadyClock::now();

  // First bytes of an answer that will be kept: is it the file, and from where?
  Status begin_body() {
    body_started = true;
    long status = 0;
    curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
    if (status == 206) {
      if (!range || range->first != asked_from || range->total != file->expected_bytes()) {
        SYRINX_TRY_VOID(file->restart());
        return fail(Code::kUnavailable, "the server sent another range than the one asked for");
      }
      // Some servers know ranges and overlook If-Range; a part's rest must carry the tag of its version.
      if (!file->has_known_hash() && etag != *validator) {
        SYRINX_TRY_VOID(file->restart());
        return fail(Code::kUnavailable, "the server sent the rest of another version; from the start");
      }
      return {};
    }
    curl_off_t length = -1;
    curl_easy_getinfo(handle, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
    if (length >= 0 && static_cast<uint64_t>(length) != file->expected_bytes()) {
      return fail(Code::kDataLoss, "the server's file has {} bytes instead of the {} it must have", length,
                  file->expected_bytes());
    }
    if (asked_from > 0) SYRINX_TRY_VOID(file->restart());  // it cannot resume, or has another version: from the start
    if (!validator->empty() && etag != *validator) {       // what follows a break must be of this version
      *validator = is_strong_tag(etag) ? etag : std::string();
      if (owner->options_.on_other_version) owner->options_.on_other_version();
    }
    return {};
  }

  size_t write(const char* data, size_t size_bytes) {
    long status = 0;
    curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
    last_byte = SteadyClock::now();
    if (status >= 300) {  // the text of an error, of which nothing is kept
      ignored_bytes += size_bytes;
      return ignored_bytes > kMaxErrorPageBytes ? 0 : size_bytes;
    }
    if (!body_started) fault = begin_body();
    if (fault) fault = file->append(std::as_bytes(std::span(data, size_bytes)));
    if (!fault) return 0;
    received_bytes += size_bytes;
    if (owner->options_.on_progress) owner->options_.on_progress(file->size_bytes());
    return size_bytes;
  }

  size_t header(std::string_view line) {
    last_byte = SteadyClock::now();
    if (line.starts_with("HTTP/")) {  // a redirect's headers do not count
      range.reset();
      etag.clear();
    }
    if (const auto value = header_value(line, "etag")) etag = *value;
    if (const auto value = header_value(line, "content-range")) range = parse_content_range(*value);
    if (const auto value = header_value(line, "retry-after")) owner->hear_wait(*value);
    return line.size();
  }

  int tick() {
    stalled = ms_since(last_byte) > owner->options_.stall_timeout_ms;
    return owner->cancelled() || stalled ? 1 : 0;
  }
};

// State shared by the callbacks of a request for headers.
struct Downloader::Inquiry {
  Downloader* owner = nullptr;
  RemoteHeaders* headers = nullptr;
  bool hub = false;  // a hub answers, and not yet the storage that it redirects to
  bool stalled = false;
  SteadyClock::time_point last_byte = SteadyClock::now();

  size_t header(std::string_view line) {
    last_byte = SteadyClock::now();
    if (const auto value = header_value(line, "etag")) headers->etag = *value;
    if (const auto value = header_value(line, "retry-after")) owner->hear_wait(*value);
    if (const auto value = header_value(line, "content-range")) {
      const auto range = parse_content_range(*value);
      if (range) headers->size_bytes = range->total;
    }
    if (!hub) return line.size();
    if (const auto value = header_value(line, "x-linked-size")) headers->linked_size = header_number(*value);
    if (const auto value = header_value(line, "x-linked-etag")) headers->linked_etag = *value;
    if (const auto value = header_value(line, "x-repo-commit")) headers->commit = *value;
    if (const auto value = header_value(line, "x-error-code")) headers->error_code = *value;
    return line.size();
  }

  int tick() {
    stalled = ms_since(last_byte) > owner->options_.stall_timeout_ms;
    return owner->cancelled() || stalled ? 1 : 0;
  }
};

namespace {

// The handlers of one request.  T has header(line) and tick().
template <class T>
void listen(CURL* c, T& user) {
  using Write = size_t (*)(char*, size_t, size_t, void*);
  const Write on_header = [](char* data, size_t size, size_t count, void* self) {
    return static_cast<T*>(self)->header(std::string_view(data, size * count));
  };
  using Tick = int (*)(void*, curl_off_t, curl_off_t, curl_off_t, curl_off_t);
  const Tick on_tick = [](void* self, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
    return static_cast<T*>(self)->tick();
  };
  curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, on_header);
  curl_easy_setopt(c, CURLOPT_HEADERDATA, &user);
  curl_easy_setopt(c, CURLOPT_XFERINFOFUNCTION, on_tick);
  curl_easy_setopt(c, CURLOPT_XFERINFODATA, &user);
  curl_easy_setopt(c, CURLOPT_NOPROGRESS, 0L);
}

// The request itself; `what` says what went wrong.
CURLcode perform(CURL* c, std::string& what) {
  char text[CURL_ERROR_SIZE] = {};
  curl_easy_setopt(c, CURLOPT_ERRORBUFFER, text);
  const CURLcode code = curl_easy_perform(c);
  curl_easy_setopt(c, CURLOPT_ERRORBUFFER, nullptr);
  what = text[0] != '\0' ? text : curl_easy_strerror(code);
  return code;
}

bool is_busy(int64_t status) { return status == 408 || status == 425 || status == 429 || status >= 500; }

}  // namespace

Downloader::Downloader(DownloadOptions options) : options_(std::move(options)) {}

Downloader::~Downloader() = default;

void Downloader::hear_wait(std::string_view value) {
  const auto seconds = header_number(value);
  if (seconds) asked_wait_ms_ = static_cast<int64_t>(std::min<uint64_t>(*seconds, 86400) * 1000);
}

CurlLimits Downloader::limits() const {
  return CurlLimits{.connect_timeout_ms = options_.connect_timeout_ms, .max_redirects = options_.max_redirects};
}

Downloader::Next Downloader::attempt(RemoteAddress& address, PartFile& file, Error& error) {
  if (file.complete()) {  // an earlier run ended between the last byte and the rename
    const Status finished = file.finish();
    if (finished) return Next::kDone;
    error = finished.error();
    return error.code == Code::kDataLoss ? Next::kAgain : Next::kStop;
  }
  // Without hash and validator, a later version's end cannot be told from this one's.
  if (file.size_bytes() > 0 && !file.has_known_hash() && address.validator.empty()) {
    const Status restarted = file.restart();
    if (!restarted) {
      error = restarted.error();
      return Next::kStop;
    }
  }
  Transfer transfer;
  transfer.owner = this;
  transfer.file = &file;
  transfer.handle = session_.handle();
  transfer.validator = &address.validator;
  transfer.asked_from = file.size_bytes();
  const std::string range = fmt::format("{}-", transfer.asked_from);
  session_.prepare(address.url, address.token, transfer.asked_from > 0 ? address.validator : std::string(), limits());
  CURL* const c = session_.handle();
  curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 1L);
  if (transfer.asked_from > 0) curl_easy_setopt(c, CURLOPT_RANGE, range.c_str());
  listen(c, transfer);
  using Write = size_t (*)(char*, size_t, size_t, void*);
  const Write on_write = [](char* data, size_t size, size_t count, void* self) {
    return static_cast<Transfer*>(self)->write(data, size * count);
  };
  curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_write);
  curl_easy_setopt(c, CURLOPT_WRITEDATA, &transfer);
  std::string what;
  const CURLcode code = perform(c, what);
  if (!transfer.fault) {
    error = transfer.fault.error();
    return error.code == Code::kUnavailable ? Next::kAgain : Next::kStop;
  }
  const bool page_cut = code == CURLE_WRITE_ERROR && transfer.ignored_bytes > 0;
  const Next transport = page_cut ? Next::kDone : judge_transport(code, transfer.stalled, what, error);
  return transport == Next::kDone ? judge_answer(transfer, file, error) : transport;
}

// Did an answer arrive whole?
Downloader::Next Downloader::judge_transport(int curl_code, bool stalled, const std::string& what, Error& error) {
  long status = 0;
  curl_easy_getinfo(session_.handle(), CURLINFO_RESPONSE_CODE, &status);
  error = Error{Code::kUnavailable, what};
  switch (curl_code) {
    case CURLE_OK: return Next::kDone;
    case CURLE_ABORTED_BY_CALLBACK:
      if (!stalled) return Next::kStop;  // cancelled; repeat() says so
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
  curl_easy_getinfo(session_.handle(), CURLINFO_RESPONSE_CODE, &status);
  if (status == 416) {  // our range lies outside: what we kept is not the beginning of this file
    const Status restarted = file.restart();
    if (!restarted) return because(restarted.error().code, Next::kStop, restarted.error().message);
    return because(Code::kUnavailable, Next::kAgain, "the server could not continue; from the start");
  }
  if (is_busy(status)) {
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

// One question along its redirects.  They are followed here and not by libcurl, which would go past the hub's answer to
// its storage, whose signed addresses refuse HEAD.  Without a hub in the request, its headers mean nothing.
Downloader::Next Downloader::ask(const RemoteAddress& address, bool head, RemoteHeaders& headers, Error& error) {
  std::string url = address.url;
  CURL* const c = session_.handle();
  for (int64_t redirects = 0;; ++redirects) {
    const bool own = origin_of(url) == origin_of(address.url);
    headers.etag.clear();
    headers.size_bytes.reset();
    headers.own_origin = own;
    Inquiry inquiry;
    inquiry.owner = this;
    inquiry.headers = &headers;
    inquiry.hub = address.hub && own;
    session_.prepare(url, own ? address.token : std::string(), {}, limits());
    listen(c, inquiry);
    if (head) curl_easy_setopt(c, CURLOPT_NOBODY, 1L);
    if (!head) curl_easy_setopt(c, CURLOPT_RANGE, "0-0");
    using Write = size_t (*)(char*, size_t, size_t, void*);
    const Write on_write = [](char*, size_t, size_t, void*) { return size_t{0}; };  // the head is all we wanted
    curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_write);
    std::string what;
    const CURLcode code = perform(c, what);
    if (code != CURLE_WRITE_ERROR) {
      const Next transport = judge_transport(code, inquiry.stalled, what, error);
      if (transport != Next::kDone) return transport;
    }
    long status = 0;
    curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &status);
    headers.status = status;
    curl_off_t length = -1;
    curl_easy_getinfo(c, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
    if (status == 200 && length >= 0) headers.size_bytes = static_cast<uint64_t>(length);
    if (is_busy(status)) {
      error = Error{Code::kUnavailable, fmt::format("the server answered {}", status)};
      return Next::kAgain;
    }
    const char* next = nullptr;
    curl_easy_getinfo(c, CURLINFO_REDIRECT_URL, &next);
    if (next == nullptr || headers.linked_size) return Next::kDone;
    const std::string target = next;
    const bool http = target.starts_with("http://"), https = target.starts_with("https://");
    if (redirects == options_.max_redirects || !(https || (http && url.starts_with("http://")))) {
      error = Error{Code::kUnavailable,
                    redirects == options_.max_redirects
                        ? fmt::format("more than {} redirects", options_.max_redirects)
                        : fmt::format("a redirect to '{}', which is not followed", target.substr(0, 200))};
      return Next::kStop;
    }
    url = target;
  }
}

Result<RemoteHeaders> Downloader::describe(const RemoteAddress& address) {
  RemoteHeaders headers;
  const auto attempt = [&](Error& error) {
    headers = RemoteHeaders();
    const Next next = ask(address, true, headers, error);
    const bool no_answer = headers.status == 403 || headers.status == 405 || headers.status == 501 ||
                           (headers.status == 200 && !headers.size_bytes);
    if (next != Next::kDone || headers.linked_size || !headers.error_code.empty() || !no_answer) return next;
    headers = RemoteHeaders();
    return ask(address, false, headers, error);
  };
  SYRINX_TRY_VOID(repeat(address.url, attempt, [] { return uint64_t{0}; }));
  return headers;
}

bool Downloader::pause(int64_t pause_ms) const {
  const auto start = SteadyClock::now();
  while (!cancelled() && ms_since(start) < pause_ms) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  return !cancelled();
}

Status Downloader::fetch(const RemoteAddress& address, PartFile& file) {
  RemoteAddress wanted = address;
  Status fetched = repeat(
      address.url, [&](Error& error) { return attempt(wanted, file, error); }, [&] { return file.size_bytes(); });
  if (!fetched && fetched.error().code == Code::kCancelled)
    return fail(Code::kCancelled, "stopped; '{}' can be continued", file.destination());
  return fetched;
}

Status Downloader::repeat(const std::string& url, const std::function<Next(Error&)>& attempt,
                          const std::function<uint64_t()>& progress) {
  const std::string host = host_of(url);
  if (unreachable_.count(host) != 0) return fail(Code::kUnavailable, "{} cannot be reached", host);
  int failures = 0;
  int64_t next_pause_ms = options_.first_pause_ms;
  // The longest the file has been: a server that cuts at random and cannot resume makes no progress below it.
  const uint64_t first_bytes = progress();
  uint64_t best_bytes = first_bytes;
  while (true) {
    if (cancelled()) return fail(Code::kCancelled, "stopped");
    Error error;
    asked_wait_ms_ = 0;
    Next next = attempt(error);
    if (next == Next::kDone) return {};
    if (cancelled()) return fail(Code::kCancelled, "stopped");
    if (progress() > best_bytes) {
      best_bytes = progress();
      failures = 0;
      next_pause_ms = options_.first_pause_ms;
    }
    if (next == Next::kNoRoute && best_bytes == first_bytes) {
      unreachable_.insert(host);
      next = Next::kStop;
    }
    if (next == Next::kStop || ++failures >= options_.attempts) {
      if (error.code == Code::kIo) return tl::unexpected(error);
      return fail(error.code, "{}: {}", host, error.message);
    }
    if (options_.on_notice) options_.on_notice(fmt::format("{}: {}; trying again", host, error.message));
    if (!pause(std::max(next_pause_ms, std::min(asked_wait_ms_, options_.longest_wait_ms))))
      return fail(Code::kCancelled, "stopped");
    next_pause_ms = std::min(next_pause_ms * 2, options_.longest_pause_ms);
  }
}

}  // namespace syrinx
