// Identity of the server over TLS: a certificate with its chain and its key, from PEM files, and the protocol: TLS 1.2
// and 1.3, ciphers with forward secrecy, no client certificates, no renegotiation.
//
// Immutable once made; any thread may make one, and connections of any thread may begin with it.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"

struct ssl_ctx_st;
struct ssl_st;

namespace syrinx::server {

class TlsIdentity {
 public:
  // Each file of at most 1 MB.  kNotFound, kIo: a file is not there or cannot be read; kDataLoss: it is no PEM,
  // ends amid a certificate, or was written while it was read; kInvalidArgument: the key asks for a password, the two
  // do not belong together, or OpenSSL refuses them (a key that is too short); kLimitExceeded.  What is allowed but
  // unwise (a key that others can read, a certificate out of its time) is a warning of the log.
  static Result<std::shared_ptr<const TlsIdentity>> load(const std::string& certificate_path,
                                                         const std::string& key_path);

  // A new connection of the server's side, the caller's to free; null for want of memory.
  ssl_st* make_connection() const;

 private:
  TlsIdentity() = default;
  struct Free {
    void operator()(ssl_ctx_st* context) const;
  };
  std::unique_ptr<ssl_ctx_st, Free> context_;
};

}  // namespace syrinx::server
