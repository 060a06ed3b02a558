#include "server/settings/access.h"
#include "base/key_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>

#include <fstream>
#include <span>
#include <utility>

#include "server/http/base64.h"
#include "server/http/request_id.h"
#include "tests/base/temp_folder.h"

namespace syrinx::server {
namespace {

using testing::HasSubstr;

TEST(ApiKeys, OneOfTheKeysAndNothingElse) {
  Settings settings;
  settings.api_keys = {"first", "second"};
  const auto keys = ApiKeys::load(settings);
  ASSERT_TRUE(keys);
  EXPECT_TRUE(keys->asked_for());
  for (const char* good : {"Bearer first", "bearer second", "BEARER first"}) EXPECT_TRUE(keys->allow(good)) << good;
  for (const char* wrong : {"", "first", "Bearer", "Bearer ", "Bearer firs", "Bearer first ", "Bearer firstsecond",
                            "Basic first", "Bearer  first"})
    EXPECT_FALSE(keys->allow(wrong)) << wrong;
}

TEST(ApiKeys, AFileHasOneALine) {
  const TempFolder folder;
  Settings settings;
  settings.api_key_file = folder.path() + "/keys";
  EXPECT_EQ(ApiKeys::load(settings).error().code, Code::kNotFound);
  EXPECT_THAT(ApiKeys::load(settings).error().message, testing::StartsWith("'api_key_file': "));
  std::ofstream(settings.api_key_file) << "\n  one \r\ntwo";
  const auto keys = ApiKeys::load(settings);
  ASSERT_TRUE(keys);
  EXPECT_TRUE(keys->allow("Bearer one") && keys->allow("Bearer two"));
  EXPECT_FALSE(keys->allow("Bearer "));
  std::ofstream(settings.api_key_file) << "\n \n";
  EXPECT_THAT(ApiKeys::load(settings).error().message, HasSubstr("holds no API key; write one a line"));
  std::ofstream(settings.api_key_file) << std::string(513, 'k');
  EXPECT_THAT(ApiKeys::load(settings).error().message, HasSubstr("give at most 512"));
  for (const char* bad : {"one\ntwo words\n", "\n\ttab\there\r\n", "one\ncaf\xc3\xa9\n", "one\n\x7f"}) {
    std::ofstream(settings.api_key_file) << bad;
    const auto loaded = ApiKeys::load(settings);
    ASSERT_FALSE(loaded) << bad;
    EXPECT_EQ(loaded.error().message,
              fmt::format("'api_key_file': '{}', line 2 holds a key with a blank, a control character or one "
                          "beyond ASCII, which no header can bear; choose another one",
                          settings.api_key_file));
  }
  std::ofstream(settings.api_key_file) << "!#\"'~\n";
  EXPECT_TRUE(ApiKeys::load(settings)->allow("Bearer !#\"'~"));
  std::ofstream(settings.api_key_file) << "# of the lobby\nnew#1\n  #old\n#old key\n";
  EXPECT_TRUE(ApiKeys::load(settings)->allow("Bearer new#1"));
  EXPECT_FALSE(ApiKeys::load(settings)->allow("Bearer #old"));
  std::ofstream(settings.api_key_file) << "#old\n";
  EXPECT_THAT(ApiKeys::load(settings).error().message, HasSubstr("holds no API key; write one a line"));
  EXPECT_FALSE(ApiKeys::load(Settings{})->asked_for());
}

TEST(ApiKeys, AFileMayBeOpenToEverybody) {
  const TempFolder folder;
  const std::string path = folder.path() + "/keys";
  EXPECT_FALSE(others_can_read(path));
  std::ofstream(path) << "key";
  for (const auto& [mode, open] : {std::pair(0600, false), std::pair(0640, false), std::pair(0644, true)}) {
    ASSERT_EQ(::chmod(path.c_str(), static_cast<mode_t>(mode)), 0);
    EXPECT_EQ(others_can_read(path), open) << mode;
  }
}

TEST(Origins, OnesOwnPageAndThoseListed) {
  EXPECT_TRUE(may_ask("", "anything", {}, false));
  for (const char* host : {"localhost:8080", "127.0.0.1:8080", "[::1]:8080", "192.168.1.2"}) {
    EXPECT_TRUE(may_ask(std::string("http://") + host, host, {}, false)) << host;
    EXPECT_TRUE(may_ask(std::string("https://") + host, host, {}, false)) << host;
  }
  EXPECT_FALSE(may_ask("http://evil.example:8080", "evil.example:8080", {}, false));  // a name that leads here
  EXPECT_TRUE(may_ask("http://speech:8080", "speech:8080", {}, false));
  // As websocket-client of Python says it of whatever server it asks.
  EXPECT_TRUE(may_ask("https://speech.example", "speech.example", {}, true));
  EXPECT_FALSE(may_ask("https://evil.example", "speech.example", {}, true));
  EXPECT_FALSE(may_ask("http://localhost:3000", "localhost:8080", {}, false));
  EXPECT_FALSE(may_ask("null", "localhost:8080", {}, false));
  EXPECT_FALSE(may_ask("https://good.example", "localhost", {"https://better.example"}, false));
  EXPECT_TRUE(may_ask("https://good.example", "localhost", {"https://good.example"}, false));
  EXPECT_TRUE(may_ask("https://good.example", "localhost", {"*"}, false));
  // Pages from files have these, in browsers and in web views of programs.
  for (const char* page : {"null", "file://"}) {
    EXPECT_FALSE(may_ask(page, "localhost", {"https://good.example"}, false)) << page;
    EXPECT_TRUE(may_ask(page, "localhost", {page}, false)) << page;
  }
}

TEST(Origins, AForeignNameThatLeadsHereIsNotOurs) {
  for (const char* host : {"", "localhost:8080", "127.0.0.1:8080", "[::1]:8080", "speech:8080", "a.localhost",
                           "host.docker.internal:8080", "host.containers.internal", "gateway.docker.internal",
                           "LOCALHOST:8080", "Host.Docker.Internal", "localhost.", "host.docker.internal.:8080"})
    EXPECT_TRUE(is_own_host(host, {})) << host;
  for (const char* host : {"evil.example", "evil.example:8080", "127.0.0.1.evil.example", "localhost.evil.example",
                           "internal.evil.example", "evilinternal.example", "x.internal", "wiki.corp.internal",
                           "docker.internal", "host.docker.internal.example", "evil.example."}) {
    EXPECT_FALSE(is_own_host(host, {})) << host;
    EXPECT_FALSE(is_own_host(host, {"https://good.example"})) << host;
  }
  EXPECT_TRUE(is_own_host("good.example", {"https://good.example"}));
  EXPECT_TRUE(is_own_host("good.example:81", {"https://good.example:80"}));
  EXPECT_TRUE(is_own_host("good.example", {"*"}));
}

TEST(Base64, TheVectorsOfItsSpecification) {
  const std::pair<const char*, const char*> vectors[] = {{"", ""},
                                                         {"f", "Zg=="},
                                                         {"fo", "Zm8="},
                                                         {"foo", "Zm9v"},
                                                         {"foob", "Zm9vYg=="},
                                                         {"fooba", "Zm9vYmE="},
                                                         {"foobar", "Zm9vYmFy"},
                                                         {"\xff\xfe", "//4="}};
  for (const auto& [bytes, text] : vectors) {
    const std::string_view view(bytes);
    EXPECT_EQ(base64(std::as_bytes(std::span(view.data(), view.size()))), text);
  }
}

TEST(RequestId, OursAreTakenForOnes) {
  const std::string id = new_request_id();
  EXPECT_EQ(id.size(), 32U);
  EXPECT_NE(id, new_request_id());
  for (const std::string& good : {id, std::string("a-B_9."), std::string(64, 'x')}) EXPECT_TRUE(is_request_id(good));
  for (const std::string& bad :
       {std::string(), std::string(65, 'x'), std::string("a b"), std::string("a\r\nb"), std::string("\xc3\xa4")})
    EXPECT_FALSE(is_request_id(bad));
}

}  // namespace
}  // namespace syrinx::server
