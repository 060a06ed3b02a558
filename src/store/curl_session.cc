#include "store/curl_session.h"

#include <curl/curl.h>

#include <cstdlib>
#include <mutex>

#include "base/result.h"
#include "base/version.h"

namespace syrinx {

CurlSession::CurlSession() {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
  handle_ = curl_easy_init();
}

CurlSession::~CurlSession() {
  curl_easy_cleanup(handle_);
  curl_slist_free_all(static_cast<curl_slist*>(headers_));
}

void CurlSession::prepare(const std::string& url, const std::string& token, const std::string& if_range,
                          const CurlLimits& limits) {
  curl_easy_reset(handle_);  // keeps the connections
  curl_slist_free_all(static_cast<curl_slist*>(headers_));
  curl_slist* headers = nullptr;
  // libcurl drops a header of this name as soon as host, port or scheme change.
  if (!token.empty()) headers = curl_slist_append(headers, fmt::format("Authorization: Bearer {}", token).c_str());
  if (!if_range.empty()) headers = curl_slist_append(headers, fmt::format("If-Range: {}", if_range).c_str());
  headers_ = headers;
  curl_easy_setopt(handle_, CURLOPT_HTTPHEADER, headers);
  curl_easy_setopt(handle_, CURLOPT_UNRESTRICTED_AUTH, 0L);
  curl_easy_setopt(handle_, CURLOPT_URL, url.c_str());
  curl_easy_setopt(handle_, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(handle_, CURLOPT_PROTOCOLS_STR, "http,https");
  // From https never down to http: what was asked for in private is not sent on in the open.
  curl_easy_setopt(handle_, CURLOPT_REDIR_PROTOCOLS_STR, url.starts_with("https://") ? "https" : "http,https");
  curl_easy_setopt(handle_, CURLOPT_MAXREDIRS, static_cast<long>(limits.max_redirects));
  curl_easy_setopt(handle_, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(limits.connect_timeout_ms));
  curl_easy_setopt(handle_, CURLOPT_TCP_KEEPALIVE, 1L);
  curl_easy_setopt(handle_, CURLOPT_USERAGENT, fmt::format("syrinx/{}", version()).c_str());
  for (const char* const name : {"CURL_CA_BUNDLE", "SSL_CERT_FILE"}) {
    const char* const bundle = std::getenv(name);
    if (bundle == nullptr || *bundle == '\0') continue;
    curl_easy_setopt(handle_, CURLOPT_CAINFO, bundle);
    break;
  }
}

void CurlSession::add_header(const char* header) {
  curl_slist* const longer = curl_slist_append(static_cast<curl_slist*>(headers_), header);
  if (longer == nullptr) return;  // out of memory: the list is as it was
  headers_ = longer;
  curl_easy_setopt(handle_, CURLOPT_HTTPHEADER, longer);
}

}  // namespace syrinx
