// Access control: API keys, and web pages of other origins.  Pure once made; thread-safe.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "server/settings/settings.h"

namespace syrinx::server {

// Whether a request's header can bear the key: printable ASCII without blanks, 512 bytes at most.  `where` stands in
// messages, the key never.
Status check_key(std::string_view key, const std::string& where);
// Whether some browser may send this as its Origin, or it is `*`.  kInvalidArgument says how to write it.
Status check_origin(std::string_view origin);

class ApiKeys {
 public:
  // Those of the settings, which check() has seen, and of their file, one a line, where a line that begins with '#' is
  // none.  The file's errors, and those of check_key(); kInvalidArgument where it holds none.
  static Result<ApiKeys> load(const Settings& settings);
  bool asked_for() const { return !digests_.empty(); }
  // Whether an `Authorization` header bears one of them, "Bearer KEY".  Takes as long for every key that is wrong.
  bool allow(std::string_view authorization) const;

 private:
  std::vector<std::string> digests_;  // SHA-256, so that their lengths do not show either
};

// Whether a page of `origin` may ask a server that was addressed as `host`: it is the server's own page, or listed.  A
// server's own name is one of is_own_host(), so that no foreign name that leads here passes for it; where keys are
// asked for it is any, as no browser sends one of itself.
bool may_ask(std::string_view origin, std::string_view host, const Texts& origins, bool keys_asked_for);
bool is_listed(std::string_view origin, const Texts& origins);
// Whether `host`, of a request's header, may be this machine's own name: an address, localhost, a name without a dot,
// one by which containers call their host (host.docker.internal), or that of a listed origin.  A page whose own name
// was made to lead here sends no Origin with a GET, but its name.
bool is_own_host(std::string_view host, const Texts& origins);

}  // namespace syrinx::server
