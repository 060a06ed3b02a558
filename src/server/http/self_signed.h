// A certificate that the server makes for itself.  Clients trust it only once it has been given to them.
#pragma once

#include <ctime>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace syrinx::server {

struct TlsFiles {
  std::string certificate, key;
  bool is_new = false;  // clients have to be given the certificate, once more if they had another
};

// Names and addresses of a server.
struct TlsNames {
  std::vector<std::string> needed;  // of this machine and its containers, and `host`
  // That of the machine, and where `host` is every address, those of its network: a container has others at each start.
  std::vector<std::string> other;
};
TlsNames own_names(const std::string& host);

// The files of `folder`, in PEM, the key readable by this user alone.  They are made where they are missing, and made
// anew, for the old names too, where they are damaged, lack a needed name, or end within 30 days of `now`, the system's
// time where it is not given.  Several processes may ask at once.  kInvalidArgument: the files are not the server's
// own, and stay; kIo; kInternal: OpenSSL fails.
Result<TlsFiles> self_signed_files(const std::string& folder, const TlsNames& names, std::optional<time_t> now = {});

// Whether the above would find the files or could make them; makes nothing.
Status check_self_signed(const std::string& folder);

}  // namespace syrinx::server
