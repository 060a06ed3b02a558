#include "server/host/slots.h"

#include <algorithm>
#include <exception>
#include <system_error>
#include <utility>

#include "base/log.h"

namespace syrinx::server {
namespace {

// On a thread's way nothing is thrown further: neither what libraries throw, nor what telling of it throws.
void run_to_its_end(const char* what, const std::function<void()>& action) {
  try {
    try {
      action();
    } catch (const std::exception& error) {
      log_error("{} was given up: {}", what, error.what());
    } catch (...) {
      log_error("{} was given up after an unknown exception", what);
    }
  } catch (...) {  // NOLINT(bugprone-empty-catch): there is no memory for a line of the log
  }
}

}  // namespace

void SlotWatch::wait_ends() {
  if (since_ns_.exchange(kIdle, std::memory_order_relaxed) != kIdle)
    given_ns_.store(clock_.now_ns(), std::memory_order_relaxed);
}

void SlotWatch::note_audio(double seconds) {
  if (!is_live_.load(std::memory_order_relaxed)) return;
  const int64_t now_ns = clock_.now_ns();
  if (first_ns_.load(std::memory_order_relaxed) == kIdle) first_ns_.store(now_ns, std::memory_order_relaxed);
  last_ns_.store(now_ns, std::memory_order_relaxed);
  audio_ns_.fetch_add(static_cast<int64_t>(seconds * 1e9), std::memory_order_relaxed);
}

void SlotWatch::begin_work(bool is_live) {
  is_live_.store(is_live, std::memory_order_relaxed);
  before_ns_.store(audio_ns_.load(std::memory_order_relaxed), std::memory_order_relaxed);
  first_ns_.store(kIdle, std::memory_order_relaxed);
}

bool SlotWatch::is_pacing(int64_t now_ns) const {
  const int64_t first_ns = first_ns_.load(std::memory_order_relaxed);
  if (first_ns == kIdle || now_ns - last_ns_.load(std::memory_order_relaxed) <= kQuietNs) return true;
  const int64_t made_ns = audio_ns_.load(std::memory_order_relaxed) - before_ns_.load(std::memory_order_relaxed);
  return made_ns - (now_ns - first_ns) <= kAheadNs;
}

std::optional<int64_t> SlotWatch::waits_since_ns() const {
  const int64_t since = since_ns_.load(std::memory_order_relaxed);
  return since == kIdle ? std::nullopt : std::optional(since);
}

double SlotWatch::waiting_s() const {
  const auto since = waits_since_ns();
  return since ? static_cast<double>(clock_.now_ns() - *since) * 1e-9 : 0;
}

SlotPool::SlotPool(size_t slots, const Clock& clock, size_t live_slots)
    : clock_(clock), most_batch_(slots - std::min(live_slots, slots - std::min<size_t>(slots, 1))) {
  for (size_t i = 0; i < slots; ++i) slots_.push_back(std::make_unique<Slot>(clock));
}

Status SlotPool::start() {
  size_t made = 0;
  try {
    for (; made < slots_.size(); ++made)
      slots_[made]->thread = std::thread([this, &slot = *slots_[made]] { run(slot); });
  } catch (const std::system_error& error) {
    return fail(Code::kUnavailable,
                "threads can be made for {} of {} slots: {}; set fewer, or raise the limit of threads", made,
                slots_.size(), error.what());
  }
  return {};
}

SlotPool::~SlotPool() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
    for (const auto& slot : slots_) slot->changed.notify_all();
  }
  for (const auto& slot : slots_)
    if (slot->thread.joinable()) slot->thread.join();
}

SlotPool::Lease::~Lease() {
  if (pool_ != nullptr) pool_->give_back(*slot_);
}

SlotWatch& SlotPool::Lease::watch() const { return slot_->watch; }

size_t SlotPool::free(Work work) const {
  const size_t free = slots_.size() - busy();
  return work == Work::kBatch ? std::min(free, most_batch_ - batch_busy_.load(std::memory_order_acquire)) : free;
}

SlotPool::Slot* SlotPool::take_free(Work work) {
  if (closing_ || free(work) == 0) return nullptr;
  Slot& slot = **std::find_if(slots_.begin(), slots_.end(), [](const auto& each) { return !each->taken; });
  slot.taken = true;
  slot.work = work;
  slot.taken_ns = clock_.now_ns();
  slot.watch.begin_work(work == Work::kLive);
  busy_.fetch_add(1, std::memory_order_acq_rel);
  if (work == Work::kBatch) batch_busy_.fetch_add(1, std::memory_order_acq_rel);
  return &slot;
}

void SlotPool::free_again(Slot& slot) {
  slot.taken = false;
  busy_.fetch_sub(1, std::memory_order_acq_rel);
  if (slot.work == Work::kBatch) batch_busy_.fetch_sub(1, std::memory_order_acq_rel);
  if (slot.work != Work::kLive) return;
  constexpr double kNewest = 0.1;  // weight
  const double held_s = static_cast<double>(clock_.now_ns() - slot.taken_ns) * 1e-9;
  mean_live_s_ = mean_live_s_ > 0 ? mean_live_s_ + kNewest * (held_s - mean_live_s_) : held_s;
}

SlotPool::Live SlotPool::live() const {
  const int64_t now_ns = clock_.now_ns();
  const std::lock_guard lock(mutex_);
  Live live;
  for (const auto& slot : slots_) {
    if (!slot->taken || slot->work != Work::kLive) continue;
    ++live.streams;
    if (slot->watch.is_pacing(now_ns)) ++live.pacing;
    live.ages_s += static_cast<double>(now_ns - slot->taken_ns) * 1e-9;
  }
  return live;
}

double SlotPool::mean_live_s() const {
  const std::lock_guard lock(mutex_);
  return mean_live_s_;
}

double SlotPool::audio_s() const {
  double seconds = 0;
  for (const auto& slot : slots_) seconds += slot->watch.audio_s();
  return seconds;
}

std::optional<SlotPool::Lease> SlotPool::try_take() {
  const std::lock_guard lock(mutex_);
  Slot* const slot = take_free(Work::kLive);
  if (slot == nullptr) return std::nullopt;
  return Lease(*this, *slot);
}

void SlotPool::give_back(Slot& slot) {
  slot.watch.wait_ends();
  const std::lock_guard lock(mutex_);
  free_again(slot);
}

bool SlotPool::try_start(Job job, Done done, Work work) {
  const std::lock_guard lock(mutex_);
  Slot* const slot = take_free(work);
  if (slot == nullptr) return false;
  slot->job = std::move(job);
  slot->done = std::move(done);
  slot->changed.notify_one();
  return true;
}

double SlotPool::engine_silent_s() const {
  std::optional<int64_t> first;
  int64_t last_given = INT64_MIN;
  for (const auto& slot : slots_) {
    last_given = std::max(last_given, slot->watch.last_given_ns());
    if (const auto since = slot->watch.waits_since_ns()) first = std::min(first.value_or(*since), *since);
  }
  return first ? static_cast<double>(clock_.now_ns() - std::max(*first, last_given)) * 1e-9 : 0;
}

void SlotPool::run(Slot& slot) {
  std::unique_lock lock(mutex_);
  for (;;) {
    slot.changed.wait(lock, [&] { return slot.job || closing_; });
    if (!slot.job) return;
    Job job = std::exchange(slot.job, {});
    Done done = std::exchange(slot.done, {});
    lock.unlock();
    run_to_its_end("an answer", [&] { job(slot.watch); });  // and `done` still tells that there is no more
    job = {};
    slot.watch.wait_ends();
    lock.lock();
    free_again(slot);
    lock.unlock();
    run_to_its_end("an answer's end", done);
    done = {};
    lock.lock();
  }
}

}  // namespace syrinx::server
