// Names of checkpoint files become files: from the caches of other tools, from our store, from a hub and servers of our
// own that answer with every fault.
#include "store/checkpoint_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <thread>

#include "tests/store/files.h"
#include "tests/store/http_server.h"

namespace syrinx {
namespace {

using testing::exists;
using testing::Folder;
using ::testing::HasSubstr;
using testing::HttpAnswer;
using testing::HttpRequest;
using testing::HttpServer;
using testing::read_text;
using testing::ScopedVariable;
using testing::serve_range;
using testing::write_text;

const std::string kCommit(40, 'a');
const std::string kOtherCommit(40, 'b');
const std::string kPinned = "hf://kyutai/pocket-tts/languages/english/model.safetensors@" + kCommit;

// A hub, and on another port the storage that it redirects to.
class Source : public ::testing::Test {
 protected:
  Source()
      : storage_([this](const HttpRequest& request) { return from_storage(request); }),
        hub_([this](const HttpRequest& request) { return from_hub(request); }) {
    settings_.endpoint = hub_.url("");
    settings_.cache = folder_ / "hf/hub";
    settings_.maker_cache = folder_ / "maker";
    options_.download.first_pause_ms = 1;
    options_.download.longest_pause_ms = 4;
    options_.on_event = [this](const PullEvent& event) { events_.push_back(event); };
  }

  HttpAnswer from_storage(const HttpRequest& request) {
    if (request.method == "HEAD") return HttpAnswer{403, {}, ""};  // as signed addresses do
    HttpAnswer answer = serve_range(request, stored_);
    answer.send_bytes = send_bytes_;
    return answer;
  }
  HttpAnswer from_hub(const HttpRequest& request) {
    if (gated_ && request.authorization != "Bearer hf_good")
      return HttpAnswer{request.authorization == "Bearer hf_unasked" ? 403 : 401, {error_}, "no"};
    if (request.target.find("/tokenizer.json") != std::string::npos)  // small: in git, not in the storage
      return HttpAnswer{200, {"X-Repo-Commit: " + kCommit, "ETag: \"3f1d\""}, "{}"};
    if (request.target.find("/model.safetensors") == std::string::npos)
      return HttpAnswer{404, {"X-Error-Code: EntryNotFound"}, ""};
    return HttpAnswer{302,
                      {"X-Repo-Commit: " + kCommit, fmt::format("X-Linked-Size: {}", linked_size_),
                       "X-Linked-ETag: \"" + linked_hash_ + "\"", "Location: " + storage_.url("/signed?key=1")},
                      ""};
  }

  Result<std::string> get(const std::string& reference, const GetOptions& options = {}) {
    CheckpointSource source(paths(), settings_, options_);
    return source.get(reference, options);
  }
  UserPaths paths() const { return UserPaths{folder_ / "data", folder_ / "cache"}; }
  std::string in_store(const std::string& name) const { return folder_ / ("data/fetched/" + name); }
  std::string model_in_store() const {
    return in_store("hub/kyutai/pocket-tts/" + kCommit + "/languages/english/model.safetensors");
  }
  void expect_error(const Result<std::string>& got, Code code, const std::string& words) {
    ASSERT_FALSE(got) << *got;
    EXPECT_EQ(got.error().code, code) << got.error().message;
    EXPECT_THAT(got.error().message, HasSubstr(words));
    EXPECT_FALSE(exists(model_in_store()));
  }
  bool storage_saw_a_token() const {
    for (const auto& request : storage_.requests())
      if (!request.authorization.empty()) return true;
    return false;
  }

  Folder folder_;
  std::string content_ = testing::random_bytes(300000, 9);
  std::string stored_ = content_;  // what the storage gives out
  std::string linked_hash_ = testing::hash_of(content_);
  size_t linked_size_ = content_.size();
  std::atomic<size_t> send_bytes_{SIZE_MAX};
  bool gated_ = false;
  std::string error_ = "X-Error-Code: GatedRepo";
  HubSettings settings_;
  SourceOptions options_;
  std::vector<PullEvent> events_;
  HttpServer storage_;
  HttpServer hub_;
};

TEST_F(Source, APathIsGivenBack) {
  write_text(folder_ / "a b.safetensors", "x");
  EXPECT_EQ(*get(folder_ / "a b.safetensors"), folder_ / "a b.safetensors");
  EXPECT_EQ(*get(folder_.path()), folder_.path());
  expect_error(get(folder_ / "none"), Code::kNotFound, "there is no file or folder");
}

TEST_F(Source, FetchesFromTheHubOnce) {
  const auto got = get(kPinned);
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(*got, model_in_store());
  EXPECT_EQ(read_text(*got), content_);
  EXPECT_EQ(hub_.requests()[0].method, "HEAD");
  EXPECT_EQ(hub_.requests()[0].target,
            "/kyutai/pocket-tts/resolve/" + kCommit + "/languages/english/model.safetensors");
  ASSERT_EQ(events_.front().kind, PullEvent::Kind::kSource);
  EXPECT_EQ(events_.front().total_bytes, content_.size());
  EXPECT_EQ(events_.back().kind, PullEvent::Kind::kDone);
  const size_t asked = hub_.count();
  options_.offline = true;
  EXPECT_EQ(*get(kPinned), model_in_store());
  EXPECT_EQ(hub_.count(), asked);
}

TEST_F(Source, ABranchIsItsCommit) {
  const auto got = get("hf://kyutai/pocket-tts/languages/english/model.safetensors");
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(*got, model_in_store());
  EXPECT_THAT(hub_.requests()[0].target, HasSubstr("/resolve/main/"));
  EXPECT_THAT(hub_.requests()[1].target, HasSubstr("/resolve/" + kCommit));  // which `main` may be no more
  const size_t fetched = storage_.count();
  EXPECT_EQ(*get(kPinned), model_in_store());  // the same file by its other name: asked about, not fetched
  EXPECT_EQ(storage_.count(), fetched);
}

TEST_F(Source, SmallFilesHaveNoHashAndComeWhole) {
  const auto got = get("hf://kyutai/pocket-tts/tokenizer.json@main");
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(read_text(*got), "{}");
}

TEST_F(Source, TheHubsCacheComesFirst) {
  const std::string repository = folder_ / "hf/hub/models--kyutai--pocket-tts";
  write_text(repository + "/blobs/" + linked_hash_, content_);
  const std::string snapshot = repository + "/snapshots/" + kCommit + "/languages/english";
  std::filesystem::create_directories(snapshot);
  std::filesystem::create_symlink(repository + "/blobs/" + linked_hash_, snapshot + "/model.safetensors");
  EXPECT_EQ(*get(kPinned), snapshot + "/model.safetensors");
  EXPECT_EQ(cached_hash(snapshot + "/model.safetensors"), linked_hash_);
  write_text(repository + "/refs/main", kCommit);
  EXPECT_EQ(*get("hf://kyutai/pocket-tts/languages/english/model.safetensors"), snapshot + "/model.safetensors");
  // The file that a climbing name would reach exists.
  write_text(repository + "/refs/main", "../../../../etc");
  write_text(folder_ / "etc/languages/english/model.safetensors", "not from the cache");
  ASSERT_EQ(read_text(repository + "/snapshots/../../../../etc/languages/english/model.safetensors"),
            "not from the cache");
  EXPECT_EQ(*get("hf://kyutai/pocket-tts/languages/english/model.safetensors"), model_in_store());
  EXPECT_EQ(hub_.requests()[0].method, "HEAD");
}

TEST_F(Source, TheMakersCacheIsFound) {
  const std::string url = "https://example.invalid/voices/alba.v2.wav?download=1#x";
  const std::string cached = folder_ / ("maker/" + testing::hash_of(url) + ".wav");
  write_text(cached, "sound");
  EXPECT_EQ(*get(url), cached);
}

TEST_F(Source, OfflineSaysSo) {
  options_.offline = true;
  expect_error(get(kPinned), Code::kUnavailable, "--offline");
  options_.offline = false;
  settings_.offline = true;
  expect_error(get(kPinned), Code::kUnavailable, "HF_HUB_OFFLINE");
  EXPECT_EQ(hub_.count(), 0u);
}

TEST_F(Source, GoesOnAfterABreakAndInTheNextRun) {
  send_bytes_ = 100000;
  options_.download.attempts = 1;
  std::atomic<bool> cancel{false};
  options_.cancel = &cancel;
  options_.on_event = [&cancel](const PullEvent& event) { cancel = event.kind == PullEvent::Kind::kProgress; };
  expect_error(get(kPinned), Code::kCancelled, "can be continued");
  const auto kept = std::filesystem::file_size(model_in_store() + ".part");
  EXPECT_GT(kept, 0u);
  cancel = false;
  options_.on_event = nullptr;
  options_.download.attempts = 2;
  ASSERT_TRUE(get(kPinned));
  EXPECT_EQ(read_text(model_in_store()), content_);
  EXPECT_EQ(storage_.requests()[1].range_from, kept);
}

TEST_F(Source, WrongBytesAreThrownAway) {
  stored_[7] = static_cast<char>(stored_[7] ^ 1);
  expect_error(get(kPinned), Code::kDataLoss, "wrong content");
  stored_ = content_;
  EXPECT_TRUE(get(kPinned));
}

TEST_F(Source, WrongLengthsAreThrownAway) {
  stored_ += "more";
  expect_error(get(kPinned), Code::kDataLoss, "300004 bytes instead of the 300000");
}

TEST_F(Source, TheHubsSizeIsBounded) {
  linked_size_ = size_t{1} << 50;
  expect_error(get(kPinned), Code::kLimitExceeded, "at most");
  linked_size_ = content_.size();
  expect_error(get(kPinned, GetOptions{.max_bytes = 1000, .hint = {}}), Code::kLimitExceeded, "at most 1000");
  EXPECT_EQ(storage_.count(), 0u);
}

TEST_F(Source, AFileLargerThanTheDiskIsNotBegun) {
  linked_size_ = size_t{1} << 60;
  expect_error(get(kPinned, GetOptions{.max_bytes = UINT64_MAX, .hint = {}}), Code::kIo,
               "make room or set SYRINX_HOME");
  EXPECT_EQ(storage_.count(), 0u);
}

TEST_F(Source, TheTokenGoesToTheHubAlone) {
  gated_ = true;
  settings_.token = "hf_good";
  settings_.token_place = "HF_TOKEN";
  const auto got = get(kPinned);
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(read_text(*got), content_);
  EXPECT_TRUE(hub_.requests()[0].authorization.empty());  // nobody asked for it yet
  EXPECT_EQ(hub_.requests()[1].authorization, "Bearer hf_good");
  EXPECT_EQ(hub_.requests().back().authorization, "Bearer hf_good");
  EXPECT_GT(storage_.count(), 0u);
  EXPECT_FALSE(storage_saw_a_token());
}

TEST_F(Source, TheTokenIsNotSentInTheClear) {
  gated_ = true;
  settings_.token = "hf_good";
  const ScopedVariable proxy("http_proxy", hub_.url(""));  // any name leads to the hub
  for (const char* const endpoint :
       {"http://hub.invalid", "http://127.0.0.1.invalid", "http://localhost:8@a.invalid"}) {
    settings_.endpoint = endpoint;
    expect_error(get(kPinned), Code::kUnavailable, "does not encrypt");
  }
  EXPECT_EQ(hub_.count(), 3u);
  for (const auto& request : hub_.requests()) EXPECT_THAT(request.authorization, ::testing::Not(HasSubstr("hf_good")));
}

TEST_F(Source, GatedWeightsNameTheRemedy) {
  gated_ = true;
  expect_error(get(kPinned, GetOptions{.hint = "--without-cloning takes others"}), Code::kUnavailable,
               "accept them at " + hub_.url("/kyutai/pocket-tts"));
  const std::string text = get(kPinned).error().message;
  EXPECT_THAT(text, HasSubstr("HF_TOKEN"));
  EXPECT_THAT(get(kPinned, GetOptions{.hint = "take others"}).error().message, HasSubstr("; take others"));
  settings_.token = "hf_unasked";
  settings_.token_place = "HF_TOKEN";
  expect_error(get(kPinned), Code::kUnavailable, "the owner of the token in HF_TOKEN has not");
  error_ = "X-Error-Message: Invalid credentials";
  expect_error(get(kPinned), Code::kUnavailable, "refused the token in HF_TOKEN (403)");
  settings_.token.clear();
  expect_error(get(kPinned), Code::kUnavailable, "does not show kyutai/pocket-tts to everybody (401)");
  EXPECT_EQ(storage_.count(), 0u);
}

TEST_F(Source, MissingFileIsNamed) {
  expect_error(get("hf://kyutai/pocket-tts/none.bin@" + kCommit), Code::kNotFound, "has no file 'none.bin'");
  HttpServer empty([](const HttpRequest& request) {
    return HttpAnswer{404,
                      {request.target.find("/main/") != std::string::npos ? "X-Error-Code: RepoNotFound"
                                                                          : "X-Error-Code: RevisionNotFound"},
                      ""};
  });
  settings_.endpoint = empty.url("");
  expect_error(get("hf://a/b/c"), Code::kNotFound, "has no repository 'a/b'");
  expect_error(get("hf://a/b/c@dev"), Code::kNotFound, "has no revision 'dev'");
  expect_error(get(empty.url("/c")), Code::kNotFound, "there is nothing at");
}

TEST_F(Source, ARenamedRepositoryIsFollowed) {
  HttpServer old([this](const HttpRequest& request) {
    if (request.target.starts_with("/old/"))
      return HttpAnswer{307, {"Location: /kyutai/pocket-tts/x/model.safetensors"}, ""};
    return from_hub(request);
  });
  settings_.endpoint = old.url("");
  const auto got = get("hf://old/name/model.safetensors@" + kCommit);
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(read_text(*got), content_);
}

TEST_F(Source, BusyHubsAreAskedAgainAsLateAsTheyWish) {
  std::atomic<int> calls{0};
  HttpServer busy([&](const HttpRequest& request) {
    if (++calls == 1) return HttpAnswer{429, {"Retry-After: 3600"}, ""};
    return calls < 4 ? HttpAnswer{500, {}, "oh"} : from_hub(request);
  });
  settings_.endpoint = busy.url("");
  options_.download.longest_wait_ms = 300;
  const auto start = std::chrono::steady_clock::now();
  ASSERT_TRUE(get(kPinned));
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(300));
}

TEST_F(Source, AHubThatStaysBusyIsGivenUp) {
  HttpServer busy([](const HttpRequest&) { return HttpAnswer{503, {}, ""}; });
  settings_.endpoint = busy.url("");
  expect_error(get(kPinned), Code::kUnavailable, "503");
  EXPECT_EQ(busy.count(), 5u);
}

TEST_F(Source, RedirectsAreCountedAndGoNowhereElse) {
  HttpServer circle([](const HttpRequest&) { return HttpAnswer{302, {"Location: /again"}, ""}; });
  expect_error(get(circle.url("/f")), Code::kUnavailable, "more than 8 redirects");
  EXPECT_EQ(circle.count(), 9u);
  for (const char* const target : {"file:///etc/hostname", "ftp://127.0.0.1/f", "gopher://127.0.0.1/"}) {
    HttpServer away([target](const HttpRequest&) { return HttpAnswer{302, {std::string("Location: ") + target}, ""}; });
    expect_error(get(away.url("/f")), Code::kUnavailable, "");
    EXPECT_EQ(away.count(), 1u);
  }
}

// A server that is no hub cannot claim a hash or a size by the hub's headers, nor learn the token.
TEST_F(Source, OtherServersAreNoHub) {
  settings_.token = "hf_good";
  HttpServer server([this](const HttpRequest& request) {
    HttpAnswer answer = serve_range(request, content_);
    answer.headers.push_back("X-Linked-Size: 1");
    answer.headers.push_back("X-Linked-ETag: \"" + std::string(64, '0') + "\"");
    return answer;
  });
  const auto got = get(server.url("/f.bin"));
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(read_text(*got), content_);
  for (const auto& request : server.requests()) EXPECT_TRUE(request.authorization.empty());
  HttpServer refuses([](const HttpRequest&) { return HttpAnswer{401, {}, ""}; });
  expect_error(get(refuses.url("/f")), Code::kUnavailable, "answered 401");
  EXPECT_TRUE(refuses.requests()[0].authorization.empty());
}

// The address that a hub's page shows for a file: the hub redirects, and here it is a server as any other.
TEST_F(Source, AHubsPlainAddressIsFollowedToItsStorage) {
  const std::string url = hub_.url("/kyutai/pocket-tts/resolve/main/model.safetensors");
  const auto got = get(url);
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(*got, in_store("url/" + testing::hash_of(url) + ".safetensors"));
  EXPECT_EQ(read_text(*got), content_);
}

// A tag that looks like a hash is one only where the hub itself vouches for it.
TEST_F(Source, OtherServersTagsAreNoHashes) {
  const std::string tag = "\"" + std::string(64, '0') + "\"";
  HttpServer storage([&](const HttpRequest& request) {
    HttpAnswer answer = serve_range(request, content_);
    answer.headers.push_back("ETag: " + tag);
    return answer;
  });
  HttpServer hub([&](const HttpRequest& request) {
    if (request.target.ends_with("/weak")) return HttpAnswer{200, {"X-Repo-Commit: " + kCommit, "ETag: W/" + tag}, "w"};
    return HttpAnswer{302, {"X-Repo-Commit: " + kCommit, "Location: " + storage.url("/f")}, ""};
  });
  settings_.endpoint = hub.url("");
  const auto got = get("hf://a/b/far@" + kCommit);
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(read_text(*got), content_);
  EXPECT_TRUE(get("hf://a/b/weak@" + kCommit));
}

TEST_F(Source, AnAddressIsFetchedOnceAndCheckedLater) {
  HttpServer server([this](const HttpRequest& request) { return serve_range(request, content_); });
  const std::string url = server.url("/dir/f.yaml?x=1");
  const auto got = get(url);
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(*got, in_store("url/" + testing::hash_of(url) + ".yaml"));
  const size_t asked = server.count();
  EXPECT_EQ(*get(url), *got);
  EXPECT_EQ(*get(url, GetOptions{.verify = true, .hint = {}}), *got);
  EXPECT_EQ(server.count(), asked);
  write_text(*got, std::string(content_.size(), 'x'));  // same size, another time: read, found damaged, fetched again
  EXPECT_EQ(*get(url), *got);
  EXPECT_EQ(read_text(*got), content_);
  write_text(*got, "short");
  EXPECT_EQ(read_text(*get(url)), content_);
}

TEST_F(Source, AServerWithoutHeadOrLengthIsAskedForTheFirstByte) {
  HttpServer server([this](const HttpRequest& request) {
    if (request.method == "HEAD") return HttpAnswer{405, {}, ""};
    return serve_range(request, content_);
  });
  ASSERT_TRUE(get(server.url("/f")));
  HttpServer silent([this](const HttpRequest&) {
    HttpAnswer answer{200, {}, content_};
    answer.no_length = true;
    return answer;
  });
  expect_error(get(silent.url("/f")), Code::kUnsupported, "does not say how long");
  HttpServer empty([](const HttpRequest&) { return HttpAnswer{200, {}, ""}; });
  expect_error(get(empty.url("/f")), Code::kDataLoss, "is empty");
}

// Without a hash a part is gone on with only where the server's tag says that it is the same version.
TEST_F(Source, AnotherVersionIsNotJoinedToAnOldPart) {
  std::string tag = "\"one\"";
  std::string body = content_;
  std::atomic<size_t> send{100000};
  HttpServer server([&](const HttpRequest& request) {
    HttpRequest asked = request;
    if (!request.if_range.empty() && request.if_range != tag) asked.range_from.reset();
    HttpAnswer answer = serve_range(asked, body);
    if (!tag.empty()) answer.headers.push_back("ETag: " + tag);
    answer.send_bytes = send;
    return answer;
  });
  const std::string url = server.url("/f");
  const std::string file = in_store("url/" + testing::hash_of(url));
  std::atomic<bool> cancel{false};
  options_.cancel = &cancel;
  options_.on_event = [&cancel](const PullEvent& event) {
    if (event.kind == PullEvent::Kind::kProgress) cancel = true;
  };
  ASSERT_FALSE(get(url));
  ASSERT_TRUE(exists(file + ".part"));
  cancel = false;
  options_.on_event = nullptr;
  send = SIZE_MAX;
  body = testing::random_bytes(300000, 10);
  tag = "\"two\"";
  ASSERT_TRUE(get(url));
  EXPECT_EQ(read_text(file), body);
  EXPECT_FALSE(exists(file + ".part.tag"));
  // The same version: gone on with.
  std::filesystem::remove(file);
  send = 100000;
  ASSERT_TRUE(get(url));
  EXPECT_EQ(read_text(file), body);
  EXPECT_EQ(server.requests().back().if_range, "\"two\"");
  // No tag at all, broken off: from the start, and given up where that never ends.
  std::filesystem::remove(file);
  tag.clear();
  EXPECT_FALSE(get(url));
  EXPECT_FALSE(server.requests().back().range_from.has_value());
  EXPECT_FALSE(exists(file));
}

// A limit on the size of files stands in for a full disk: write() fails in the same way.
TEST_F(Source, AFullDiskLeavesAPartToGoOnFrom) {
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{100000, before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &small);
  const auto got = get(kPinned);
  ::setrlimit(RLIMIT_FSIZE, &before);
  ::signal(SIGXFSZ, handler);
  expect_error(got, Code::kIo, "model.safetensors.part");
  ASSERT_TRUE(get(kPinned));
  EXPECT_EQ(read_text(model_in_store()), content_);
  EXPECT_TRUE(storage_.requests().back().range_from.has_value());
}

// The lock is one of open files, so two threads keep each other out as two processes do.
TEST_F(Source, TwoAtOnceFetchItOnce) {
  options_.on_event = nullptr;
  std::atomic<int> good{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([this, &good] {
      if (get(kPinned)) ++good;
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(good, 2);
  EXPECT_EQ(storage_.count(), 1u);
  EXPECT_EQ(read_text(model_in_store()), content_);
}

TEST_F(Source, ADamagedReceiptIsMadeAnew) {
  ASSERT_TRUE(get(kPinned));
  std::string receipt;
  for (const auto& entry : std::filesystem::directory_iterator(in_store("receipts"))) receipt = entry.path().string();
  const std::string good = read_text(receipt);
  write_text(in_store("../../secret"), content_);  // what the last one names is there, and has that hash
  ASSERT_EQ(testing::hash_of(read_text(in_store("../../secret"))), linked_hash_);
  for (const std::string& bad : {std::string("x"), good.substr(0, 90), good + "y\n", std::string(100000, '\n'),
                                 "syrinx-file 1\n" + linked_hash_ + "\n300000\n1\n../../secret\n"}) {
    write_text(receipt, bad);
    const size_t fetched = storage_.count();
    EXPECT_EQ(*get(kPinned), model_in_store());
    EXPECT_EQ(storage_.count(), fetched);
    EXPECT_EQ(read_text(receipt), good);
  }
}

}  // namespace
}  // namespace syrinx
