// A download meets every fault that a network has; the file under its name is whole or absent.
#include "store/download.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include "tests/store/files.h"
#include "tests/store/http_server.h"

namespace syrinx {
namespace {

using testing::Folder;
using ::testing::HasSubstr;
using testing::HttpAnswer;
using testing::HttpRequest;
using testing::HttpServer;
using testing::serve_range;

class Download : public ::testing::Test {
 protected:
  Download() {
    options_.first_pause_ms = 1;
    options_.longest_pause_ms = 4;
    options_.on_notice = [this](const std::string& text) { notices_.push_back(text); };
  }

  Status fetch(const std::string& url) {
    Downloader downloader(options_);
    return fetch(downloader, url);
  }
  Status fetch(Downloader& downloader, const std::string& url) {
    SYRINX_TRY(auto part, PartFile::open(target_, content_.size(), testing::hash_of(content_)));
    return downloader.fetch(url, part);
  }
  void expect_whole() {
    EXPECT_EQ(testing::read_text(target_), content_);
    EXPECT_FALSE(testing::exists(target_ + ".part"));
  }
  void expect_absent(const Status& status, Code code, const std::string& words) {
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, code) << status.error().message;
    EXPECT_THAT(status.error().message, HasSubstr(words));
    EXPECT_FALSE(testing::exists(target_));
  }

  Folder folder_;
  std::string target_ = folder_ / "sub/file.bin";
  std::string content_ = testing::random_bytes(300000, 1);
  DownloadOptions options_;
  std::vector<std::string> notices_;
};

TEST_F(Download, FetchesAWholeFileAndReportsProgress) {
  HttpServer server([this](const HttpRequest& request) { return serve_range(request, content_); });
  uint64_t last = 0;
  options_.on_progress = [&last](uint64_t done) {
    EXPECT_GT(done, last);
    last = done;
  };
  ASSERT_TRUE(fetch(server.url("/f")));
  expect_whole();
  EXPECT_EQ(last, content_.size());
  EXPECT_FALSE(server.requests()[0].range_from.has_value());
}

TEST_F(Download, GoesOnWhereTheLineBroke) {
  HttpServer server([this](const HttpRequest& request) {
    HttpAnswer answer = serve_range(request, content_);
    answer.send_bytes = 100000;
    return answer;
  });
  ASSERT_TRUE(fetch(server.url("/f")));
  expect_whole();
  const auto requests = server.requests();
  ASSERT_EQ(requests.size(), 3u);
  EXPECT_EQ(requests[1].range_from, 100000u);
  EXPECT_EQ(requests[2].range_from, 200000u);
  EXPECT_EQ(notices_.size(), 2u);
}

TEST_F(Download, GoesOnWhereAnEarlierRunEnded) {
  testing::write_text(target_ + ".part", content_.substr(0, 299999));
  HttpServer server([this](const HttpRequest& request) { return serve_range(request, content_); });
  ASSERT_TRUE(fetch(server.url("/f")));
  expect_whole();
  EXPECT_EQ(server.requests()[0].range_from, 299999u);
}

TEST_F(Download, AWholePartFileNeedsNoRequest) {
  testing::write_text(target_ + ".part", content_);
  HttpServer server([this](const HttpRequest& request) { return serve_range(request, content_); });
  ASSERT_TRUE(fetch(server.url("/f")));
  expect_whole();
  EXPECT_EQ(server.count(), 0u);
}

TEST_F(Download, StartsAgainWhereTheServerKnowsNoRanges) {
  testing::write_text(target_ + ".part", content_.substr(0, 1000));
  HttpServer server([this](const HttpRequest&) { return HttpAnswer{200, {}, content_}; });
  ASSERT_TRUE(fetch(server.url("/f")));
  expect_whole();
  EXPECT_EQ(server.count(), 1u);
}

TEST_F(Download, StartsAgainAfterAWrongRange) {
  testing::write_text(target_ + ".part", content_.substr(0, 1000));
  HttpServer server([this](const HttpRequest& request) {
    if (request.range_from) return HttpAnswer{206, {"Content-Range: bytes 0-299999/300000"}, content_};
    return HttpAnswer{200, {}, content_};
  });
  ASSERT_TRUE(fetch(server.url("/f")));
  expect_whole();
}

TEST_F(Download, StartsAgainWhenTheRangeCannotBeServed) {
  testing::write_text(target_ + ".part", content_.substr(0, 1000));
  HttpServer server([this](const HttpRequest& request) {
    return request.range_from ? HttpAnswer{416, {}, ""} : HttpAnswer{200, {}, content_};
  });
  ASSERT_TRUE(fetch(server.url("/f")));
  expect_whole();
}

TEST_F(Download, ADamagedPartFileIsThrownAway) {
  std::string damaged = content_.substr(0, 1000);
  damaged[7] = static_cast<char>(damaged[7] ^ 1);
  testing::write_text(target_ + ".part", damaged);
  HttpServer server([this](const HttpRequest& request) { return serve_range(request, content_); });
  ASSERT_TRUE(fetch(server.url("/f")));
  expect_whole();
  EXPECT_EQ(server.count(), 2u);
  EXPECT_FALSE(server.requests()[1].range_from.has_value());
}

TEST_F(Download, APartFileThatIsTooLongIsThrownAway) {
  testing::write_text(target_ + ".part", content_ + "more");
  HttpServer server([this](const HttpRequest& request) { return serve_range(request, content_); });
  ASSERT_TRUE(fetch(server.url("/f")));
  expect_whole();
}

TEST_F(Download, TakesAnAnswerWithoutALength) {
  HttpServer server([this](const HttpRequest&) {
    HttpAnswer answer{200, {}, content_};
    answer.no_length = true;
    return answer;
  });
  ASSERT_TRUE(fetch(server.url("/f")));
  expect_whole();
}

TEST_F(Download, RefusesAnotherLength) {
  HttpServer server([this](const HttpRequest&) { return HttpAnswer{200, {}, content_ + "x"}; });
  expect_absent(fetch(server.url("/f")), Code::kDataLoss, "300001 bytes instead of the 300000");
  EXPECT_EQ(server.count(), 1u);
}

TEST_F(Download, AnotherLengthKeepsThePartFile) {
  testing::write_text(target_ + ".part", content_.substr(0, 1000));
  HttpServer server([](const HttpRequest&) { return HttpAnswer{200, {}, "<html>Please log in</html>"}; });
  expect_absent(fetch(server.url("/f")), Code::kDataLoss, "26 bytes instead of the 300000");
  EXPECT_EQ(testing::read_text(target_ + ".part"), content_.substr(0, 1000));
}

// Without a hash, two versions of the same length can be told apart by their tags alone.
TEST_F(Download, NeverJoinsTwoVersions) {
  const std::string other = testing::random_bytes(content_.size(), 2);
  std::string tag = "ETag: \"two\"";
  HttpServer heedless([&](const HttpRequest& request) {  // knows ranges and overlooks If-Range
    HttpAnswer answer = serve_range(request, other);
    answer.headers.push_back(tag);
    return answer;
  });
  for (const char* const sent : {"ETag: \"two\"", "ETag: W/\"one\"", "X-Tag: \"one\""}) {
    tag = sent;
    testing::write_text(target_ + ".part", content_.substr(0, 1000));
    auto part = PartFile::open(target_, content_.size(), "");
    Downloader downloader(options_);
    const Status fetched = downloader.fetch(RemoteAddress{heedless.url("/f"), {}, "\"one\"", false}, *part);
    ASSERT_TRUE(fetched) << fetched.error().message;
    EXPECT_EQ(testing::read_text(target_), other) << sent;
    std::filesystem::remove(target_);
  }
}

// The file changes between the question about it and its first byte, the line breaks, and the old version comes back.
TEST_F(Download, GoesOnWithTheVersionThatCame) {
  const std::string other = testing::random_bytes(content_.size(), 2);
  std::atomic<int> calls{0};
  HttpServer server([&](const HttpRequest& request) {
    HttpRequest asked = request;
    const bool first = ++calls == 1;
    const std::string tag = first ? "\"two\"" : "\"one\"";
    if (request.if_range != tag) asked.range_from.reset();
    HttpAnswer answer = serve_range(asked, first ? other : content_);
    answer.headers.push_back("ETag: " + tag);
    if (first) answer.send_bytes = 1000;
    return answer;
  });
  int changes = 0;
  options_.on_other_version = [&changes] { ++changes; };
  auto part = PartFile::open(target_, content_.size(), "");
  Downloader downloader(options_);
  const Status fetched = downloader.fetch(RemoteAddress{server.url("/f"), {}, "\"one\"", false}, *part);
  ASSERT_TRUE(fetched) << fetched.error().message;
  EXPECT_EQ(server.requests()[1].if_range, "\"two\"");
  EXPECT_EQ(changes, 2);
  expect_whole();
}

TEST_F(Download, RefusesMoreBytesThanAnnounced) {
  HttpServer server([this](const HttpRequest&) {
    HttpAnswer answer{200, {}, content_ + std::string(100000, 'x')};
    answer.no_length = true;
    return answer;
  });
  expect_absent(fetch(server.url("/f")), Code::kDataLoss, "longer than the 300000 bytes");
}

TEST_F(Download, RefusesWrongBytesAndKeepsNone) {
  HttpServer server([this](const HttpRequest&) { return HttpAnswer{200, {}, std::string(content_.size(), 'x')}; });
  expect_absent(fetch(server.url("/f")), Code::kDataLoss, "wrong content");
  EXPECT_EQ(server.count(), 1u);
  EXPECT_EQ(std::filesystem::file_size(target_ + ".part"), 0u);
}

TEST_F(Download, FollowsRedirects) {
  HttpServer server([this](const HttpRequest& request) {
    if (request.target == "/f") return HttpAnswer{302, {"Location: /g"}, "moved"};
    return serve_range(request, content_);
  });
  ASSERT_TRUE(fetch(server.url("/f")));
  expect_whole();
}

TEST_F(Download, EndsACircleOfRedirects) {
  HttpServer server([](const HttpRequest&) { return HttpAnswer{301, {"Location: /f"}, ""}; });
  expect_absent(fetch(server.url("/f")), Code::kUnavailable, "redirects");
  EXPECT_EQ(server.count(), 9u);
}

TEST_F(Download, FollowsNoRedirectToALocalFile) {
  HttpServer server([](const HttpRequest&) { return HttpAnswer{302, {"Location: file:///etc/hostname"}, ""}; });
  expect_absent(fetch(server.url("/f")), Code::kUnavailable, "file");
}

TEST_F(Download, AMissingFileIsNotAskedForTwice) {
  HttpServer server([](const HttpRequest&) { return HttpAnswer{404, {}, "not here"}; });
  expect_absent(fetch(server.url("/f")), Code::kNotFound, "404");
  EXPECT_EQ(server.count(), 1u);
}

TEST_F(Download, ARefusalIsNotAskedForTwice) {
  HttpServer server([](const HttpRequest&) { return HttpAnswer{403, {}, "no"}; });
  expect_absent(fetch(server.url("/f")), Code::kUnavailable, "403");
  EXPECT_EQ(server.count(), 1u);
}

TEST_F(Download, ABusyServerIsAskedAgain) {
  std::atomic<int> calls{0};
  HttpServer server([this, &calls](const HttpRequest& request) {
    return ++calls < 4 ? HttpAnswer{503, {}, "busy"} : serve_range(request, content_);
  });
  ASSERT_TRUE(fetch(server.url("/f")));
  expect_whole();
}

TEST_F(Download, GivesUpAfterSomeAttempts) {
  HttpServer server([](const HttpRequest&) { return HttpAnswer{503, {}, "busy"}; });
  expect_absent(fetch(server.url("/f")), Code::kUnavailable, "503");
  EXPECT_EQ(server.count(), 5u);
}

// A server that cuts at random and cannot resume must not keep us for ever.
TEST_F(Download, CutsWithoutRangesComeToAnEnd) {
  std::atomic<int> calls{0};
  HttpServer server([this, &calls](const HttpRequest&) {
    HttpAnswer answer{200, {}, content_};
    answer.send_bytes = ++calls % 2 == 0 ? 20000 : 40000;
    return answer;
  });
  expect_absent(fetch(server.url("/f")), Code::kUnavailable, "");
  EXPECT_LE(server.count(), 10u);
}

TEST_F(Download, AStalledServerIsLeft) {
  options_.stall_timeout_ms = 6000;  // within which a slow machine has sent what it sends
  options_.attempts = 1;
  HttpServer server([this](const HttpRequest&) {
    HttpAnswer answer{200, {}, content_};
    answer.send_bytes = 1000;
    answer.stall_ms = 20000;
    return answer;
  });
  expect_absent(fetch(server.url("/f")), Code::kUnavailable, "no data came");
  EXPECT_EQ(std::filesystem::file_size(target_ + ".part"), 1000u);
}

TEST_F(Download, AHostThatCannotBeReachedIsTriedOnce) {
  Downloader downloader(options_);
  expect_absent(fetch(downloader, "http://127.0.0.1:1/f"), Code::kUnavailable, "127.0.0.1:1");
  expect_absent(fetch(downloader, "http://127.0.0.1:1/g"), Code::kUnavailable, "cannot be reached");
  EXPECT_TRUE(notices_.empty());
}

TEST_F(Download, StopsWhenAskedAndGoesOnLater) {
  std::atomic<bool> cancel{false};
  options_.cancel = &cancel;
  options_.on_progress = [&cancel](uint64_t done) { cancel = done >= 50000; };
  HttpServer server([this](const HttpRequest& request) {
    HttpAnswer answer = serve_range(request, content_);
    if (!request.range_from) answer.send_bytes = 60000, answer.stall_ms = 20000;
    return answer;
  });
  expect_absent(fetch(server.url("/f")), Code::kCancelled, "can be continued");
  const uint64_t kept = std::filesystem::file_size(target_ + ".part");
  EXPECT_GT(kept, 0u);
  expect_absent(fetch(server.url("/f")), Code::kCancelled, "");
  EXPECT_EQ(server.count(), 1u);
  cancel = false;
  options_.on_progress = nullptr;
  ASSERT_TRUE(fetch(server.url("/f")));
  expect_whole();
  EXPECT_EQ(server.requests()[1].range_from, kept);
}

// A limit on the size of files stands in for a full disk: write() fails in the same way.
TEST_F(Download, AFullDiskEndsItAtOnceAndLaterItGoesOn) {
  HttpServer server([this](const HttpRequest& request) { return serve_range(request, content_); });
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{100000, before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &small);
  const Status status = fetch(server.url("/f"));
  ::setrlimit(RLIMIT_FSIZE, &before);
  ::signal(SIGXFSZ, handler);
  expect_absent(status, Code::kIo, "file.bin.part");
  EXPECT_EQ(server.count(), 1u);
  ASSERT_TRUE(fetch(server.url("/f")));
  expect_whole();
  EXPECT_TRUE(server.requests()[1].range_from.has_value());
}

TEST_F(Download, UsesTheProxyOfTheEnvironment) {
  HttpServer proxy([this](const HttpRequest& request) { return serve_range(request, content_); });
  const testing::ScopedVariable variable("http_proxy", proxy.url(""));
  ASSERT_TRUE(fetch("http://models.invalid/f"));
  expect_whole();
  EXPECT_EQ(proxy.requests()[0].target, "http://models.invalid/f");
}

TEST_F(Download, AFolderThatCannotBeMadeIsNamed) {
  testing::write_text(folder_ / "plain", "a file");
  target_ = folder_ / "plain/below/file.bin";
  expect_absent(fetch("http://127.0.0.1:1/f"), Code::kIo, "plain");
}

TEST_F(Download, APartFileThatIsALinkIsRefused) {
  testing::write_text(folder_ / "victim", "precious");
  std::filesystem::create_directories(folder_ / "sub");
  std::filesystem::create_symlink(folder_ / "victim", target_ + ".part");
  expect_absent(fetch("http://127.0.0.1:1/f"), Code::kIo, ".part");
  EXPECT_EQ(testing::read_text(folder_ / "victim"), "precious");
}

}  // namespace
}  // namespace syrinx
