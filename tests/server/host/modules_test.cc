// The registry of modules with models and a clock of the test: when they are loaded, waited for and unloaded.
#include "server/host/modules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "tests/engine/chat/fake_chat_engine.h"

namespace syrinx::server {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t kSecond = 1'000'000'000;
constexpr uint64_t kMegabyte = uint64_t{1} << 20;

// Loads language models that do nothing, each with as much memory as the test says.
class Loader {
 public:
  Modules::Hooks hooks() {
    return {.load = [this](const ModulePlan& plan) { return load(plan); },
            .file_bytes = [this](const ModulePlan& plan) { return bytes_in(file_mb, plan); },
            .loaded = [this](Module& module, const Models& models) { note("loaded", module, models); },
            .unloads = [this](Module& module, const Models& models) { note("unloads", module, models); }};
  }
  // From now on loads wait for open().
  void close() {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
  }
  void open() {
    {
      const std::lock_guard lock(mutex_);
      is_closed_ = false;
    }
    changed_.notify_all();
  }
  void wait_for_load(const std::string& id) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return under_way_ == id; });
  }
  std::vector<std::string> log() const {
    const std::lock_guard lock(mutex_);
    return log_;
  }
  // How many have been loaded and still exist.
  size_t existing() const {
    const std::lock_guard lock(mutex_);
    return static_cast<size_t>(
        std::count_if(made_.begin(), made_.end(), [](const auto& each) { return !each.expired(); }));
  }

  // By id; before the load.
  std::map<std::string, uint64_t> file_mb, mb;  // of the file; of the model, where it takes another amount
  std::map<std::string, std::string> faults;
  std::set<std::string> throwing;

 private:
  static uint64_t bytes_in(const std::map<std::string, uint64_t>& mb, const ModulePlan& plan) {
    const auto found = mb.find(plan.id);
    return found != mb.end() ? found->second * kMegabyte : 0;
  }
  Result<Models> load(const ModulePlan& plan) {
    {
      std::unique_lock lock(mutex_);
      log_.push_back("load " + plan.id);
      under_way_ = plan.id;
      changed_.notify_all();
      changed_.wait(lock, [this] { return !is_closed_; });
      under_way_.clear();
    }
    if (throwing.count(plan.id) > 0) throw std::runtime_error("a library's fault");
    if (const auto fault = faults.find(plan.id); fault != faults.end())
      return fail(Code::kDataLoss, "{}", fault->second);
    const uint64_t bytes = bytes_in(mb.count(plan.id) > 0 ? mb : file_mb, plan);
    Models models;
    SYRINX_TRY(models.chat, ChatModel::of(plan.settings, {}, std::make_shared<FakeChatEngine>(), bytes));
    const std::lock_guard lock(mutex_);
    made_.push_back(models.chat);
    return models;
  }
  void note(const char* event, const Module& module, const Models& models) {
    EXPECT_TRUE(models.any());
    const std::lock_guard lock(mutex_);
    log_.push_back(fmt::format("{} {}", event, module.plan.id));
  }

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> log_;
  std::vector<std::weak_ptr<const ChatModel>> made_;
  std::string under_way_;
  bool is_closed_ = false;
};

class ModulesTest : public testing::Test {
 protected:
  void SetUp() override { settings_.speech_model = settings_.recognition_model = ""; }
  void TearDown() override { loader_.open(); }

  // One that is loaded at its first use.
  ModuleSettings& add(const std::string& id, double keep_alive_s = 5, ModuleKind kind = ModuleKind::kChat) {
    ModuleSettings& module = settings_.modules.emplace_back();
    module.kind = kind;
    module.loads_at_first_use = true;
    module.keep_alive_s = keep_alive_s;
    module.id = id;
    module.values.emplace_back(fmt::format("{}_model", kind_name(kind)), "model-of-" + id);
    return module;
  }
  void start() {
    modules_.emplace(settings_, loader_.hooks(), clock_);
    ASSERT_TRUE(modules_->start());
  }
  Module& module(const std::string& id) {
    const auto& all = modules_->all();
    return **std::find_if(all.begin(), all.end(), [&](const auto& each) { return each->plan.id == id; });
  }
  std::string state(const std::string& id) { return modules_->figures(module(id)).state; }

  // Until the registry has told of the load's end.
  static void wait_for(const std::shared_ptr<ReplyStream>& until) {
    std::promise<void> ended;
    until->on_news([&] { ended.set_value(); });
    if (until->pop_news().end == ReplyStream::End::kOpen) ended.get_future().wait();
    until->on_news({});
    EXPECT_EQ(until->pop_news().end, ReplyStream::End::kFinished);
  }
  // As a request does: asks, waits, and asks again.
  Modules::Asked use(const std::string& id) {
    Modules::Asked asked = modules_->ask(module(id));
    if (!asked.until) return asked;
    wait_for(asked.until);
    return modules_->ask(module(id));
  }
  std::string refusal(const std::string& id) {
    const Modules::Asked asked = use(id);
    if (!asked.refusal) return "";
    EXPECT_EQ(asked.refusal->status, 503);
    EXPECT_FALSE(asked.models.any());
    return asked.refusal->code + ": " + asked.refusal->message;
  }

  Settings settings_;
  Loader loader_;
  ManualClock clock_;
  std::optional<Modules> modules_;
};

TEST_F(ModulesTest, FirstRequestLoadsModel) {
  add("a"), add("b");
  start();
  EXPECT_EQ(state("a"), "unloaded");
  const Modules::Asked asked = use("a");
  ASSERT_TRUE(asked.models.chat);
  EXPECT_EQ(asked.models.chat->id(), "a");
  EXPECT_EQ(modules_->loaded(module("a")).chat, asked.models.chat);
  EXPECT_EQ(state("a"), "loaded");
  EXPECT_EQ(state("b"), "unloaded");
  EXPECT_FALSE(modules_->loaded(module("b")).any());
  EXPECT_EQ(use("a").models.chat, asked.models.chat);
  EXPECT_THAT(loader_.log(), ElementsAre("load a", "loaded a"));
  EXPECT_EQ(modules_->figures(module("a")).loads, 1U);
}

TEST_F(ModulesTest, OneLoadServesAllWaitingRequests) {
  add("a"), add("b");
  loader_.close();
  start();
  std::vector<std::shared_ptr<ReplyStream>> waiting;
  for (int i = 0; i < 4; ++i) waiting.push_back(modules_->ask(module("a")).until);
  loader_.wait_for_load("a");
  waiting.push_back(modules_->ask(module("a")).until);
  const auto other = modules_->ask(module("b")).until;
  EXPECT_EQ(state("a"), "loading");
  waiting[1].reset();  // a client that has gone
  for (const auto& each : {waiting[0], waiting[4], other}) {
    ASSERT_TRUE(each);
    EXPECT_EQ(each->pop_news().end, ReplyStream::End::kOpen);
  }
  loader_.open();
  for (const auto& each : waiting)
    if (each) wait_for(each);
  wait_for(other);
  EXPECT_TRUE(modules_->ask(module("a")).models.any());
  EXPECT_TRUE(modules_->ask(module("b")).models.any());
  EXPECT_THAT(loader_.log(), ElementsAre("load a", "loaded a", "load b", "loaded b"));
}

TEST_F(ModulesTest, FailedLoadIsToldAndTriedLater) {
  add("a");
  loader_.faults["a"] = "'/secret/model.gguf' is broken";
  start();
  EXPECT_EQ(refusal("a"), "not_loaded: the model 'a' could not be loaded; the server's log says why");
  EXPECT_EQ(state("a"), "failed");
  EXPECT_EQ(modules_->ask(module("a")).refusal->retry_after_s, 10);
  loader_.faults.clear();
  clock_.advance_ns(Modules::kRetryNs - 1);
  EXPECT_THAT(refusal("a"), HasSubstr("not_loaded"));
  EXPECT_THAT(loader_.log(), ElementsAre("load a"));
  clock_.advance_ns(1);
  EXPECT_TRUE(use("a").models.any());
  EXPECT_THAT(loader_.log(), ElementsAre("load a", "load a", "loaded a"));
  EXPECT_EQ(modules_->figures(module("a")).loads, 1U);
}

TEST_F(ModulesTest, ExceptionOfLibraryFailsItsLoad) {
  add("a"), add("b");
  loader_.throwing = {"a"};
  start();
  EXPECT_THAT(refusal("a"), HasSubstr("not_loaded"));
  EXPECT_TRUE(use("b").models.any());
  const Status loaded = modules_->load(module("a"));
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().message, "unexpected failure while a was loaded: a library's fault");
}

TEST_F(ModulesTest, IdleModelIsUnloadedAfterItsTime) {
  add("a", 5), add("stays", -1);
  start();
  EXPECT_TRUE(use("a").models.any());
  EXPECT_TRUE(use("stays").models.any());
  clock_.advance_ns(5 * kSecond - 1);
  modules_->tend();
  EXPECT_EQ(state("a"), "loaded");
  EXPECT_EQ(loader_.existing(), 2U);
  clock_.advance_ns(1);
  modules_->tend();
  EXPECT_EQ(state("a"), "unloaded");
  while (loader_.existing() > 1) std::this_thread::yield();
  EXPECT_EQ(modules_->figures(module("a")).unloads, 1U);
  clock_.advance_ns(1000 * kSecond);
  modules_->tend();
  EXPECT_EQ(state("stays"), "loaded");
  EXPECT_TRUE(use("a").models.any());
  EXPECT_THAT(loader_.log(),
              ElementsAre("load a", "loaded a", "load stays", "loaded stays", "unloads a", "load a", "loaded a"));
}

TEST_F(ModulesTest, RequestStartsItsTimeAnew) {
  add("a", 5);
  start();
  EXPECT_TRUE(use("a").models.any());
  clock_.advance_ns(4 * kSecond);
  EXPECT_TRUE(use("a").models.any());
  clock_.advance_ns(4 * kSecond);
  modules_->tend();
  EXPECT_EQ(state("a"), "loaded");
  clock_.advance_ns(kSecond);
  modules_->tend();
  EXPECT_EQ(state("a"), "unloaded");
}

TEST_F(ModulesTest, ModelInUseStays) {
  add("a", 5);
  start();
  Models held = use("a").models;
  clock_.advance_ns(100 * kSecond);
  modules_->tend();
  EXPECT_EQ(state("a"), "loaded");
  held = {};
  clock_.advance_ns(5 * kSecond - 1);
  modules_->tend();
  EXPECT_EQ(state("a"), "loaded");
  clock_.advance_ns(1);
  modules_->tend();
  EXPECT_EQ(state("a"), "unloaded");
}

TEST_F(ModulesTest, IdleModelOutlastsLoadOfAnother) {
  add("a", 5), add("b");
  start();
  EXPECT_TRUE(use("a").models.any());
  loader_.close();
  const auto until = modules_->ask(module("b")).until;
  clock_.advance_ns(5 * kSecond);
  modules_->tend();
  EXPECT_EQ(state("a"), "loaded");
  loader_.open();
  wait_for(until);
  modules_->tend();
  EXPECT_EQ(state("a"), "unloaded");
}

TEST_F(ModulesTest, WaitingRequestComesBeforeShortKeepAlive) {
  add("a", 0);
  start();
  wait_for(modules_->ask(module("a")).until);
  clock_.advance_ns(Modules::kLeastIdleNs - 1);
  modules_->tend();
  EXPECT_TRUE(modules_->ask(module("a")).models.any());
  clock_.advance_ns(Modules::kLeastIdleNs);
  modules_->tend();
  EXPECT_EQ(state("a"), "unloaded");
}

TEST_F(ModulesTest, BudgetRefusesWhileOthersAreInUse) {
  settings_.memory_budget_mb = 100;
  add("a"), add("b");
  loader_.file_mb = {{"a", 60}, {"b", 50}};
  start();
  Models held = use("a").models;
  EXPECT_EQ(modules_->figures(module("a")).memory_bytes, 60 * kMegabyte);
  EXPECT_EQ(refusal("b"),
            "memory_budget: the model 'b' needs about 50 MB, and models in use hold 60 of the 100 MB of "
            "memory_budget_mb; ask again when they are idle, or have the operator raise it");
  EXPECT_EQ(modules_->ask(module("b")).refusal->retry_after_s, 5);
  EXPECT_EQ(state("b"), "unloaded");
  held = {};
  clock_.advance_ns(Modules::kResidenceNs);
  EXPECT_TRUE(use("b").models.any());
  EXPECT_EQ(state("a"), "unloaded");
  EXPECT_EQ(modules_->figures(module("a")).memory_bytes, 0U);
  EXPECT_THAT(loader_.log(), ElementsAre("load a", "loaded a", "unloads a", "load b", "loaded b"));
}

TEST_F(ModulesTest, LeastRecentlyUsedGoesForRoom) {
  settings_.memory_budget_mb = 100;
  add("a"), add("b"), add("c"), add("stays", -1);
  loader_.file_mb = {{"a", 30}, {"b", 30}, {"c", 30}, {"stays", 30}};
  start();
  for (const char* id : {"stays", "a", "b", "a"}) {
    clock_.advance_ns(kSecond);
    EXPECT_TRUE(use(id).models.any());
  }
  clock_.advance_ns(Modules::kResidenceNs);
  EXPECT_TRUE(use("c").models.any());
  EXPECT_EQ(state("a"), "loaded");
  EXPECT_EQ(state("b"), "unloaded");
  EXPECT_EQ(state("stays"), "loaded");
}

TEST_F(ModulesTest, PermanentModelIsNotUnloadedForRoom) {
  settings_.memory_budget_mb = 100;
  add("stays", -1), add("b");
  loader_.file_mb = {{"stays", 60}, {"b", 50}};
  start();
  EXPECT_TRUE(use("stays").models.any());
  clock_.advance_ns(1000 * kSecond);
  EXPECT_THAT(refusal("b"), HasSubstr("memory_budget: "));
}

TEST_F(ModulesTest, ModelLargerThanItsFileMakesRoom) {
  settings_.memory_budget_mb = 100;
  add("a"), add("b"), add("next");
  loader_.file_mb = {{"a", 60}, {"b", 10}};
  loader_.mb["b"] = 80;
  start();
  EXPECT_TRUE(use("a").models.any());
  clock_.advance_ns(Modules::kResidenceNs);
  EXPECT_TRUE(use("b").models.any());
  EXPECT_EQ(state("a"), "unloaded");
  EXPECT_TRUE(use("next").models.any());
  EXPECT_EQ(loader_.existing(), 2U);
}

TEST_F(ModulesTest, ModelLargerThanBudgetGoesAgain) {
  settings_.memory_budget_mb = 100;
  add("a"), add("next");
  loader_.file_mb["a"] = 10;
  loader_.mb["a"] = 101;
  start();
  EXPECT_THAT(
      refusal("a"),
      HasSubstr("memory_budget: the model 'a' took more memory than its files have, and more than models in use "
                "leave of the 100 MB"));
  EXPECT_EQ(state("a"), "failed");
  clock_.advance_ns(Modules::kRetryNs);
  EXPECT_THAT(refusal("a"), HasSubstr("memory_budget: "));
  EXPECT_TRUE(use("next").models.any());
  EXPECT_EQ(loader_.existing(), 1U);
  EXPECT_THAT(loader_.log(), ElementsAre("load a", "load a", "load next", "loaded next"));
}

// Each of the two has room alone.
TEST_F(ModulesTest, LoadUnderWayCountsInBudget) {
  settings_.memory_budget_mb = 100;
  add("a"), add("b");
  loader_.file_mb = {{"a", 60}, {"b", 60}};
  loader_.close();
  start();
  const auto first = modules_->ask(module("a")).until;
  ASSERT_TRUE(first);
  EXPECT_EQ(modules_->ask(module("b")).refusal->code, "memory_budget");
  loader_.open();
  wait_for(first);
  const Models held = modules_->ask(module("a")).models;
  EXPECT_TRUE(held.any());
  EXPECT_THAT(refusal("b"), HasSubstr("memory_budget: "));
  EXPECT_THAT(loader_.log(), ElementsAre("load a", "loaded a"));
}

TEST_F(ModulesTest, AbandonedRequestKeepsNoRoom) {
  settings_.memory_budget_mb = 100;
  add("a"), add("b");
  loader_.file_mb = {{"a", 60}, {"b", 60}};
  start();
  wait_for(modules_->ask(module("a")).until);
  EXPECT_THAT(refusal("b"), HasSubstr("memory_budget: "));
  clock_.advance_ns(Modules::kResidenceNs);
  EXPECT_TRUE(use("b").models.any());
  EXPECT_EQ(state("a"), "unloaded");
}

TEST_F(ModulesTest, CloseEndsWaitsAndLoads) {
  add("a"), add("b");
  loader_.close();
  start();
  const auto first = modules_->ask(module("a")).until, second = modules_->ask(module("b")).until;
  modules_->close();
  wait_for(first);
  wait_for(second);
  EXPECT_EQ(modules_->ask(module("b")).refusal->code, "draining");
  loader_.open();
}

TEST_F(ModulesTest, LongLoadRefusesRequests) {
  add("a");
  loader_.close();
  start();
  const auto until = modules_->ask(module("a")).until;
  EXPECT_EQ(modules_->ask(module("a"), /*waits=*/false).until, nullptr);
  clock_.advance_ns(Modules::kLongestWaitNs);
  modules_->tend();
  wait_for(until);
  EXPECT_EQ(modules_->ask(module("a")).refusal->code, "loading");
  loader_.open();
}

TEST_F(ModulesTest, StartLoadsOnItsOwnThread) {
  settings_.memory_budget_mb = 100;
  add("a"), add("b"), add("c");
  loader_.file_mb = {{"a", 60}, {"b", 30}, {"c", 50}};
  loader_.faults["b"] = "no such file";
  start();
  EXPECT_TRUE(modules_->load(module("a")));
  EXPECT_TRUE(modules_->ask(module("a")).models.any());
  const Status failed = modules_->load(module("b"));
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().message, "no such file");
  const Models held = modules_->ask(module("a")).models;
  const Status refused = modules_->load(module("c"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kLimitExceeded);
  EXPECT_THAT(refused.error().message, HasSubstr("the model 'c' needs about 50 MB"));
}

TEST_F(ModulesTest, BudgetIsCheckedBeforeTheStart) {
  add("a"), add("b"), add("c");
  loader_.file_mb = {{"a", 60}, {"b", 30}, {"c", 50}};
  const auto checked = [&](int64_t budget_mb) -> std::string {
    settings_.memory_budget_mb = budget_mb;
    const Status status = Modules::check_budget(settings_, loader_.hooks().file_bytes);
    return status ? "" : status.error().message;
  };
  EXPECT_EQ(checked(0), "");
  EXPECT_EQ(checked(60), "");
  EXPECT_EQ(checked(59), "'memory_budget_mb' is 59, and the model of [[module]] 1 has 60 MB; raise it");
  settings_.modules[0].loads_at_first_use = settings_.modules[1].loads_at_first_use = false;
  EXPECT_EQ(checked(90), "");
  EXPECT_EQ(checked(89),
            "'memory_budget_mb' is 89, and the models that are loaded at the start have 90 MB; raise it, or give some "
            "of them load = \"first-use\"");
}

TEST_F(ModulesTest, EndWaitsForLoadUnderWay) {
  add("a");
  loader_.close();
  start();
  const auto until = modules_->ask(module("a")).until;
  loader_.wait_for_load("a");
  std::thread ending([&] { modules_.reset(); });
  loader_.open();
  ending.join();
  EXPECT_THAT(loader_.log(), ElementsAre("load a", "loaded a"));
  EXPECT_EQ(loader_.existing(), 0U);
}

}  // namespace
}  // namespace syrinx::server
