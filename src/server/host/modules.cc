#include "server/host/modules.h"

#include <algorithm>
#include <exception>
#include <new>
#include <system_error>
#include <utility>

#include "base/in_quotes.h"
#include "base/log.h"
#include "base/memory.h"

namespace syrinx::server {
namespace {

constexpr uint64_t kMegabyte = uint64_t{1} << 20;
constexpr int64_t kSecondNs = 1'000'000'000;

uint64_t megabytes(uint64_t bytes) { return (bytes + kMegabyte - 1) / kMegabyte; }

const char* use_of(ModuleKind kind) {
  switch (kind) {
    case ModuleKind::kSpeech: return "speech";
    case ModuleKind::kRecognition: return "transcription";
    case ModuleKind::kChat: break;
  }
  return "chat";
}

size_t live_slots_of(const ModulePlan& plan) {
  return plan.kind == ModuleKind::kRecognition ? static_cast<size_t>(plan.settings.recognition_live_slots) : 0;
}

}  // namespace

Module::Module(ModulePlan wanted)
    : plan(std::move(wanted)),
      names(plan.settings, model_of(plan), use_of(plan.kind)),
      slots(slots_of(plan), system_clock(), live_slots_of(plan)) {}

Modules::Modules(const Settings& settings, Hooks hooks, const Clock& clock)
    : budget_bytes_(static_cast<uint64_t>(settings.memory_budget_mb) * kMegabyte),
      hooks_(std::move(hooks)),
      clock_(clock) {
  for (ModulePlan& plan : module_plans(settings)) modules_.push_back(std::make_unique<Module>(std::move(plan)));
}

Modules::~Modules() {
  close();
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  if (loader_.joinable()) loader_.join();
}

Status Modules::start() {
  bool loads_later = false;
  for (const auto& module : modules_) {
    SYRINX_TRY_VOID(module->slots.start());
    if (budget_bytes_ > 0 && hooks_.file_bytes) module->file_bytes_ = hooks_.file_bytes(module->plan);
    loads_later = loads_later || module->plan.loads_at_first_use || module->plan.keep_alive_s >= 0;
  }
  if (!loads_later) return {};
  try {
    loader_ = std::thread([this] { run(); });
  } catch (const std::system_error& error) {
    return fail(Code::kUnavailable, "no thread can be made that loads models: {}; raise the limit of threads",
                error.what());
  }
  return {};
}

Module* Modules::first(ModuleKind kind) const {
  for (const auto& module : modules_)
    if (module->plan.kind == kind) return module.get();
  return nullptr;
}

size_t Modules::count(ModuleKind kind) const {
  return static_cast<size_t>(
      std::count_if(modules_.begin(), modules_.end(), [&](const auto& module) { return module->plan.kind == kind; }));
}

// An operator's name goes before an alias, which several modules may have.
Module* Modules::find(ModuleKind kind, std::string_view name) const {
  if (name.empty()) return first(kind);
  for (const auto& module : modules_)
    if (module->plan.kind == kind && module->names.has(name)) return module.get();
  for (const auto& module : modules_)
    if (module->plan.kind == kind && module->names.are_called(name)) return module.get();
  return nullptr;
}

Status Modules::load(Module& module) {
  auto loaded = try_load(module);
  return settle(module, std::move(loaded));
}

void Modules::drop(ModuleKind kind) {
  std::erase_if(modules_, [&](const auto& module) { return module->plan.kind == kind; });
}

void Modules::give(Module& module, Models models) { static_cast<void>(settle(module, std::move(models))); }

Modules::Asked Modules::ask(Module& module, bool waits) {
  const std::lock_guard lock(mutex_);
  const int64_t now_ns = clock_.now_ns();
  module.used_ns_ = now_ns;
  if (module.models_.any()) return {.models = module.models_};
  const bool is_loading = module.state_ == Module::State::kLoading;
  const bool has_failed = module.state_ == Module::State::kFailed && now_ns - module.failed_ns_ < kRetryNs;
  const bool takes_long = is_loading && now_ns - module.asked_ns_ >= kLongestWaitNs;
  if (is_closed_ || !loader_.joinable() || has_failed || takes_long) return {.refusal = refusal(module)};
  if (!is_loading) {
    if (const auto why = why_no_room(module))
      return {.refusal = HttpError{.status = 503,
                                   .message = why->message,
                                   .code = "memory_budget",
                                   .retry_after_s = static_cast<int>(kResidenceNs / kSecondNs)}};
    module.state_ = Module::State::kLoading;
    module.asked_ns_ = now_ns;
    queue_.push_back(&module);
    changed_.notify_one();
  }
  if (!waits) return {};
  std::erase_if(module.waiting_, [](const auto& waiting) { return waiting.expired(); });
  auto until = std::make_shared<ReplyStream>();
  module.waiting_.push_back(until);
  return {.until = std::move(until)};
}

HttpError Modules::refusal(const Module& module) const {
  HttpError error{.status = 503, .message = {}, .retry_after_s = 1};
  const std::string name = in_quotes(module.plan.id);
  if (is_closed_) {
    error.message = "the server is going down; ask another one";
    error.code = "draining";
  } else if (module.state_ == Module::State::kLoading) {
    error.message = fmt::format("the model {} is still being loaded; ask again later", name);
    error.code = "loading";
  } else {
    const int64_t left_ns = module.failed_ns_ + kRetryNs - clock_.now_ns();
    error.retry_after_s = static_cast<int>(std::max<int64_t>(1, left_ns / kSecondNs));
    error.code = module.is_too_large_ ? "memory_budget" : "not_loaded";
    error.message = module.is_too_large_
                        ? fmt::format(
                              "the model {} took more memory than its files have, and more than models in use "
                              "leave of the {} MB of memory_budget_mb; ask again when they are idle, or have the "
                              "operator raise it",
                              name, megabytes(budget_bytes_))
                        : fmt::format("the model {} could not be loaded; the server's log says why", name);
  }
  return error;
}

Models Modules::loaded(const Module& module) const {
  const std::lock_guard lock(mutex_);
  return module.models_;
}

Modules::Figures Modules::figures(const Module& module) const {
  static constexpr const char* kStates[] = {"unloaded", "loading", "loaded", "failed"};
  const std::lock_guard lock(mutex_);
  return {.state = kStates[static_cast<size_t>(module.state_)],
          .memory_bytes = module.models_.memory_bytes(),
          .loads = module.loads_,
          .unloads = module.unloads_};
}

// A load measures by how much the process grows, so nothing goes meanwhile.
void Modules::tend() {
  const std::lock_guard lock(mutex_);
  const int64_t now_ns = clock_.now_ns();
  bool is_loading = false;
  for (const auto& module : modules_) {
    if (module->models_.in_use()) module->used_ns_ = now_ns;
    if (module->state_ != Module::State::kLoading) continue;
    is_loading = true;
    if (now_ns - module->asked_ns_ >= kLongestWaitNs) wake(*module);
  }
  if (is_loading) return;
  for (const auto& module : modules_) {
    if (!module->models_.any() || module->plan.keep_alive_s < 0) continue;
    const auto patience_ns = std::max(static_cast<int64_t>(module->plan.keep_alive_s * 1e9), kLeastIdleNs);
    if (now_ns - module->used_ns_ >= patience_ns) take(*module);
  }
  if (!gone_.empty()) changed_.notify_one();
}

void Modules::close() {
  const std::lock_guard lock(mutex_);
  is_closed_ = true;
  queue_.clear();
  for (const auto& module : modules_) wake(*module);
}

// The thread's entry.
void Modules::run() {
  for (;;) {
    Module* module = nullptr;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return ends_ || !queue_.empty() || !gone_.empty(); });
      if (ends_) return;
      if (!queue_.empty()) {
        module = queue_.front();
        queue_.pop_front();
      }
    }
    destroy_gone();
    if (module == nullptr) continue;
    if (const Status settled = settle(*module, try_load(*module)); !settled)
      log_warning("{} was not loaded: {}", module->plan.id, settled.error().message);
  }
}

void Modules::destroy_gone() {
  std::vector<Models> gone;
  {
    const std::lock_guard lock(mutex_);
    gone = std::exchange(gone_, {});
  }
  if (gone.empty()) return;
  gone.clear();
  give_back_unused_pages();
}

// An exception of a library is an error like others.
Result<Models> Modules::try_load(Module& module) {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(module.state_, Module::State::kLoading) != Module::State::kLoading)
      module.asked_ns_ = clock_.now_ns();
    if (auto why = why_no_room(module)) return tl::unexpected(std::move(*why));
    make_room(module);
  }
  destroy_gone();
  try {
    return hooks_.load(module.plan);
  } catch (const std::bad_alloc&) {
    return fail(Code::kUnavailable, "out of memory while {} was loaded", module.plan.id);
  } catch (const std::exception& error) {
    return fail(Code::kInternal, "unexpected failure while {} was loaded: {}", module.plan.id, error.what());
  }
}

// A model that took more than its files promised, and with which the budget does not last, goes again; the next load
// measures anew.
Status Modules::settle(Module& module, Result<Models> loaded) {
  bool is_too_large = false;
  if (loaded) {
    const std::lock_guard lock(mutex_);
    module.known_bytes_ = loaded->memory_bytes();
    if (auto why = why_no_room(module)) {
      is_too_large = true;
      module.known_bytes_ = 0;
      gone_.push_back(std::move(*loaded));
      loaded = tl::unexpected(std::move(*why));
    } else {
      make_room(module);
    }
  }
  Status status = {};
  if (!loaded) status = tl::unexpected(loaded.error());
  try {
    if (loaded && hooks_.loaded) hooks_.loaded(module, *loaded);
  } catch (const std::exception& error) {
    log_error("{} is loaded, and metrics and log do not tell: {}", module.plan.id, error.what());
  }
  {
    const std::lock_guard lock(mutex_);
    module.used_ns_ = module.loaded_ns_ = clock_.now_ns();
    if (loaded) {
      ++module.loads_;
      module.models_ = std::move(*loaded);
      module.state_ = Module::State::kLoaded;
    } else {
      module.is_too_large_ = is_too_large;
      module.failed_ns_ = module.used_ns_;
      // Without room, those that wait ask again, and are told why.
      const bool lacks_room = !is_too_large && loaded.error().code == Code::kLimitExceeded;
      module.state_ = lacks_room ? Module::State::kUnloaded : Module::State::kFailed;
    }
    wake(module);
  }
  destroy_gone();
  return status;
}

void Modules::wake(Module& module) {
  for (const auto& waiting : std::exchange(module.waiting_, {})) {
    const auto until = waiting.lock();
    if (!until) continue;
    try {
      until->finish();
    } catch (const std::exception& error) {
      log_error("a request that waits for {} was not told: {}", module.plan.id, error.what());
    }
  }
}

uint64_t Modules::needed_bytes(const Module& module) {
  return module.known_bytes_ > 0 ? module.known_bytes_ : module.file_bytes_;
}

// Not when it has just been loaded: requests that waited for it come first.
bool Modules::is_idle(const Module& module) const {
  return module.models_.any() && module.plan.keep_alive_s >= 0 && !module.models_.in_use() &&
         clock_.now_ns() - module.loaded_ns_ >= kResidenceNs;
}

// Models that are being loaded count, too.
std::optional<Error> Modules::why_no_room(const Module& module) const {
  if (budget_bytes_ == 0) return std::nullopt;
  const uint64_t needed = needed_bytes(module);
  uint64_t held = 0;
  for (const auto& other : modules_) {
    if (other.get() == &module) continue;
    if (other->state_ == Module::State::kLoading) held += needed_bytes(*other);
    if (other->models_.any() && !is_idle(*other)) held += other->models_.memory_bytes();
  }
  if (needed + held <= budget_bytes_) return std::nullopt;
  return Error{
      Code::kLimitExceeded,
      fmt::format("the model {} needs about {} MB, and models in use hold {} of the {} MB of memory_budget_mb; "
                  "ask again when they are idle, or have the operator raise it",
                  in_quotes(module.plan.id), megabytes(needed), megabytes(held), megabytes(budget_bytes_))};
}

void Modules::take(Module& module) {
  if (hooks_.unloads) hooks_.unloads(module, module.models_);
  ++module.unloads_;
  module.state_ = Module::State::kUnloaded;
  gone_.push_back(std::exchange(module.models_, {}));
}

// Idle models go, the longest unused first, until there is room.
void Modules::make_room(const Module& module) {
  if (budget_bytes_ == 0) return;
  for (;;) {
    uint64_t held = needed_bytes(module);
    Module* oldest = nullptr;
    for (const auto& other : modules_) {
      if (other.get() == &module) continue;
      held += other->models_.memory_bytes();
      if (is_idle(*other) && (oldest == nullptr || other->used_ns_ < oldest->used_ns_)) oldest = other.get();
    }
    if (held <= budget_bytes_ || oldest == nullptr) return;
    take(*oldest);
  }
}

Status Modules::check_budget(const Settings& settings, const std::function<uint64_t(const ModulePlan&)>& file_bytes) {
  if (settings.memory_budget_mb == 0) return {};
  uint64_t at_start = 0;
  for (const ModulePlan& plan : module_plans(settings)) {
    const uint64_t needed = megabytes(file_bytes(plan));
    if (needed > static_cast<uint64_t>(settings.memory_budget_mb))
      return fail(Code::kLimitExceeded, "'memory_budget_mb' is {}, and the model of {} has {} MB; raise it",
                  settings.memory_budget_mb, plan.place, needed);
    if (!plan.loads_at_first_use) at_start += needed;
  }
  if (at_start <= static_cast<uint64_t>(settings.memory_budget_mb)) return {};
  return fail(
      Code::kLimitExceeded,
      "'memory_budget_mb' is {}, and the models that are loaded at the start have {} MB; raise it, or give some "
      "of them load = \"first-use\"",
      settings.memory_budget_mb, at_start);
}

}  // namespace syrinx::server
