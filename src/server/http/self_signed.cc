#include "server/http/self_signed.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <memory>
#include <string_view>
#include <utility>

#include "base/mapped_file.h"
#include "base/scoped_file.h"
#include "store/paths.h"
#include "text/unicode.h"

namespace syrinx::server {
namespace {

// Apple's systems trust none that lasts longer than 825 days.
constexpr long kDayS = 86400, kLifeS = 820 * kDayS, kRenewalS = 30 * kDayS;
constexpr const char* kIssuer = "Syrinx on this machine";  // by which its own are known
constexpr size_t kMaxNames = 64;

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

// Instead of asking at the terminal.
int no_password(char* /*buffer*/, int /*size*/, int /*writing*/, void* /*asked*/) { return -1; }

struct Pair {
  bool has_certificate = false, has_key = false;  // files, whatever they hold
  Certificate certificate;
  Key key;
};

// Nothing where there is no such file.
template <class Object, class Read>
Status read_file(const std::string& path, bool& is_there, Object& object, const Read& read) {
  const auto file = MappedFile::open(path);
  if (!file && file.error().code == Code::kNotFound) return {};
  if (!file) return tl::unexpected(file.error());
  is_there = true;
  const Bio bio = file->bytes().empty() ? nullptr : reader_of(*file);
  if (bio) object.reset(read(bio.get(), nullptr, no_password, nullptr));
  ERR_clear_error();
  return {};
}

Result<Pair> read_pair(const TlsFiles& files) {
  Pair pair;
  SYRINX_TRY_VOID(read_file(files.certificate, pair.has_certificate, pair.certificate, PEM_read_bio_X509));
  SYRINX_TRY_VOID(read_file(files.key, pair.has_key, pair.key, PEM_read_bio_PrivateKey));
  return pair;
}

bool is_own(X509* certificate) {
  std::array<char, 64> issuer{};
  X509_NAME_get_text_by_NID(X509_get_issuer_name(certificate), NID_commonName, issuer.data(), issuer.size());
  return std::string_view(issuer.data()) == kIssuer;
}

// A key by itself is kept, whosever it is: a start may have ended between the two files.
Status check_own(const Pair& pair, const TlsFiles& files) {
  if (pair.has_certificate && (!pair.certificate || !is_own(pair.certificate.get())))
    return fail(Code::kInvalidArgument,
                "'{}' is no certificate that the server has made, and stays; move it and '{}' away, or name them in "
                "tls_certificate and tls_key",
                files.certificate, files.key);
  if (!pair.has_certificate && pair.has_key && !pair.key)
    return fail(Code::kInvalidArgument,
                "'{}' is no key that the server has made, and stays; move it away, or name it in tls_key", files.key);
  return {};
}

// Whether the two belong together, and last.
bool are_usable(const Pair& pair, const std::vector<std::string>& names, time_t now) {
  if (!pair.certificate || !pair.key) return false;
  X509* const certificate = pair.certificate.get();
  const bool is_pair = X509_check_private_key(certificate, pair.key.get()) == 1;
  ERR_clear_error();
  time_t renewal = now + kRenewalS;
  if (!is_pair || X509_cmp_time(X509_get0_notAfter(certificate), &renewal) <= 0) return false;
  return std::all_of(names.begin(), names.end(), [&](const auto& name) { return is_for(certificate, name); });
}

std::string text_of(const GENERAL_NAME* name) {
  int kind = 0;
  const auto* const value = static_cast<const ASN1_STRING*>(GENERAL_NAME_get0_value(name, &kind));
  if (kind != GEN_DNS && kind != GEN_IPADD) return {};
  std::string bytes(reinterpret_cast<const char*>(ASN1_STRING_get0_data(value)),
                          static_cast<size_t>(ASN1_STRING_length(value)));
  if (kind == GEN_DNS) return bytes;
  std::array<char, INET6_ADDRSTRLEN> text{};
  const bool is_known = bytes.size() == 4 || bytes.size() == 16;
  if (is_known) ::inet_ntop(bytes.size() == 4 ? AF_INET : AF_INET6, bytes.data(), text.data(), text.size());
  return text.data();
}

std::vector<std::string> names_of(X509* certificate) {
  std::vector<std::string> texts;
  const std::unique_ptr<GENERAL_NAMES, Freed<GENERAL_NAMES_free>> names(
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  const int count = names ? sk_GENERAL_NAME_num(names.get()) : 0;
  texts.reserve(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) texts.push_back(text_of(sk_GENERAL_NAME_value(names.get(), i)));
  return texts;
}

// Each that a certificate can hold once, at most so many.
std::vector<std::string> usable_names(const std::vector<std::string>& names) {
  std::vector<std::string> usable;
  for (const std::string& name : names)
    if (usable.size() < kMaxNames && (is_address(name) || is_dns_name(name)) &&
        std::find(usable.begin(), usable.end(), name) == usable.end())
      usable.push_back(name);
  return usable;
}

// Addresses by which the machine's network reaches it.
std::vector<std::string> network_addresses() {
  std::vector<std::string> addresses;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return addresses;
  for (const ifaddrs* at = list; at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr == nullptr || (at->ifa_flags & IFF_LOOPBACK) != 0) continue;
    std::array<char, INET6_ADDRSTRLEN> text{};
    if (at->ifa_addr->sa_family == AF_INET)
      ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(at->ifa_addr)->sin_addr, text.data(), text.size());
    if (const auto* const six = reinterpret_cast<const sockaddr_in6*>(at->ifa_addr);
        at->ifa_addr->sa_family == AF_INET6 && !IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr))
      ::inet_ntop(AF_INET6, &six->sin6_addr, text.data(), text.size());
    if (text[0] != '\0') addresses.emplace_back(text.data());
  }
  ::freeifaddrs(list);
  return addresses;
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
  const bool is_made =
      X509_set_version(made, X509_VERSION_3) == 1 &&
      ASN1_INTEGER_set_uint64(X509_get_serialNumber(made), serial >> 1 | 1) == 1 &&
      X509_gmtime_adj(X509_getm_notBefore(made), -kDayS) != nullptr &&
      X509_gmtime_adj(X509_getm_notAfter(made), kLifeS) != nullptr && X509_set_pubkey(made, key) == 1 &&
      X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>(kIssuer), -1, -1,
                                 0) == 1 &&
      X509_set_issuer_name(made, subject) == 1 && add_extension(made, NID_basic_constraints, "critical,CA:FALSE") &&
      add_extension(made, NID_key_usage, "critical,digitalSignature") &&
      add_extension(made, NID_ext_key_usage, "serverAuth") && add_extension(made, NID_subject_key_identifier, "hash") &&
      add_extension(made, NID_subject_alt_name, alternative_names(names)) && X509_sign(made, key, EVP_sha256()) > 0;
  return is_made ? std::move(certificate) : nullptr;
}

Status write_file(const std::string& path, BIO* content, mode_t mode) {
  char* text = nullptr;
  const long size = BIO_get_mem_data(content, &text);
  SYRINX_TRY(ScopedFile file, ScopedFile::create(path, mode));
  if (::fchmod(file.descriptor(), mode) != 0)
    return fail(Code::kIo, "the permissions of '{}' cannot be set; choose another data folder (SYRINX_HOME)", path);
  SYRINX_TRY_VOID(file.write(std::string_view(text, static_cast<size_t>(size))));
  return file.commit();
}

// `kept`: a key that is there already; null: a new one is made.
Status make_files(const TlsFiles& files, const std::vector<std::string>& names, EVP_PKEY* kept) {
  const Key made(kept == nullptr ? EVP_EC_gen("P-256") : nullptr);
  EVP_PKEY* const key = kept == nullptr ? made.get() : kept;
  const Certificate certificate = key != nullptr ? make_certificate(key, names) : nullptr;
  const Bio certificate_text(BIO_new(BIO_s_mem())), key_text(BIO_new(BIO_s_mem()));
  if (!certificate || !certificate_text || !key_text ||
      PEM_write_bio_X509(certificate_text.get(), certificate.get()) != 1 ||
      PEM_write_bio_PrivateKey(key_text.get(), key, nullptr, nullptr, 0, nullptr, nullptr) != 1)
    return tl::unexpected(openssl_failed());
  if (kept == nullptr) SYRINX_TRY_VOID(write_file(files.key, key_text.get(), 0600));
  return write_file(files.certificate, certificate_text.get(), 0644);
}

// As long as it lives no other process makes files there.
class FolderLock {
 public:
  explicit FolderLock(const std::string& folder)
      : descriptor_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    if (descriptor_ >= 0) ::flock(descriptor_, LOCK_EX);
  }
  ~FolderLock() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  const int descriptor_;
};

TlsFiles files_in(const std::string& folder) {
  return {.certificate = folder + "/certificate.pem", .key = folder + "/key.pem"};
}

}  // namespace

TlsNames own_names(const std::string& host) {
  TlsNames names;
  names.needed = {"localhost", "127.0.0.1", "::1", "host.docker.internal", "host.containers.internal"};
  const bool is_every = host == "0.0.0.0" || host == "::";
  if (is_every) names.other = network_addresses();
  if (!is_every) names.needed.push_back(host);
  std::array<char, 256> own{};
  if (::gethostname(own.data(), own.size() - 1) == 0) names.other.emplace_back(own.data());
  return {.needed = usable_names(names.needed), .other = usable_names(names.other)};
}

Result<TlsFiles> self_signed_files(const std::string& folder, const TlsNames& names, std::optional<time_t> now) {
  TlsFiles files = files_in(folder);
  SYRINX_TRY_VOID(make_folders(folder));
  const FolderLock lock(folder);
  SYRINX_TRY(const Pair pair, read_pair(files));
  SYRINX_TRY_VOID(check_own(pair, files));
  if (pair.has_key && ::chmod(files.key.c_str(), 0600) != 0)
    return fail(Code::kIo, "'{}' can be read by others, and its permissions cannot be set; see to its owner",
                files.key);
  if (are_usable(pair, names.needed, now.value_or(::time(nullptr)))) return files;
  std::vector<std::string> all = names.needed;
  all.insert(all.end(), names.other.begin(), names.other.end());
  if (pair.certificate) std::ranges::copy(names_of(pair.certificate.get()), std::back_inserter(all));
  SYRINX_TRY_VOID(make_files(files, usable_names(all), pair.has_certificate ? nullptr : pair.key.get()));
  files.is_new = true;
  return files;
}

Status check_self_signed(const std::string& folder) {
  const TlsFiles files = files_in(folder);
  std::string there = folder;  // or where it would be made
  while (there.size() > 1 && ::access(there.c_str(), F_OK) != 0) there.resize(std::max<size_t>(there.rfind('/'), 1));
  struct stat info {};
  if (::stat(there.c_str(), &info) != 0 || !S_ISDIR(info.st_mode) || ::access(there.c_str(), W_OK | X_OK) != 0)
    return fail(Code::kIo,
                "'tls_self_signed': no certificate can be written to '{}'; SYRINX_HOME chooses another place", folder);
  SYRINX_TRY(const Pair pair, read_pair(files));
  return check_own(pair, files);
}

}  // namespace syrinx::server
