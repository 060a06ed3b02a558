// Certificates and keys that are rewritten while they are read.
#include "server/http/tls_identity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <ctime>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/watched_pages.h"
#include "server/http/self_signed.h"
#include "tests/base/temp_folder.h"

namespace syrinx::server {
namespace {

using testing::HasSubstr;

struct Pair {
  std::string certificate, key;
};

std::string text_of(BIO* bio) {
  char* text = nullptr;
  const long size = BIO_get_mem_data(bio, &text);
  std::string copy(text, static_cast<size_t>(size));
  BIO_free(bio);
  return copy;
}

// A certificate for two days, signed by itself; its key is encrypted where there is a password.
Pair make_pair(std::string password = "") {
  EVP_PKEY* const key = EVP_EC_gen("P-256");
  X509* const certificate = X509_new();
  X509_gmtime_adj(X509_getm_notBefore(certificate), -86400);
  X509_gmtime_adj(X509_getm_notAfter(certificate), 86400);
  X509_set_pubkey(certificate, key);
  X509_sign(certificate, key, EVP_sha256());
  BIO* const pem = BIO_new(BIO_s_mem());
  PEM_write_bio_X509(pem, certificate);
  BIO* const key_pem = BIO_new(BIO_s_mem());
  PEM_write_bio_PrivateKey(key_pem, key, password.empty() ? nullptr : EVP_aes_256_cbc(), nullptr, 0, nullptr,
                           password.empty() ? nullptr : password.data());
  X509_free(certificate);
  EVP_PKEY_free(key);
  return {text_of(pem), text_of(key_pem)};
}

class TlsIdentityTest : public testing::Test {
 protected:
  void SetUp() override {
    write_text(key_path_, "");
    std::filesystem::permissions(key_path_, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  }
  // The fault; empty: there is none.
  std::string load(const std::string& certificate, const std::string& key) const {
    write_text(certificate_path_, certificate);
    write_text(key_path_, key);
    return load();
  }
  std::string load() const {
    const auto loaded = TlsIdentity::load(certificate_path_, key_path_);
    return loaded ? "" : loaded.error().message;
  }

  const TempFolder folder_;
  const std::string certificate_path_ = folder_.file("a.pem"), key_path_ = folder_.file("a.key");
  const Pair pair_ = make_pair();
};

class SelfSigned : public testing::Test {
 protected:
  // Whether a certificate for these names was made now.
  bool is_made(const std::vector<std::string>& needed, const std::vector<std::string>& other = {},
               std::optional<time_t> now = {}) {
    const std::string before = std::filesystem::exists(certificate_) ? read_text(certificate_) : "";
    const auto files = self_signed_files(tls_, {.needed = needed, .other = other}, now);
    EXPECT_TRUE(files) << files.error().message;
    if (!files) return false;
    EXPECT_TRUE(TlsIdentity::load(files->certificate, files->key));
    EXPECT_EQ(permissions(), std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
    EXPECT_EQ(files->is_new, read_text(certificate_) != before);
    return files->is_new;
  }
  std::filesystem::perms permissions() const { return std::filesystem::status(key_).permissions(); }
  std::string refusal() const {
    const auto files = self_signed_files(tls_, {.needed = {"localhost"}, .other = {}});
    const Status checked = check_self_signed(tls_);
    EXPECT_EQ(files.has_value(), checked.has_value());
    if (files) return "";
    EXPECT_EQ(checked.error().message, files.error().message);
    return files.error().message;
  }

  const TempFolder folder_;
  const std::string tls_ = folder_.path() + "/data/tls";
  const std::string certificate_ = tls_ + "/certificate.pem", key_ = tls_ + "/key.pem";
};

TEST_F(SelfSigned, NamesAreThoseOfMachineAndHost) {
  const TlsNames names = own_names("192.168.7.8");
  EXPECT_THAT(names.needed, testing::IsSupersetOf({"localhost", "127.0.0.1", "::1", "192.168.7.8"}));
  std::array<char, 256> own{};
  ASSERT_EQ(::gethostname(own.data(), own.size() - 1), 0);
  EXPECT_THAT(names.needed, testing::Not(testing::Contains(std::string(own.data()))));
  EXPECT_THAT(own_names("0.0.0.0").needed, testing::Not(testing::Contains("0.0.0.0")));
}

TEST_F(SelfSigned, FilesAreUsableAndKept) {
  EXPECT_TRUE(check_self_signed(tls_));
  EXPECT_FALSE(std::filesystem::exists(tls_));
  EXPECT_TRUE(is_made({"localhost", "192.168.7.8"}, {"first"}));
  EXPECT_FALSE(is_made({"localhost", "192.168.7.8"}, {"second"}));  // a machine may have another name at each start
  EXPECT_TRUE(is_made({"localhost", "192.168.7.9"}));
  EXPECT_FALSE(is_made({"192.168.7.8", "192.168.7.9", "first", "localhost"}));  // the old names stay
  write_text(key_, "damaged");
  EXPECT_TRUE(is_made({"localhost"}));
  std::filesystem::permissions(key_, std::filesystem::perms::others_read, std::filesystem::perm_options::add);
  EXPECT_FALSE(is_made({"localhost"}));
  std::filesystem::remove(certificate_);  // as where a start has ended between the two
  const std::string key = read_text(key_);
  EXPECT_TRUE(is_made({"localhost"}));
  EXPECT_EQ(read_text(key_), key);
}

TEST_F(SelfSigned, CertificateThatEndsSoonIsReplaced) {
  constexpr time_t kDay = 86400;
  const time_t now = ::time(nullptr);
  EXPECT_TRUE(is_made({"localhost"}, {}, now));
  EXPECT_FALSE(is_made({"localhost"}, {}, now + 789 * kDay));
  EXPECT_TRUE(is_made({"localhost"}, {}, now + 791 * kDay));
}

TEST_F(SelfSigned, FilesOfOthersStay) {
  const Pair other = make_pair();
  std::filesystem::create_directories(tls_);
  write_text(certificate_, other.certificate);
  write_text(key_, "locked");
  EXPECT_THAT(refusal(), HasSubstr("is no certificate that the server has made"));
  EXPECT_EQ(read_text(certificate_), other.certificate);
  std::filesystem::remove(certificate_);
  EXPECT_THAT(refusal(), HasSubstr("is no key that the server has made"));
  EXPECT_EQ(read_text(key_), "locked");
  EXPECT_FALSE(std::filesystem::exists(certificate_));
}

// Asked at a terminal for its password, a server would not start.
TEST_F(SelfSigned, EncryptedKeyIsRefused) {
  const Pair locked = make_pair("secret");
  std::filesystem::create_directories(tls_);
  write_text(key_, locked.key);
  ASSERT_THAT(locked.key, HasSubstr("ENCRYPTED"));
  EXPECT_THAT(refusal(), HasSubstr("is no key that the server has made"));
  write_text(certificate_, locked.certificate);
  EXPECT_THAT(refusal(), HasSubstr("is no certificate that the server has made"));
  EXPECT_EQ(read_text(key_), locked.key);
}

TEST_F(SelfSigned, StartsAtOnceShareOnePair) {
  std::vector<std::thread> starts;
  std::atomic<int> made{0};
  for (int i = 0; i < 8; ++i)
    starts.emplace_back([&] {
      const auto files = self_signed_files(tls_, {.needed = {"localhost"}, .other = {}});
      EXPECT_TRUE(files && TlsIdentity::load(files->certificate, files->key));
      if (files && files->is_new) ++made;
    });
  for (std::thread& start : starts) start.join();
  EXPECT_EQ(made, 1);
}

TEST_F(SelfSigned, FolderThatCannotBeMadeIsNamed) {
  write_text(folder_.path() + "/data", "a file");
  const Status checked = check_self_signed(tls_);
  ASSERT_FALSE(checked);
  EXPECT_THAT(checked.error().message, HasSubstr("no certificate can be written to"));
}

TEST_F(TlsIdentityTest, HalfAKeyIsNone) {
  EXPECT_EQ(load(pair_.certificate, pair_.key), "");
  const size_t last_line = pair_.key.find("-----END");
  for (size_t size = 0; size < last_line; size += 5)
    EXPECT_THAT(load(pair_.certificate, pair_.key.substr(0, size)), HasSubstr("holds no private key in PEM")) << size;
}

// But where it ends before a certificate begins: so ends one that is shorter, too.
TEST_F(TlsIdentityTest, HalfAChainIsNone) {
  const std::string one = pair_.certificate, chain = one + "# of the authority\n" + one;
  const size_t second = chain.rfind("-----BEGIN"), end = chain.find_last_not_of('\n');
  EXPECT_EQ(load(chain, pair_.key), "");
  for (size_t size = one.size(); size < end; ++size)
    EXPECT_EQ(load(chain.substr(0, size), pair_.key).empty(), size <= second) << size;
}

// As `cp` does it: what is read is whole, or nothing comes of it, and reading beyond the end ends no server.
TEST_F(TlsIdentityTest, FilesMayBeWrittenWhileTheyAreRead) {
  catch_missing_pages();  // as programs do
  EXPECT_EQ(load(pair_.certificate, pair_.key), "");
  std::atomic<bool> is_over{false};
  std::thread writer([&] {
    while (!is_over) {
      write_text(certificate_path_, pair_.certificate);
      write_text(key_path_, pair_.key);
    }
  });
  for (int i = 0; i < 500; ++i) EXPECT_THAT(load(), testing::AnyOf("", HasSubstr("a.pem'"), HasSubstr("a.key'")));
  is_over = true;
  writer.join();
  EXPECT_EQ(load(), "");
}

}  // namespace
}  // namespace syrinx::server
