#include "engine/schedule/scheduler.h"

namespace syrinx {

bool Scheduler::try_take() {
  if (taken_) return false;
  return taken_ = true;
}

void Scheduler::put(Waiter& waiter, StepQueue& queue, int64_t due_ns, Work work) {
  queue_.put(waiter, due_ns, work);
  waiter.queue = &queue;
  waiting_.fetch_add(1, std::memory_order_relaxed);
  queue.waiting_.fetch_add(1, std::memory_order_relaxed);
}

void Scheduler::remove(Waiter& waiter) {
  queue_.remove(waiter);
  waiter.queue->waiting_.fetch_sub(1, std::memory_order_relaxed);
  waiter.queue = nullptr;
  waiting_.fetch_sub(1, std::memory_order_relaxed);
}

void Scheduler::end(Work work, int64_t began_ns) {
  const int64_t now_ns = clock_.now_ns();
  const std::lock_guard lock(mutex_);
  queue_.note(work, now_ns - began_ns);
  taken_ = !queue_.empty();
  if (taken_) hand_over(now_ns);
}

void Scheduler::hand_over(int64_t now_ns) {
  auto& next = static_cast<Waiter&>(queue_.take(now_ns));
  next.queue->waiting_.fetch_sub(1, std::memory_order_relaxed);
  next.queue = nullptr;
  waiting_.fetch_sub(1, std::memory_order_relaxed);
  next.is_served = true;
  next.changed.notify_one();  // under the lock: the waiter is gone as soon as its thread has seen this
}

void StepQueue::join(Place& place, int64_t due_ns) {
  const Work work = work_of(due_ns, clock().now_ns());
  const std::lock_guard lock(scheduler_.mutex_);
  asking_.fetch_add(1, std::memory_order_relaxed);
  place.is_taken_ = true;
  place.waiter_.due_ns = due_ns;
  place.waiter_.work = work;
  place.waiter_.is_served = scheduler_.try_take();
  if (!place.waiter_.is_served) scheduler_.put(place.waiter_, *this, due_ns, work);
}

void StepQueue::hasten(Place& place, int64_t due_ns) {
  const int64_t now_ns = clock().now_ns();
  const Work work = work_of(due_ns, now_ns);
  const std::lock_guard lock(scheduler_.mutex_);
  const Scheduler::Waiter& own = place.waiter_;
  if (own.queue == nullptr || !DueQueue::goes_before(work, due_ns, own.work, own.due_ns, now_ns)) return;
  scheduler_.remove(place.waiter_);
  scheduler_.put(place.waiter_, *this, due_ns, work);
}

void StepQueue::wait(Place& place) {
  std::unique_lock lock(scheduler_.mutex_);
  place.waiter_.changed.wait(lock, [&] { return place.waiter_.is_served; });
  place.waiter_.is_served = place.is_taken_ = false;
}

Work StepQueue::begin(int64_t due_ns) {
  Place own;
  join(own, due_ns);
  wait(own);
  return own.waiter_.work;
}

// Ends a step and waits for the next one, which may come at once.  Its owner waits beside the others, so what goes
// behind it gets nothing.
Work StepQueue::pass(Work work, int64_t began_ns, int64_t due_ns) {
  Place own;
  const int64_t now_ns = clock().now_ns();
  {
    const std::lock_guard lock(scheduler_.mutex_);
    scheduler_.queue_.note(work, now_ns - began_ns);
    scheduler_.put(own.waiter_, *this, due_ns, work_of(due_ns, now_ns));
    scheduler_.hand_over(now_ns);
  }
  wait(own);
  return own.waiter_.work;
}

// False: the caller has left the queue, or has handed its turn over.
bool StepQueue::begin_wanted(int64_t due_ns, const std::function<bool()>& is_wanted, Work& work) {
  if (!is_wanted) {
    work = begin(due_ns);
    return true;
  }
  Place own;
  join(own, due_ns);
  work = own.waiter_.work;
  {
    std::unique_lock lock(scheduler_.mutex_);
    while (!own.waiter_.changed.wait_for(lock, Scheduler::kLook, [&] { return own.waiter_.is_served; })) {
      lock.unlock();
      const bool goes_on = is_wanted();
      lock.lock();
      if (goes_on || own.waiter_.is_served) continue;
      scheduler_.remove(own.waiter_);
      asking_.fetch_sub(1, std::memory_order_relaxed);
      return false;
    }
  }
  const int64_t came_ns = clock().now_ns();
  if (is_wanted()) return true;
  asking_.fetch_sub(1, std::memory_order_relaxed);
  scheduler_.end(work, came_ns);
  return false;
}

void StepQueue::note_part(int64_t took_ns) {
  int64_t longest_ns = longest_ns_.load(std::memory_order_relaxed);
  while (took_ns > longest_ns && !longest_ns_.compare_exchange_weak(longest_ns, took_ns, std::memory_order_relaxed)) {
  }
}

StepQueue::Turn::Turn(StepQueue& queue, int64_t due_ns) : queue_(queue), due_ns_(due_ns) {
  const int64_t asked_ns = queue_.clock().now_ns();
  work_ = queue_.begin(due_ns_);
  begun(asked_ns);
}

StepQueue::Turn::Turn(StepQueue& queue, Place& place) : queue_(queue), due_ns_(kNeverDue) {
  const int64_t asked_ns = queue_.clock().now_ns();
  queue_.wait(place);
  deadline_ns_ = due_ns_ = place.waiter_.due_ns;
  work_ = place.waiter_.work;
  begun(asked_ns);
}

StepQueue::Turn::Turn(StepQueue& queue, int64_t due_ns, const std::function<bool()>& is_wanted)
    : queue_(queue), due_ns_(due_ns) {
  const int64_t asked_ns = queue_.clock().now_ns();
  is_mine_ = queue_.begin_wanted(due_ns_, is_wanted, work_);
  begun(asked_ns);
}

StepQueue::Turn::~Turn() {
  if (is_mine_) end();
}

void StepQueue::Turn::begun(int64_t asked_ns) {
  began_ns_ = part_ns_ = queue_.clock().now_ns();
  waited_ns_ += began_ns_ - asked_ns;
}

void StepQueue::Turn::give_way(int64_t due_ns) {
  if (queue_.scheduler_.waiting() == 0) {
    const int64_t now_ns = queue_.clock().now_ns();
    queue_.note_part(now_ns - part_ns_);
    part_ns_ = now_ns;
    return;
  }
  count(false);
  const int64_t asked_ns = queue_.clock().now_ns();
  work_ = queue_.pass(work_, began_ns_, due_ns);
  begun(asked_ns);
}

void StepQueue::Turn::begin_again(int64_t due_ns) {
  const int64_t asked_ns = queue_.clock().now_ns();
  work_ = queue_.begin(due_ns);
  begun(asked_ns);
}

// Before the next step begins.
void StepQueue::Turn::count(bool may_be_late) {
  const int64_t now_ns = queue_.clock().now_ns();
  queue_.note_part(now_ns - part_ns_);
  if (due_ns_ == kNeverDue || makes_nothing_) return;
  queue_.steps_.note(now_ns - began_ns_, may_be_late && is_late(deadline_ns_, now_ns));
}

void StepQueue::Turn::end() {
  count(true);
  queue_.asking_.fetch_sub(1, std::memory_order_relaxed);
  queue_.scheduler_.end(work_, began_ns_);
}

}  // namespace syrinx
