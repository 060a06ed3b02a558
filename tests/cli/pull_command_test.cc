// The built binary pulls from a server of our own: what it prints, how it exits, what Ctrl-C leaves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <sstream>
#include <thread>

#include "base/json.h"
#include "store/child_process.h"
#include "tests/store/files.h"
#include "tests/store/http_server.h"

namespace syrinx {
namespace {

using ::testing::HasSubstr;
using testing::HttpAnswer;
using testing::HttpRequest;

class PullCommand : public ::testing::Test {
 protected:
  PullCommand()
      : server_([this](const HttpRequest& request) {
          HttpAnswer answer = testing::serve_range(request, content_);
          if (stall_ && !request.range_from) answer.send_bytes = 50000, answer.stall_ms = 600000;
          return answer;
        }) {
    testing::write_text(folder_ / "bird.toml",
                        fmt::format("name = \"bird\"\nkind = \"kokoro\"\ndescription = \"A bird\"\nlicence = \"MIT\"\n"
                                    "[[group]]\nrole = \"model\"\nfiles = [{{ name = \"bird.bin\", size = {}, sha256 = "
                                    "\"{}\" }}]\n[[group.source]]\nkind = \"url\"\nurl = \"{}\"\n",
                                    content_.size(), testing::hash_of(content_), server_.url("/bird.bin")));
  }

  ChildResult run(std::vector<std::string> arguments, std::function<Status()> on_tick = nullptr) {
    ChildProcess child;
    child.arguments = {SYRINX_BINARY};
    child.arguments.insert(child.arguments.end(), arguments.begin(), arguments.end());
    child.arguments.emplace_back("--catalogue");
    child.arguments.push_back(folder_ / "bird.toml");
    child.folder = folder_.path();
    child.environment = {{"SYRINX_HOME", folder_ / "home"}};
    child.environment.insert(child.environment.end(), more_environment_.begin(), more_environment_.end());
    child.timeout_ms = 600000;
    child.on_tick = std::move(on_tick);
    const auto result = run_child(child);
    if (!result) ADD_FAILURE() << result.error().message;
    return result ? *result : ChildResult();
  }
  std::vector<std::pair<std::string, std::string>> more_environment_;
  std::string file() const { return folder_ / "home/data/models/bird/bird.bin"; }

  std::string content_ = testing::random_bytes(200000, 4);
  std::atomic<bool> stall_{false};
  testing::Folder folder_;
  testing::HttpServer server_;
};

TEST_F(PullCommand, PullsListsAndRemoves) {
  const ChildResult pulled = run({"pull", "bird"});
  EXPECT_EQ(pulled.exit_status, 0) << pulled.output;
  EXPECT_THAT(pulled.output, HasSubstr("licence MIT"));
  EXPECT_THAT(pulled.output, HasSubstr("200.0 kB to fetch"));
  EXPECT_THAT(pulled.output, HasSubstr("bird is ready"));
  EXPECT_EQ(testing::read_text(file()), content_);
  EXPECT_EQ(run({"pull", "bird", "--offline", "--verify"}).exit_status, 0);
  EXPECT_THAT(run({"list"}).output, HasSubstr("installed"));
  const ChildResult listed = run({"list", "--json"});
  const auto json = parse_json(listed.output, "list");
  ASSERT_TRUE(json) << listed.output;
  EXPECT_EQ(*(*json->array())[0].find("state")->string(), "installed");
  EXPECT_THAT(run({"rm", "bird"}).output, HasSubstr("bird is removed"));
  EXPECT_FALSE(testing::exists(file()));
  EXPECT_EQ(run({"rm", "bird"}).exit_status, 3);
}

TEST_F(PullCommand, JsonHasOneObjectALine) {
  const ChildResult pulled = run({"pull", "bird", "--json"});
  ASSERT_EQ(pulled.exit_status, 0);
  std::istringstream lines(pulled.output);
  std::string line, last;
  while (std::getline(lines, line)) {
    const auto json = parse_json(line, "line");
    ASSERT_TRUE(json) << line;
    last = *json->find("event")->string();
  }
  EXPECT_EQ(last, "done");
}

TEST_F(PullCommand, MistakesHaveTheirStatusAndSentence) {
  const ChildResult offline = run({"pull", "bird", "--offline"});
  EXPECT_EQ(offline.exit_status, 8);
  EXPECT_THAT(offline.output, HasSubstr("syrinx: 0.2 MB of 'bird' are not here"));
  const ChildResult unknown = run({"pull", "brid"});
  EXPECT_EQ(unknown.exit_status, 3);
  EXPECT_THAT(unknown.output, HasSubstr("did you mean 'bird'?"));
  content_[5] = static_cast<char>(content_[5] ^ 1);
  const ChildResult wrong = run({"pull", "bird"});
  EXPECT_EQ(wrong.exit_status, 4);
  EXPECT_THAT(wrong.output, HasSubstr("wrong content"));
  EXPECT_FALSE(testing::exists(file()));
}

// A hub of our own, on another port than the catalogue's server, whose gated files need a token.
class HubCommand : public PullCommand {
 protected:
  HubCommand()
      : hub_([this](const HttpRequest& request) {
          if (request.target.starts_with("/o/gated/") && request.authorization != "Bearer hf_good")
            return HttpAnswer{401, {"X-Error-Code: GatedRepo"}, ""};
          HttpAnswer answer = testing::serve_range(request, content_);
          answer.headers.push_back("X-Repo-Commit: " + std::string(40, 'c'));
          answer.headers.push_back("X-Linked-Size: 200000");
          answer.headers.push_back("X-Linked-ETag: " + testing::hash_of(content_));
          return answer;
        }) {
    more_environment_ = {{"HF_ENDPOINT", hub_.url("")}, {"HF_HOME", folder_ / "hf"},    {"HF_TOKEN", ""},
                         {"HF_HUB_CACHE", ""},          {"HUGGING_FACE_HUB_TOKEN", ""}, {"HF_TOKEN_PATH", ""},
                         {"HF_HUB_OFFLINE", ""},        {"HUGGINGFACE_HUB_CACHE", ""},  {"TRANSFORMERS_OFFLINE", ""}};
  }
  testing::HttpServer hub_;
};

TEST_F(HubCommand, AReferenceIsFetchedOnceAndItsPathPrinted) {
  const std::string path = folder_ / "home/data/fetched/hub/o/r/" + std::string(40, 'c') + "/x/model.safetensors";
  const ChildResult pulled = run({"pull", "hf://o/r/x/model.safetensors"});
  EXPECT_EQ(pulled.exit_status, 0) << pulled.output;
  EXPECT_THAT(pulled.output, HasSubstr("\n" + path + "\n"));
  EXPECT_EQ(testing::read_text(path), content_);
  const size_t requests = hub_.count();
  EXPECT_EQ(run({"pull", "hf://o/r/x/model.safetensors", "--offline", "--verify"}).output, path + "\n");
  EXPECT_EQ(hub_.count(), requests);
}

TEST_F(HubCommand, TwoProcessesFetchAFileOnce) {
  ChildResult results[2];
  std::thread other([&] { results[0] = run({"pull", "hf://o/r/f"}); });
  results[1] = run({"pull", "hf://o/r/f"});
  other.join();
  for (const auto& result : results) EXPECT_EQ(result.exit_status, 0) << result.output;
  size_t fetched = 0;
  for (const auto& request : hub_.requests()) fetched += request.method == "GET" ? 1 : 0;
  EXPECT_EQ(fetched, 1u);
}

TEST_F(HubCommand, GatedFilesSayWhereToAcceptTheirTerms) {
  const ChildResult refused = run({"pull", "hf://o/gated/f"});
  EXPECT_EQ(refused.exit_status, 8);
  EXPECT_THAT(refused.output, HasSubstr("accept them at " + hub_.url("/o/gated")));
  testing::write_text(folder_ / "hf/token", "hf_good");
  EXPECT_EQ(run({"pull", "hf://o/gated/f"}).exit_status, 0);
}

TEST_F(HubCommand, MistakesHaveTheirSentence) {
  EXPECT_EQ(run({"pull", "hf://o/r"}).exit_status, 2);
  EXPECT_EQ(run({"pull", "file:///etc/passwd"}).exit_status, 2);
  EXPECT_THAT(run({"pull", "bird", "--voices", "a"}).output, HasSubstr("comes with all its voices"));
  EXPECT_EQ(run({"pull", "bird", "--with-cloning", "--without-cloning"}).exit_status, 2);
}

// The process is found by its arguments; the signal ends the pull, the part stays and is gone on with.
TEST_F(PullCommand, CtrlCKeepsThePart) {
  stall_ = true;
  pid_t found = 0;
  const ChildResult stopped = run({"pull", "bird"}, [this, &found]() -> Status {
    std::error_code error;
    if (found != 0 || !testing::exists(file() + ".part") ||
        std::filesystem::file_size(file() + ".part", error) < 50000) {
      return {};
    }
    for (std::filesystem::directory_iterator it("/proc", error), end; !error && it != end; it.increment(error)) {
      const std::string command = testing::read_text(it->path().string() + "/cmdline");
      if (command.find(folder_ / "bird.toml") == std::string::npos) continue;
      found = std::atoi(it->path().filename().c_str());
      ::kill(found, SIGINT);
    }
    return {};
  });
  EXPECT_EQ(stopped.exit_status, 130) << stopped.output;
  EXPECT_FALSE(testing::exists(file()));
  EXPECT_EQ(std::filesystem::file_size(file() + ".part"), 50000u);
  stall_ = false;
  EXPECT_EQ(run({"pull", "bird"}).exit_status, 0);
  EXPECT_EQ(server_.requests().back().range_from, 50000u);
  EXPECT_EQ(testing::read_text(file()), content_);
}

}  // namespace
}  // namespace syrinx
