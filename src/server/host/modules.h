// The modules of the server: each a model with its names and slots, loaded at the start or by the first request that
// needs it, and unloaded when it has been idle for its keep_alive, or for room in the memory budget.
//
// A thread of its own loads, one model after another; a request waits meanwhile (HttpReply::until).  All functions: any
// thread; none but load() waits for a load.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "server/host/models.h"
#include "server/host/slots.h"
#include "server/http/reply_stream.h"
#include "server/settings/model_id.h"
#include "server/settings/module_plan.h"

namespace syrinx::server {

class Module {
 public:
  explicit Module(ModulePlan wanted);

  const ModulePlan plan;
  const ModelNames names;
  SlotPool slots;

 private:
  friend class Modules;
  enum class State : uint8_t { kUnloaded, kLoading, kLoaded, kFailed };
  // By Modules::mutex_.
  State state_ = State::kUnloaded;
  Models models_;
  uint64_t loads_ = 0, unloads_ = 0;
  uint64_t file_bytes_ = 0, known_bytes_ = 0;  // the latter by the last load; 0: not known
  int64_t used_ns_ = 0, loaded_ns_ = 0, failed_ns_ = 0;
  int64_t asked_ns_ = 0;       // for the load under way
  bool is_too_large_ = false;  // the failure: it took more than the budget leaves
  std::vector<std::weak_ptr<ReplyStream>> waiting_;
};

class Modules {
 public:
  static constexpr int64_t kRetryNs = 10'000'000'000;         // before a load that failed is tried again
  static constexpr int64_t kLeastIdleNs = 500'000'000;        // whatever keep_alive says: a waiting request comes first
  static constexpr int64_t kResidenceNs = 5'000'000'000;      // before a model may go for room
  static constexpr int64_t kLongestWaitNs = 120'000'000'000;  // for a load; then requests are refused

  struct Hooks {
    std::function<Result<Models>(const ModulePlan&)> load;
    std::function<uint64_t(const ModulePlan&)> file_bytes;  // of the model, before it has been loaded; 0: not known
    std::function<void(Module&, const Models&)> loaded;     // before a request has it
    std::function<void(Module&, const Models&)> unloads;    // the last use
  };
  Modules(const Settings& settings, Hooks hooks, const Clock& clock = system_clock());
  ~Modules();  // waits for the load under way
  Modules(const Modules&) = delete;
  Modules& operator=(const Modules&) = delete;

  // Makes the threads; once.  Errors: SlotPool::start(), kUnavailable.
  Status start();
  const std::vector<std::unique_ptr<Module>>& all() const { return modules_; }
  Module* first(ModuleKind kind) const;  // null: there is none
  size_t count(ModuleKind kind) const;
  // By id, by a further name, by an alias of its model; an empty name, or one of another maker's models, is the
  // first's.  Null: there is none.
  Module* find(ModuleKind kind, std::string_view name) const;

  // Loads a module of the start now, on this thread.  The engine's errors, and the budget's.
  Status load(Module& module);
  void give(Module& module, Models models);  // one that is loaded already
  void drop(ModuleKind kind);                // before the first request

  // For a request: the model, or the end to wait for (where it `waits`), or the reason of a refusal.
  struct Asked {
    Models models = {};
    std::shared_ptr<ReplyStream> until = {};
    std::optional<HttpError> refusal = {};
  };
  Asked ask(Module& module, bool waits = true);
  Models loaded(const Module& module) const;

  struct Figures {
    const char* state = "";  // "loaded", "unloaded", "loading", "failed"
    uint64_t memory_bytes = 0, loads = 0, unloads = 0;
  };
  Figures figures(const Module& module) const;

  // Has the loader unload what has been idle for long enough, and ends waits that are too long; now and then.
  void tend();
  // From now on nothing is loaded, and requests that wait are refused.
  void close();

  // No module has a file larger than the budget, nor do those of the start together.
  static Status check_budget(const Settings& settings, const std::function<uint64_t(const ModulePlan&)>& file_bytes);

 private:
  void run();
  Result<Models> try_load(Module& module);
  Status settle(Module& module, Result<Models> loaded);
  void destroy_gone();
  // By mutex_.
  static uint64_t needed_bytes(const Module& module);
  std::optional<Error> why_no_room(const Module& module) const;
  HttpError refusal(const Module& module) const;
  bool is_idle(const Module& module) const;
  void take(Module& module);
  void make_room(const Module& module);
  static void wake(Module& module);

  const uint64_t budget_bytes_;  // 0: no limit
  const Hooks hooks_;
  const Clock& clock_;
  std::vector<std::unique_ptr<Module>> modules_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Module*> queue_;  // by mutex_, as are the following
  std::vector<Models> gone_;   // to be destroyed, by the loader or by load()
  bool is_closed_ = false, ends_ = false;
  std::thread loader_;
};

// Hooks::load and ::file_bytes for real models.
Result<Models> load_module(const ModulePlan& plan);
uint64_t module_file_bytes(const ModulePlan& plan);
Status check_module_files(const ModulePlan& plan);  // without loading

}  // namespace syrinx::server
