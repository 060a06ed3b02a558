// A certificate that the server makes for itself, for clients that connect over TLS alone and for no others: whoever
// connects has to be given it.
#pragma once

#include <ctime>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace syrinx::server {

struct TlsFiles {
  std::string certificate, key;
};

// Names and addresses by which clients of this machine, of its containers and of its network call it, and `host`.
std::vector<std::string> own_names(const std::string& host);

// The files of `folder`, in PEM, the key readable by this user alone.  They are made anew where they are missing or
// damaged, lack one of the names, or end within 30 days of `now`, the system's time where it is not given.  kIo;
// kInternal: OpenSSL fails.
Result<TlsFiles> self_signed_files(const std::string& folder, const std::vector<std::string>& names,
                                   std::optional<time_t> now = {});

}  // namespace syrinx::server
