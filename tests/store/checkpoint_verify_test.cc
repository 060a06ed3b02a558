// Files that are here already are looked at again: by --verify, after their time has changed, and until Ctrl-C.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "store/checkpoint_source.h"
#include "store/hub_pull.h"
#include "store/part_file.h"
#include "tests/store/files.h"
#include "tests/store/http_server.h"

namespace syrinx {
namespace {

using testing::Folder;
using ::testing::HasSubstr;
using testing::HttpAnswer;
using testing::HttpRequest;
using testing::HttpServer;
using testing::read_text;
using testing::write_text;

const std::string kCommit(40, 'a');
const std::string kName = "hf://o/r/model.safetensors@" + kCommit;

const std::string kSmall = "hf://o/r/small.json@" + kCommit;
const std::string kHelloBlob = "ce013625030ba8dba906f756967f9e9ca394464a";  // git hash-object, of "hello\n"

class Verify : public ::testing::Test {
 protected:
  Verify() : hub_([this](const HttpRequest& request) { return answer(request); }) {
    settings_.endpoint = hub_.url("");
    settings_.cache = folder_ / "hf";
  }
  HttpAnswer answer(const HttpRequest& request) {
    if (request.target.ends_with("/small.json"))  // in git, whose name for it is the tag
      return HttpAnswer{200, {"X-Repo-Commit: " + kCommit, "ETag: \"" + small_tag_ + "\""}, small_};
    HttpAnswer reply = testing::serve_range(request, content_);
    reply.headers.push_back("X-Repo-Commit: " + kCommit);
    reply.headers.push_back(fmt::format("X-Linked-Size: {}", content_.size()));
    reply.headers.push_back("X-Linked-ETag: \"" + hash_ + "\"");
    return reply;
  }
  Result<std::string> get(bool verify, const std::string& name = kName) {
    CheckpointSource source(UserPaths{folder_ / "data", folder_ / "cache"}, settings_, {});
    return source.get(name, GetOptions{.verify = verify, .hint = {}});
  }
  // As the hub's tools lay a file down.
  std::string put_into_cache(const std::string& content) {
    const std::string repository = folder_ / "hf/models--o--r", snapshot = repository + "/snapshots/" + kCommit;
    write_text(repository + "/blobs/" + hash_, content);
    std::filesystem::create_directories(snapshot);
    std::filesystem::create_symlink("../../blobs/" + hash_, snapshot + "/model.safetensors");
    return snapshot + "/model.safetensors";
  }

  Folder folder_;
  std::string small_ = "hello\n", small_tag_ = kHelloBlob;
  const std::string content_ = testing::random_bytes(100000, 5);
  const std::string hash_ = testing::hash_of(content_);
  HubSettings settings_;
  HttpServer hub_;
};

TEST_F(Verify, ReadsTheHubsCache) {
  std::string damaged = content_;
  damaged[99999] = static_cast<char>(damaged[99999] ^ 1);
  const std::string path = put_into_cache(damaged);
  EXPECT_EQ(*get(false), path) << "names alone are looked at";
  const auto refused = get(true);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kDataLoss);
  EXPECT_THAT(refused.error().message, HasSubstr("/blobs/" + hash_));
  EXPECT_THAT(refused.error().message, HasSubstr("remove it"));
  write_text(folder_ / ("hf/models--o--r/blobs/" + hash_), content_);
  EXPECT_EQ(*get(true), path);
  EXPECT_EQ(hub_.count(), 0u);
}

TEST_F(Verify, SmallFilesHaveTheNameThatGitGivesThem) {
  small_ = "hellO\n";
  const auto refused = get(false, kSmall);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kDataLoss);
  EXPECT_THAT(refused.error().message, HasSubstr(kHelloBlob));
  small_ = "hello\n";
  const auto good = get(false, kSmall);
  ASSERT_TRUE(good) << good.error().message;
  EXPECT_EQ(read_text(*good), small_);
  // As the hub's tools lay it down, and damaged there.
  const std::string repository = folder_ / "hf/models--o--r";
  write_text(repository + "/blobs/" + kHelloBlob, "hello\n");
  std::filesystem::create_directories(repository + "/snapshots/" + kCommit);
  std::filesystem::create_symlink("../../blobs/" + kHelloBlob, repository + "/snapshots/" + kCommit + "/small.json");
  EXPECT_TRUE(get(true, kSmall));
  Downloader downloader((DownloadOptions()));
  const auto reference = parse_reference(kSmall);
  EXPECT_FALSE(locate_hub_file(*reference, settings_, {}, downloader, nullptr)->cached.empty());
  write_text(repository + "/blobs/" + kHelloBlob, "hella\n");
  EXPECT_EQ(get(true, kSmall).error().code, Code::kDataLoss);
  const auto located = locate_hub_file(*reference, settings_, {}, downloader, nullptr);
  ASSERT_TRUE(located) << located.error().message;
  EXPECT_TRUE(located->cached.empty()) << "the hub's own is taken";
  EXPECT_EQ(located->git_blob, kHelloBlob);
  settings_.offline = true;
  const auto damaged = locate_hub_file(*reference, settings_, {}, downloader, nullptr);
  ASSERT_FALSE(damaged);
  EXPECT_EQ(damaged.error().code, Code::kDataLoss);
  EXPECT_THAT(damaged.error().message, HasSubstr("/blobs/" + kHelloBlob + "', which the hub's tools keep, is damaged"));
}

// Some mirrors do not reckon as git does.
TEST_F(Verify, SmallFilesMayHaveTheirBareSha1) {
  small_tag_ = "f572d396fae9206628714fb2ce00f72e94f2258f";  // sha1sum, of "hello\n"
  small_ = "hellO\n";
  EXPECT_EQ(get(false, kSmall).error().code, Code::kDataLoss);
  small_ = "hello\n";
  const auto good = get(false, kSmall);
  ASSERT_TRUE(good) << good.error().message;
  EXPECT_EQ(read_text(*good), small_);
  const std::string blob = folder_ / ("hf/models--o--r/blobs/" + small_tag_);
  const std::string snapshot = folder_ / ("hf/models--o--r/snapshots/" + kCommit);
  write_text(blob, small_);
  std::filesystem::create_directories(snapshot);
  std::filesystem::create_symlink(blob, snapshot + "/small.json");
  EXPECT_TRUE(get(true, kSmall));
  write_text(blob, "hellO\n");
  EXPECT_EQ(get(true, kSmall).error().code, Code::kDataLoss);
}

// Whether somebody reads the file and has come so far.
bool is_read_up_to(const std::string& path, uint64_t position) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", error)) {
    if (std::filesystem::read_symlink(entry.path(), error) != path) continue;
    std::ifstream info("/proc/self/fdinfo/" + entry.path().filename().string());
    std::string word;
    uint64_t at = 0;
    if (info >> word >> at && word == "pos:" && at >= position) return true;
  }
  return false;
}

TEST_F(Verify, WritesDuringReadingAreDetected) {
  const auto path = get(false);
  ASSERT_TRUE(path) << path.error().message;
  const std::string large(size_t{64} << 20, '\0');
  const auto put_large = [&] {
    write_text(*path, large);
    std::filesystem::last_write_time(*path, std::filesystem::last_write_time(*path) - std::chrono::hours(1));
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / "data/fetched/receipts")) {
      std::string receipt = read_text(entry.path().string());
      const auto line = [&](size_t number) {
        size_t begin = 0;
        while (number-- > 0) begin = receipt.find('\n', begin) + 1;
        return std::pair(begin, receipt.find('\n', begin) - begin);
      };
      receipt.replace(line(1).first, line(1).second, testing::hash_of(large));
      receipt.replace(line(2).first, line(2).second, std::to_string(large.size()));
      write_text(entry.path().string(), receipt);
    }
  };
  bool written = false;
  for (int i = 0; i < 20 && !written; ++i) {  // a writer that stood still while all of it was read tries again
    put_large();
    std::atomic<bool> done{false};
    std::thread writer([&] {
      while (!done && !is_read_up_to(std::filesystem::canonical(*path), size_t{4} << 20)) continue;
      if (done) return;
      std::fstream file(*path, std::ios::in | std::ios::out | std::ios::binary);
      file.put('x').flush();
      written = true;
    });
    EXPECT_EQ(*get(false), *path);
    done = true;
    writer.join();
  }
  ASSERT_TRUE(written);
  EXPECT_EQ(*get(false), *path);
  EXPECT_TRUE(read_text(*path) == content_) << "its damage is seen, and it is fetched again";
}

TEST_F(Verify, ATouchedFileIsReadOnceMoreAndNotAgain) {
  const auto path = get(false);
  ASSERT_TRUE(path) << path.error().message;
  std::string receipt;
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "data/fetched/receipts"))
    receipt = entry.path().string();
  const std::string before = read_text(receipt);
  std::filesystem::last_write_time(*path, std::filesystem::last_write_time(*path) - std::chrono::hours(1));
  const size_t asked = hub_.count();
  EXPECT_EQ(*get(false), *path);
  const std::string renewed = read_text(receipt);
  EXPECT_NE(renewed, before);
  EXPECT_EQ(*get(false), *path);
  EXPECT_EQ(read_text(receipt), renewed);
  EXPECT_EQ(hub_.count(), asked);
  // Another content of the same length is seen, and fetched again.
  write_text(*path, std::string(content_.size(), 'x'));
  EXPECT_EQ(*get(false), *path);
  EXPECT_EQ(read_text(*path), content_);
}

TEST_F(Verify, HashingStopsWhenItIsAskedTo) {
  const std::atomic<bool> cancel{true};
  write_text(folder_ / "x.part", content_);
  const auto part = PartFile::open(folder_ / "x", 2 * content_.size(), hash_, &cancel);
  ASSERT_FALSE(part);
  EXPECT_EQ(part.error().code, Code::kCancelled);
  put_into_cache(content_);
  Downloader downloader((DownloadOptions()));
  const auto reference = parse_reference(kName);
  const auto located = locate_hub_file(*reference, settings_, {}, downloader, &cancel);
  ASSERT_FALSE(located);
  EXPECT_EQ(located.error().code, Code::kCancelled);
  EXPECT_TRUE(locate_hub_file(*reference, settings_, {}, downloader, nullptr));
}

}  // namespace
}  // namespace syrinx
