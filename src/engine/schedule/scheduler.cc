#include "engine/schedule/scheduler.h"

#include <utility>

namespace syrinx {

bool Scheduler::try_take() {
  if (taken_) return false;
  return taken_ = true;
}

void Scheduler::put(Waiter& waiter, StepQueue& queue, int64_t due_ns, Work work, int64_t asked_ns) {
  queue_.put(waiter, due_ns, work, asked_ns);
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

void Scheduler::holder_waits(StepQueue* queue, Waiter* waiter) {
  const int64_t now_ns = clock_.now_ns();
  const std::lock_guard lock(mutex_);
  holders_queue_ = queue;
  holder_ = waiter;
  hasten_holder(now_ns);
}

void Scheduler::hasten_holder(int64_t now_ns) {
  if (holder_ != nullptr && !queue_.empty()) holders_queue_->hasten(*holder_, queue_.first_due_ns(now_ns), now_ns);
}

// While it lives, the place of a line's holder is as urgent as the line's waiters.
class StepQueue::Held {
 public:
  Held(Scheduler* line, StepQueue& queue, Place& place) : line_(line) {
    if (line_ != nullptr) line_->holder_waits(&queue, &place.waiter_);
  }
  ~Held() {
    if (line_ != nullptr) line_->holder_waits(nullptr, nullptr);
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

  // That the wait begins with.
  static int64_t due_ns(const Scheduler* line, int64_t own_ns) {
    return line != nullptr ? line->sooner(own_ns) : own_ns;
  }

 private:
  Scheduler* const line_;
};

void StepQueue::join(Place& place, int64_t due_ns) {
  const int64_t now_ns = clock().now_ns();
  const Work work = work_of(due_ns, now_ns);
  const std::lock_guard lock(scheduler_.mutex_);
  asking_.fetch_add(1, std::memory_order_relaxed);
  place.is_taken_ = true;
  place.waiter_.due_ns = due_ns;
  place.waiter_.work = work;
  place.waiter_.is_served = scheduler_.try_take();
  if (place.waiter_.is_served) return;
  scheduler_.put(place.waiter_, *this, due_ns, work, now_ns);
  scheduler_.hasten_holder(now_ns);
}

void StepQueue::hasten(Place& place, int64_t due_ns) { hasten(place.waiter_, due_ns, clock().now_ns()); }

void StepQueue::hasten(Scheduler::Waiter& waiter, int64_t due_ns, int64_t now_ns) {
  const Work work = work_of(due_ns, now_ns);
  const std::lock_guard lock(scheduler_.mutex_);
  if (waiter.queue == nullptr || !DueQueue::goes_before(work, due_ns, waiter.work, waiter.due_ns, now_ns)) return;
  scheduler_.remove(waiter);
  scheduler_.put(waiter, *this, due_ns, work, waiter.asked_ns);
  scheduler_.hasten_holder(now_ns);
}

void StepQueue::wait(Place& place) {
  std::unique_lock lock(scheduler_.mutex_);
  place.waiter_.changed.wait(lock, [&] { return place.waiter_.is_served; });
  place.waiter_.is_served = place.is_taken_ = false;
}

Work StepQueue::begin(int64_t due_ns, Scheduler* line) {
  Place own;
  join(own, Held::due_ns(line, due_ns));
  {
    const Held held(line, *this, own);
    wait(own);
  }
  return own.waiter_.work;
}

// Ends a step and waits for the next one, which may come at once.  Its owner waits beside the others, so what goes
// behind it gets nothing.
Work StepQueue::pass(Work work, int64_t began_ns, int64_t due_ns, int64_t place_ns, Scheduler* line) {
  Place own;
  due_ns = Held::due_ns(line, due_ns);
  const int64_t now_ns = clock().now_ns();
  {
    const std::lock_guard lock(scheduler_.mutex_);
    scheduler_.queue_.note(work, now_ns - began_ns);
    scheduler_.put(own.waiter_, *this, due_ns, work_of(due_ns, now_ns), place_ns);
    scheduler_.hand_over(now_ns);
  }
  {
    const Held held(line, *this, own);
    wait(own);
  }
  return own.waiter_.work;
}

// False: the caller has left the queue, or has handed its turn over.
bool StepQueue::begin_wanted(int64_t due_ns, const std::function<bool()>& is_wanted, Scheduler* line, Work& work) {
  if (!is_wanted) {
    work = begin(due_ns, line);
    return true;
  }
  Place own;
  join(own, Held::due_ns(line, due_ns));
  {
    const Held held(line, *this, own);
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
  work = own.waiter_.work;
  const int64_t came_ns = clock().now_ns();
  if (is_wanted()) return true;
  asking_.fetch_sub(1, std::memory_order_relaxed);
  scheduler_.end(work, came_ns);
  return false;
}

StepQueue::Turn::Turn(StepQueue& queue, int64_t due_ns) : queue_(queue), due_ns_(due_ns) {
  const int64_t asked_ns = place_ns_ = queue_.clock().now_ns();
  work_ = queue_.begin(due_ns_);
  begun(asked_ns);
}

StepQueue::Turn::Turn(StepQueue& queue, Place& place) : queue_(queue), due_ns_(kNeverDue) {
  const int64_t asked_ns = place_ns_ = queue_.clock().now_ns();
  queue_.wait(place);
  deadline_ns_ = due_ns_ = place.waiter_.due_ns;
  work_ = place.waiter_.work;
  begun(asked_ns);
}

StepQueue::Turn::Turn(StepQueue& queue, int64_t due_ns, const std::function<bool()>& is_wanted, Scheduler* line)
    : queue_(queue), line_(line), due_ns_(due_ns) {
  const int64_t asked_ns = place_ns_ = queue_.clock().now_ns();
  is_mine_ = queue_.begin_wanted(due_ns_, is_wanted, line_, work_);
  begun(asked_ns);
}

StepQueue::Turn::~Turn() {
  if (is_mine_) end();
}

void StepQueue::Turn::begun(int64_t asked_ns) {
  part_ns_ = queue_.clock().now_ns();
  waited_ns_ += part_ns_ - asked_ns;
}

void StepQueue::Turn::give_way(int64_t due_ns) {
  const int64_t asked_ns = queue_.clock().now_ns(), began_ns = part_ns_;
  note_part(asked_ns);
  if (queue_.scheduler_.waiting() == 0) {
    part_ns_ = asked_ns;
    return;
  }
  worked_ns_ += asked_ns - began_ns;
  if (worked_ns_ >= DueQueue::kSliceNs) {
    worked_ns_ = 0;
    place_ns_ = asked_ns;
  }
  work_ = queue_.pass(work_, began_ns, due_ns, place_ns_, line_);
  begun(asked_ns);
}

void StepQueue::Turn::begin_again(int64_t due_ns) {
  const int64_t asked_ns = place_ns_ = queue_.clock().now_ns();
  worked_ns_ = 0;
  work_ = queue_.begin(due_ns, line_);
  begun(asked_ns);
}

// Batch work is counted as it goes: it has no steps, and may last for minutes beside live work.
void StepQueue::Turn::note_part(int64_t now_ns) {
  const int64_t took_ns = now_ns - part_ns_;
  queue_.steps_.note_part(took_ns);
  if (is_due())
    parts_ns_ += took_ns;
  else if (!makes_nothing_)
    queue_.steps_.note_other(took_ns);
}

// Before the next step begins.
void StepQueue::Turn::count() {
  const int64_t now_ns = queue_.clock().now_ns();
  note_part(now_ns);
  const int64_t took_ns = std::exchange(parts_ns_, 0);
  if (!makes_nothing_ && is_due()) queue_.steps_.note(took_ns, is_late(deadline_ns_, now_ns));
}

void StepQueue::Turn::end() {
  count();
  queue_.asking_.fetch_sub(1, std::memory_order_relaxed);
  queue_.scheduler_.end(work_, part_ns_);
}

}  // namespace syrinx
