// Names of files, and where the environment says that the hub and its cache are.
#include "store/checkpoint_reference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/http_headers.h"
#include "store/hub.h"
#include "tests/store/files.h"

namespace syrinx {
namespace {

using testing::Folder;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::ScopedVariable;
using testing::write_text;

const std::string kCommit(40, 'a');

TEST(Reference, KnowsThreeKinds) {
  const auto hub = parse_reference("hf://kyutai/pocket-tts/languages/english/model.safetensors@" + kCommit);
  ASSERT_TRUE(hub);
  EXPECT_EQ(hub->repository, "kyutai/pocket-tts");
  EXPECT_EQ(hub->path, "languages/english/model.safetensors");
  EXPECT_EQ(hub->revision, kCommit);
  EXPECT_EQ(parse_reference("hf://a/b/c")->text, "hf://a/b/c@main");
  EXPECT_EQ(parse_reference("hf://a/b/c@refs/pr/1")->revision, "refs/pr/1");
  EXPECT_EQ(parse_reference("https://h:8/x?y")->kind, CheckpointReference::Kind::kUrl);
  EXPECT_EQ(parse_reference("../x/y z")->kind, CheckpointReference::Kind::kPath);
  for (const char* const bad : {"",
                                "hf://",
                                "hf://a",
                                "hf://a/b",
                                "hf://a/b/",
                                "hf://a/b/../c",
                                "hf://a/b/c/",
                                "hf://a//b/c",
                                "hf://a/b/c@",
                                "hf://a/b/c@../d",
                                "hf://a/b/c@x y",
                                "hf://../b/c",
                                "hf://a/b/c d",
                                "hf://a/b/c?d",
                                "file:///etc/passwd",
                                "ftp://h/x",
                                "s3://b/k",
                                "http://",
                                "https:///x",
                                "http://user:secret@h/x",
                                "http://h/a b",
                                "http://h/\xc3\xa4",
                                "a\nb"}) {
    const auto parsed = parse_reference(bad);
    ASSERT_FALSE(parsed) << bad;
    EXPECT_EQ(parsed.error().code, Code::kInvalidArgument) << bad;
    EXPECT_THAT(parsed.error().message, Not(HasSubstr("secret")));
  }
  EXPECT_EQ(parse_reference(std::string(5000, 'x')).error().code, Code::kLimitExceeded);
}

TEST(Reference, SuffixesAreThoseOfTheMaker) {
  EXPECT_EQ(url_suffix("https://h/a/b.wav?x=y.z#q"), ".wav");
  EXPECT_EQ(url_suffix("https://h/a.b/c"), "");
  EXPECT_EQ(url_suffix("https://h.com"), "");
  EXPECT_EQ(url_suffix("https://h/.hidden"), "");
  EXPECT_EQ(url_suffix("https://h/a."), "");
  EXPECT_EQ(url_suffix("https://h/a.tar.gz/"), ".gz");
}

TEST(HubSettings, FollowTheEnvironment) {
  const Folder home;
  const ScopedVariable variables[] = {{"HOME", home.path()},
                                      {"XDG_CACHE_HOME", ""},
                                      {"HF_HOME", ""},
                                      {"HF_HUB_CACHE", ""},
                                      {"HF_TOKEN", ""},
                                      {"HUGGING_FACE_HUB_TOKEN", ""},
                                      {"HUGGINGFACE_HUB_CACHE", ""},
                                      {"HF_TOKEN_PATH", ""},
                                      {"HF_ENDPOINT", ""},
                                      {"HF_HUB_OFFLINE", ""},
                                      {"TRANSFORMERS_OFFLINE", ""}};
  auto settings = HubSettings::from_environment();
  ASSERT_TRUE(settings);
  EXPECT_EQ(settings->endpoint, "https://huggingface.co");
  EXPECT_EQ(settings->cache, home / ".cache/huggingface/hub");
  EXPECT_EQ(settings->maker_cache, home / ".cache/pocket_tts");
  EXPECT_TRUE(settings->token.empty());
  EXPECT_FALSE(settings->offline);
  write_text(home / ".cache/huggingface/token", "hf_file\n");
  EXPECT_EQ(HubSettings::from_environment()->token, "hf_file");
  const ScopedVariable old_token("HUGGING_FACE_HUB_TOKEN", "hf_old");
  EXPECT_EQ(HubSettings::from_environment()->token, "hf_old");
  const ScopedVariable token("HF_TOKEN", " hf_new ");
  EXPECT_EQ(HubSettings::from_environment()->token, "hf_new");
  EXPECT_EQ(HubSettings::from_environment()->token_place, "HF_TOKEN");
  const ScopedVariable hub_home("HF_HOME", "~/hf");
  const ScopedVariable endpoint("HF_ENDPOINT", "https://mirror.example/hub/");
  const ScopedVariable offline("HF_HUB_OFFLINE", "yes");
  settings = HubSettings::from_environment();
  EXPECT_EQ(settings->cache, home / "hf/hub");
  EXPECT_EQ(settings->endpoint, "https://mirror.example/hub");
  EXPECT_TRUE(settings->offline);
  {
    const ScopedVariable cache("HF_HUB_CACHE", "/big/hub");
    EXPECT_EQ(HubSettings::from_environment()->cache, "/big/hub");
    const ScopedVariable wrong("HF_ENDPOINT", "mirror.example");
    EXPECT_EQ(HubSettings::from_environment().error().code, Code::kInvalidArgument);
  }
  const ScopedVariable evil("HF_TOKEN", "hf_a\r\nHost: elsewhere");
  EXPECT_EQ(HubSettings::from_environment().error().code, Code::kInvalidArgument);
  EXPECT_THAT(HubSettings::from_environment().error().message, Not(HasSubstr("hf_a")));
}

TEST(HttpHeaders, AreReadAsTheyAreWritten) {
  EXPECT_EQ(header_value("ETag:  \"x\" \r\n", "etag"), "\"x\"");
  EXPECT_EQ(header_value("X-LINKED-SIZE: 5\r\n", "x-linked-size"), "5");
  EXPECT_EQ(header_value("ETag:\r\n", "etag"), "");
  EXPECT_EQ(header_value("ETag-2: x\r\n", "etag"), std::nullopt);
  EXPECT_EQ(header_value("etag", "etag"), std::nullopt);
  EXPECT_EQ(header_number("18446744073709551615"), UINT64_MAX);
  for (const char* const bad : {"", "-1", "1x", " 1", "18446744073709551616"})
    EXPECT_EQ(header_number(bad), std::nullopt) << bad;
  EXPECT_EQ(parse_content_range("bytes 5-99/100")->first, 5u);
  EXPECT_EQ(parse_content_range("bytes 5-99/100")->total, 100u);
  EXPECT_EQ(parse_content_range("bytes */100")->total, 100u);
  for (const char* const bad : {"", "bytes", "bytes 5-99", "bytes 5-99/*", "bytes x-99/100", "items 5-99/100"})
    EXPECT_FALSE(parse_content_range(bad)) << bad;
}

}  // namespace
}  // namespace syrinx
