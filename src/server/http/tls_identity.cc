#include "server/http/tls_identity.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <new>
#include <string_view>
#include <utility>

#include "base/key_file.h"
#include "base/log.h"
#include "base/watched_file.h"

namespace syrinx::server {
namespace {

constexpr size_t kMaxFileBytes = size_t{1} << 20;
constexpr int kMaxChain = 32;  // certificates behind the server's own

// With forward secrecy and authenticated; TLS 1.3 has no others.
constexpr const char* kCiphers12 = "ECDHE+AESGCM:ECDHE+CHACHA20";

struct FreeBio {
  void operator()(BIO* bio) const { BIO_free(bio); }
};
struct FreeCertificate {
  void operator()(X509* certificate) const { X509_free(certificate); }
};
struct FreeKey {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
using Bio = std::unique_ptr<BIO, FreeBio>;
using Certificate = std::unique_ptr<X509, FreeCertificate>;
using Key = std::unique_ptr<EVP_PKEY, FreeKey>;

// OpenSSL's first error, in its words; clears its queue.
std::string reason() {
  const unsigned long error = ERR_get_error();
  const char* const words = error != 0 ? ERR_reason_error_string(error) : nullptr;
  ERR_clear_error();
  return words != nullptr ? words : "OpenSSL does not say why";
}

Result<WatchedFile> open(const std::string& path, const char* setting) {
  auto file = WatchedFile::open(path);
  if (!file) return fail(file.error().code, "'{}': {}", setting, file.error().message);
  if (file->bytes().size() > kMaxFileBytes)
    return fail(Code::kLimitExceeded, "'{}': '{}' has {} bytes; a PEM file has at most {}", setting, path,
                file->bytes().size(), kMaxFileBytes);
  return file;
}

Bio reader_of(const WatchedFile& file) {
  const auto bytes = file.bytes();
  Bio bio(BIO_new_mem_buf(bytes.empty() ? "" : static_cast<const void*>(bytes.data()), static_cast<int>(bytes.size())));
  if (!bio) throw std::bad_alloc();
  return bio;
}

// Instead of asking at the terminal.
int no_password(char* /*buffer*/, int /*size*/, int /*writing*/, void* asked) {
  *static_cast<bool*>(asked) = true;
  return -1;
}

void warn_of_time(X509* certificate, const std::string& path) {
  if (X509_cmp_current_time(X509_get0_notAfter(certificate)) < 0)
    log_warning("'{}' is out of date: clients will refuse the server's certificate", path);
  else if (X509_cmp_current_time(X509_get0_notBefore(certificate)) > 0)
    log_warning("'{}' is not valid yet: clients will refuse the server's certificate", path);
}

// Result of `use` on the file; if the file changed meanwhile, that is the error.
template <class Use>
Status read_pem(const std::string& path, const char* setting, const Use& use) {
  SYRINX_TRY(const WatchedFile file, open(path, setting));
  Status used = use(file);
  SYRINX_TRY_VOID(file.check_all());
  return used;
}

// Half a BEGIN is no certificate to OpenSSL, nor an error: what is still to come would be missing in the chain.
bool ends_in_half_a_mark(const WatchedFile& file) {
  const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  const std::string_view last = text.substr(text.find_last_of('\n') + 1);
  return !last.empty() && std::string_view("-----BEGIN CERTIFICATE-----").starts_with(last);
}

// The server's own first, then those that vouch for it, each for the one before.
Status use_certificates(SSL_CTX* context, const WatchedFile& file, const std::string& path) {
  const Bio bio = reader_of(file);
  const Certificate own(PEM_read_bio_X509_AUX(bio.get(), nullptr, nullptr, nullptr));
  if (!own) {
    ERR_clear_error();
    return fail(Code::kDataLoss, "'{}' holds no certificate in PEM; give the server's own with its chain", path);
  }
  if (SSL_CTX_use_certificate(context, own.get()) != 1)
    return fail(Code::kInvalidArgument, "the certificate in '{}' cannot be used: {}; make another one", path, reason());
  warn_of_time(own.get(), path);
  for (int count = 0;; ++count) {
    const Certificate next(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
    if (!next) {
      const bool at_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
      if (at_end) break;
      return fail(Code::kDataLoss, "certificate {} of '{}' is damaged: {}; copy the file again", count + 2, path,
                  reason());
    }
    if (count == kMaxChain)
      return fail(Code::kLimitExceeded, "'{}' holds more than {} certificates; give those of the chain alone", path,
                  kMaxChain + 1);
    if (SSL_CTX_add1_chain_cert(context, next.get()) != 1)
      return fail(Code::kInvalidArgument, "certificate {} of '{}' cannot be used: {}; make another one", count + 2,
                  path, reason());
  }
  ERR_clear_error();
  if (ends_in_half_a_mark(file))
    return fail(Code::kDataLoss, "'{}' ends where a certificate begins; copy the file again", path);
  return {};
}

Status use_key(SSL_CTX* context, const WatchedFile& file, const std::string& path,
               const std::string& certificate_path) {
  const Bio bio = reader_of(file);
  bool encrypted = false;
  const Key key(PEM_read_bio_PrivateKey(bio.get(), nullptr, no_password, &encrypted));
  ERR_clear_error();
  if (!key && encrypted)
    return fail(Code::kInvalidArgument,
                "the key in '{}' asks for a password; give one without, in a file that the server alone can read",
                path);
  if (!key) return fail(Code::kDataLoss, "'{}' holds no private key in PEM; give the certificate's", path);
  if (X509_check_private_key(SSL_CTX_get0_certificate(context), key.get()) != 1) {
    ERR_clear_error();
    return fail(Code::kInvalidArgument, "the key in '{}' does not belong to the certificate in '{}'; give its own",
                path, certificate_path);
  }
  if (SSL_CTX_use_PrivateKey(context, key.get()) != 1)
    return fail(Code::kInvalidArgument, "the key in '{}' cannot be used: {}; make another one", path, reason());
  warn_of_readers(path);
  return {};
}

}  // namespace

void TlsIdentity::Free::operator()(ssl_ctx_st* context) const { SSL_CTX_free(context); }

Result<std::shared_ptr<const TlsIdentity>> TlsIdentity::load(const std::string& certificate_path,
                                                             const std::string& key_path) {
  std::shared_ptr<TlsIdentity> identity(new TlsIdentity);
  identity->context_.reset(SSL_CTX_new(TLS_server_method()));
  SSL_CTX* const context = identity->context_.get();
  if (context == nullptr) return fail(Code::kInternal, "OpenSSL cannot be used for TLS: {}", reason());
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA |
                                   SSL_OP_NO_COMPRESSION);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);  // sessions go on by tickets, which the clients keep
  if (SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) != 1 || SSL_CTX_set_cipher_list(context, kCiphers12) != 1)
    return fail(Code::kInternal, "OpenSSL cannot be used for TLS: {}", reason());
  SYRINX_TRY_VOID(read_pem(certificate_path, "tls_certificate",
                           [&](const WatchedFile& file) { return use_certificates(context, file, certificate_path); }));
  SYRINX_TRY_VOID(read_pem(key_path, "tls_key", [&](const WatchedFile& file) {
    return use_key(context, file, key_path, certificate_path);
  }));
  return identity;
}

ssl_st* TlsIdentity::make_connection() const {
  ssl_st* const connection = SSL_new(context_.get());
  if (connection == nullptr) ERR_clear_error();
  return connection;
}

}  // namespace syrinx::server
