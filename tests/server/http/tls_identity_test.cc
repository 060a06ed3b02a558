// Certificates and keys that are rewritten while they are read.
#include "server/http/tls_identity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <atomic>
#include <ctime>
#include <filesystem>
#include <memory>
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

// A certificate for two days, signed by itself.
Pair make_pair() {
  EVP_PKEY* const key = EVP_EC_gen("P-256");
  X509* const certificate = X509_new();
  X509_gmtime_adj(X509_getm_notBefore(certificate), -86400);
  X509_gmtime_adj(X509_getm_notAfter(certificate), 86400);
  X509_set_pubkey(certificate, key);
  X509_sign(certificate, key, EVP_sha256());
  BIO* const pem = BIO_new(BIO_s_mem());
  PEM_write_bio_X509(pem, certificate);
  BIO* const key_pem = BIO_new(BIO_s_mem());
  PEM_write_bio_PrivateKey(key_pem, key, nullptr, nullptr, 0, nullptr, nullptr);
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

TEST(SelfSigned, FilesAreUsableAndKept) {
  const TempFolder folder;
  const std::string tls = folder.path() + "/data/tls";
  const std::vector<std::string> names = own_names("192.168.7.8");
  EXPECT_THAT(names, testing::IsSupersetOf({"localhost", "127.0.0.1", "::1", "192.168.7.8"}));
  EXPECT_THAT(own_names("0.0.0.0"), testing::Not(testing::Contains("0.0.0.0")));
  const auto files = self_signed_files(tls, names);
  ASSERT_TRUE(files) << files.error().message;
  EXPECT_TRUE(TlsIdentity::load(files->certificate, files->key));
  EXPECT_EQ(std::filesystem::status(files->key).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  const std::string first = read_text(files->certificate);
  ASSERT_TRUE(self_signed_files(tls, {"localhost", "192.168.7.8"}));
  EXPECT_EQ(read_text(files->certificate), first);
  ASSERT_TRUE(self_signed_files(tls, {"localhost", "192.168.7.9"}));
  const std::string second = read_text(files->certificate);
  EXPECT_NE(second, first);
  write_text(files->key, "damaged");
  ASSERT_TRUE(self_signed_files(tls, {"localhost"}));
  EXPECT_NE(read_text(files->certificate), second);
  EXPECT_TRUE(TlsIdentity::load(files->certificate, files->key));
}

TEST(SelfSigned, CertificateThatEndsSoonIsReplaced) {
  const TempFolder folder;
  constexpr time_t kDay = 86400;
  const time_t now = ::time(nullptr);
  const auto files = self_signed_files(folder.path(), {"localhost"}, now);
  ASSERT_TRUE(files) << files.error().message;
  const std::string first = read_text(files->certificate);
  ASSERT_TRUE(self_signed_files(folder.path(), {"localhost"}, now + 789 * kDay));
  EXPECT_EQ(read_text(files->certificate), first);
  ASSERT_TRUE(self_signed_files(folder.path(), {"localhost"}, now + 791 * kDay));
  EXPECT_NE(read_text(files->certificate), first);
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
