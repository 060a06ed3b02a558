#include "server/http/self_signed.h"

#include <arpa/inet.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/mapped_file.h"
#include "base/scoped_file.h"
#include "store/paths.h"
#include "text/unicode.h"

namespace syrinx::server {
namespace {

// Apple's systems trust none that lasts longer than 825 days.
constexpr long kDayS = 86400, kLifeS = 820 * kDayS, kRenewalS = 30 * kDayS;

template <auto kFree>
struct Freed {
  template <class T>
  void operator()(T* object) const {
    kFree(object);
  }
};
using Bio = std::unique_ptr<BIO, Freed<BIO_free>>;
using Certificate = std::unique_ptr<X509, Freed<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;
using Extension = std::unique_ptr<X509_EXTENSION, Freed<X509_EXTENSION_free>>;

Error openssl_failed() {
  ERR_clear_error();
  return {Code::kInternal, "OpenSSL makes no certificate; give one with tls_certificate and tls_key"};
}

bool is_address(const std::string& name) {
  std::array<unsigned char, 16> bytes;
  return ::inet_pton(AF_INET, name.c_str(), bytes.data()) == 1 ||
         ::inet_pton(AF_INET6, name.c_str(), bytes.data()) == 1;
}

bool is_dns_name(const std::string& name) {
  return !name.empty() && name.size() <= 253 && std::all_of(name.begin(), name.end(), [](char c) {
    const char small = text::ascii_lower(c);
    return (small >= 'a' && small <= 'z') || text::is_ascii_digit(c) || c == '-' || c == '.';
  });
}

Bio reader_of(const MappedFile& file) {
  return Bio(BIO_new_mem_buf(file.bytes().data(), static_cast<int>(file.bytes().size())));
}

bool is_for(X509* certificate, const std::string& name) {
  return is_address(name) ? X509_check_ip_asc(certificate, name.c_str(), 0) == 1
                          : X509_check_host(certificate, name.data(), name.size(), 0, nullptr) == 1;
}

// Whether the files are there, belong together, and last.
bool are_usable(const TlsFiles& files, const std::vector<std::string>& names, time_t now) {
  const auto certificate_file = MappedFile::open(files.certificate);
  const auto key_file = MappedFile::open(files.key);
  if (!certificate_file || !key_file || certificate_file->bytes().empty() || key_file->bytes().empty()) return false;
  const Bio certificate_bio = reader_of(*certificate_file), key_bio = reader_of(*key_file);
  const Certificate certificate(PEM_read_bio_X509(certificate_bio.get(), nullptr, nullptr, nullptr));
  const Key key(PEM_read_bio_PrivateKey(key_bio.get(), nullptr, nullptr, nullptr));
  ERR_clear_error();
  if (!certificate || !key || X509_check_private_key(certificate.get(), key.get()) != 1) return false;
  time_t renewal = now + kRenewalS;
  if (X509_cmp_time(X509_get0_notAfter(certificate.get()), &renewal) <= 0) return false;
  return std::all_of(names.begin(), names.end(), [&](const auto& name) { return is_for(certificate.get(), name); });
}

bool add_extension(X509* certificate, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, certificate, certificate, nullptr, nullptr, 0);
  const Extension extension(X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str()));
  return extension && X509_add_ext(certificate, extension.get(), -1) == 1;
}

std::string alternative_names(const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names)
    list += fmt::format("{}{}:{}", list.empty() ? "" : ",", is_address(name) ? "IP" : "DNS", name);
  return list;
}

// Null: OpenSSL fails.
Certificate make_certificate(EVP_PKEY* key, const std::vector<std::string>& names) {
  Certificate certificate(X509_new());
  uint64_t serial = 0;
  if (!certificate || RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof(serial)) != 1) return nullptr;
  X509* const made = certificate.get();
  X509_NAME* const subject = X509_get_subject_name(made);
  static constexpr unsigned char kName[] = "Syrinx on this machine";
  const bool is_made =
      X509_set_version(made, X509_VERSION_3) == 1 &&
      ASN1_INTEGER_set_uint64(X509_get_serialNumber(made), serial >> 1 | 1) == 1 &&
      X509_gmtime_adj(X509_getm_notBefore(made), -kDayS) != nullptr &&
      X509_gmtime_adj(X509_getm_notAfter(made), kLifeS) != nullptr && X509_set_pubkey(made, key) == 1 &&
      X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, kName, -1, -1, 0) == 1 &&
      X509_set_issuer_name(made, subject) == 1 && add_extension(made, NID_basic_constraints, "critical,CA:FALSE") &&
      add_extension(made, NID_key_usage, "critical,digitalSignature") &&
      add_extension(made, NID_ext_key_usage, "serverAuth") && add_extension(made, NID_subject_key_identifier, "hash") &&
      add_extension(made, NID_subject_alt_name, alternative_names(names)) && X509_sign(made, key, EVP_sha256()) > 0;
  return is_made ? std::move(certificate) : nullptr;
}

Status write_file(const std::string& path, BIO* content, mode_t mode) {
  char* text = nullptr;
  const long size = BIO_get_mem_data(content, &text);
  SYRINX_TRY(ScopedFile file, ScopedFile::create(path));
  if (::fchmod(file.descriptor(), mode) != 0)
    return fail(Code::kIo, "the permissions of '{}' cannot be set; choose another data folder (SYRINX_HOME)", path);
  SYRINX_TRY_VOID(file.write(std::string_view(text, static_cast<size_t>(size))));
  return file.commit();
}

Status make_files(const TlsFiles& files, const std::vector<std::string>& names) {
  const Key key(EVP_EC_gen("P-256"));
  const Certificate certificate = key ? make_certificate(key.get(), names) : nullptr;
  const Bio certificate_text(BIO_new(BIO_s_mem())), key_text(BIO_new(BIO_s_mem()));
  if (!certificate || !certificate_text || !key_text ||
      PEM_write_bio_X509(certificate_text.get(), certificate.get()) != 1 ||
      PEM_write_bio_PrivateKey(key_text.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) != 1)
    return tl::unexpected(openssl_failed());
  SYRINX_TRY_VOID(write_file(files.key, key_text.get(), 0600));
  return write_file(files.certificate, certificate_text.get(), 0644);
}

}  // namespace

std::vector<std::string> own_names(const std::string& host) {
  std::vector<std::string> names = {"localhost", "127.0.0.1", "::1", "host.docker.internal",
                                    "host.containers.internal"};
  std::array<char, 256> own{};
  if (::gethostname(own.data(), own.size() - 1) == 0) names.emplace_back(own.data());
  if (host != "0.0.0.0" && host != "::") names.push_back(host);
  std::vector<std::string> usable;
  for (const std::string& name : names)
    if ((is_address(name) || is_dns_name(name)) && std::find(usable.begin(), usable.end(), name) == usable.end())
      usable.push_back(name);
  return usable;
}

Result<TlsFiles> self_signed_files(const std::string& folder, const std::vector<std::string>& names,
                                   std::optional<time_t> now) {
  TlsFiles files{.certificate = folder + "/certificate.pem", .key = folder + "/key.pem"};
  if (are_usable(files, names, now.value_or(::time(nullptr)))) return files;
  SYRINX_TRY_VOID(make_folders(folder));
  SYRINX_TRY_VOID(make_files(files, names));
  return files;
}

}  // namespace syrinx::server
