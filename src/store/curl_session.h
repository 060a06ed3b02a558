// One libcurl handle, its connections reused from request to request, and what all our requests agree on: http and
// https only, redirects never from https down to http, the user's proxies and certificates, our name.  libcurl's
// header is included by the sources of Downloader and of the server's upstream alone.  One thread.
#pragma once

#include <cstdint>
#include <string>

typedef void CURL;

namespace syrinx {

struct CurlLimits {
  int64_t connect_timeout_ms = 10000;
  int64_t max_redirects = 8;
};

class CurlSession {
 public:
  CurlSession();
  ~CurlSession();
  CurlSession(const CurlSession&) = delete;
  CurlSession& operator=(const CurlSession&) = delete;

  // Forgets the last request's options and sets the common ones.  `token`, where it is not empty, is sent as
  // "Authorization: Bearer" to the address's own host, port and scheme, and never to a redirect's target.
  void prepare(const std::string& url, const std::string& token, const std::string& if_range, const CurlLimits& limits);
  // One more line of the request's head, "Name: value", behind prepare().
  void add_header(const char* header);
  CURL* handle() const { return handle_; }

 private:
  CURL* handle_ = nullptr;
  void* headers_ = nullptr;  // curl_slist
};

}  // namespace syrinx
