#include "server/slots.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "base/log.h"

namespace syrinx::server {

double SlotWatch::waiting_s() const {
  const int64_t since = since_ns_.load(std::memory_order_relaxed);
  return since == kIdle ? 0 : static_cast<double>(clock_.now_ns() - since) * 1e-9;
}

SlotPool::SlotPool(size_t slots, const Clock& clock) {
  for (size_t i = 0; i < slots; ++i) slots_.push_back(std::make_unique<Slot>(clock));
  for (const auto& slot : slots_) slot->thread = std::thread([this, &slot = *slot] { run(slot); });
}

SlotPool::~SlotPool() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
    for (const auto& slot : slots_) slot->changed.notify_all();
  }
  for (const auto& slot : slots_) slot->thread.join();
}

bool SlotPool::try_start(Job job, Done done) {
  const std::lock_guard lock(mutex_);
  const auto free = std::find_if(slots_.begin(), slots_.end(), [](const auto& slot) { return !slot->taken; });
  if (free == slots_.end() || closing_) return false;
  Slot& slot = **free;
  slot.taken = true;
  slot.job = std::move(job);
  slot.done = std::move(done);
  busy_.fetch_add(1, std::memory_order_acq_rel);
  slot.changed.notify_one();
  return true;
}

double SlotPool::longest_wait_s() const {
  double longest = 0;
  for (const auto& slot : slots_) longest = std::max(longest, slot->watch.waiting_s());
  return longest;
}

void SlotPool::run(Slot& slot) {
  std::unique_lock lock(mutex_);
  for (;;) {
    slot.changed.wait(lock, [&] { return slot.job || closing_; });
    if (!slot.job) return;
    Job job = std::exchange(slot.job, {});
    Done done = std::exchange(slot.done, {});
    lock.unlock();
    // The thread's entry: what libraries throw ends here, and `done` still tells that there is no more.
    try {
      job(slot.watch);
    } catch (const std::exception& error) {
      log_error("an answer was given up: {}", error.what());
    }
    job = {};
    slot.watch.wait_ends();
    lock.lock();
    slot.taken = false;
    busy_.fetch_sub(1, std::memory_order_acq_rel);
    lock.unlock();
    done();
    done = {};
    lock.lock();
  }
}

}  // namespace syrinx::server
