#include "engine/schedule/rounds.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace syrinx {

Rounds::Rounds(StepQueue& queue, size_t most_waiting) : queue_(queue) {
  waiting_.reserve(most_waiting);
  round_.reserve(most_waiting);
}

size_t Rounds::waiting() const {
  const std::lock_guard lock(mutex_);
  return waiting_.size();
}

size_t Rounds::waiting_behind() const {
  const std::lock_guard lock(mutex_);
  return waiting_.size() - (leader_ != nullptr ? 1 : 0);
}

void Rounds::serve(Request& own) {
  enter(own);
  wait(own);
}

void Rounds::enter(Request& own) {
  const std::lock_guard lock(mutex_);
  insert(own);
  if (!is_led_) {
    is_led_ = true;
    lead(own);
  } else if (leader_ != nullptr) {
    queue_.hasten(leader_->place, own.due_ns);
  }
}

void Rounds::insert(Request& own) {
  const auto later = [](int64_t due_ns, const Request* other) { return due_ns < other->due_ns; };
  waiting_.insert(std::upper_bound(waiting_.begin(), waiting_.end(), own.due_ns, later), &own);
  if (gathers_ && waiting_.size() >= awaited_) arrived_.notify_one();
}

void Rounds::wait(Request& own) {
  std::unique_lock lock(mutex_);
  while (!own.done) {
    if (own.leads)
      work(lock, own);
    else
      own.changed.wait(lock, [&] { return own.done || own.leads; });
  }
  if (own.thrown != nullptr) std::rethrow_exception(own.thrown);
}

// The first one that waits, in the scheduler's queue for all of them.
void Rounds::lead(Request& next) {
  next.leads = true;
  leader_ = &next;
  int64_t due_ns = kNeverDue;
  const int64_t now_ns = queue_.clock().now_ns();
  for (const Request* const request : waiting_) due_ns = DueQueue::sooner(due_ns, request->due_ns, now_ns);
  queue_.join(next.place, due_ns);
}

// One round.  The own request is in it unless so many came meanwhile that are due before it.
void Rounds::work(std::unique_lock<std::mutex>& lock, Request& own) {
  lock.unlock();
  StepQueue::Turn turn(queue_, own.place);
  lock.lock();
  leader_ = nullptr;
  gather(lock);
  const bool is_chosen = choose_for(own);
  lock.unlock();
  try {
    is_chosen ? make_one(turn) : turn.make_nothing();
  } catch (...) {
    for (Request* const request : round_)
      if (request->thrown == nullptr) request->thrown = std::current_exception();
  }
  lock.lock();
  own.leads = false;
  end_round(own);
  is_led_ = !waiting_.empty();
  if (!is_led_) return;
  Request& next = *waiting_.front();
  lead(next);
  if (&next != &own) next.changed.notify_one();
}

// Others are woken under the lock: a request is gone as soon as its thread has seen the end.
void Rounds::end_round(const Request& own) {
  size_t ended = 0;
  for (Request* const request : round_) {
    if (std::exchange(request->stays, false) && request->thrown == nullptr) {
      insert(*request);
      continue;
    }
    request->done = true;
    ++ended;
    if (request != &own) request->changed.notify_one();
  }
  last_end_ns_ = queue_.clock().now_ns();
  leave_out_left();
  awaited_ = waiting_.size() + ended;
}

// Members of the last round that ended come again within a moment: one round for all of them takes less than one for
// each.
void Rounds::gather(std::unique_lock<std::mutex>& lock) {
  const int64_t patience = patience_ns();
  if (patience == 0 || waiting_.size() >= awaited_) return;
  const int64_t left_ns = last_end_ns_ + patience - queue_.clock().now_ns();
  if (left_ns <= 0) return;
  gathers_ = true;
  arrived_.wait_for(lock, std::chrono::nanoseconds(left_ns), [&] { return waiting_.size() >= awaited_; });
  gathers_ = false;
}

// How long it took is counted by how many it served to their end; batch work is no stream.
void Rounds::make_one(StepQueue::Turn& turn) {
  const int64_t began_ns = queue_.clock().now_ns(), waited_ns = turn.waited_ns();
  make(round_, turn);
  const int64_t took_ns = queue_.clock().now_ns() - began_ns - (turn.waited_ns() - waited_ns);
  const auto stay = std::count_if(round_.begin(), round_.end(), [](const Request* request) { return request->stays; });
  const size_t served = round_.size() - static_cast<size_t>(stay);
  if (served > 0 && !turn.makes_nothing() && turn.is_due()) queue_.note_round(served, took_ns);
}

// False: the choice failed.  The request ends with what was thrown; all others wait for the next round.
bool Rounds::choose_for(Request& own) {
  round_.clear();
  try {
    choose(waiting_, round_);
    return true;
  } catch (...) {
    own.thrown = std::current_exception();
  }
  for (Request* const request : round_)
    if (std::find(waiting_.begin(), waiting_.end(), request) == waiting_.end()) insert(*request);
  round_.clear();
  std::erase(waiting_, &own);
  own.done = true;
  return false;
}

void Rounds::leave_out_left() {
  std::erase_if(waiting_, [](Request* request) {
    if (!request->is_left()) return false;
    request->done = true;
    request->changed.notify_one();
    return true;
  });
}

}  // namespace syrinx
