#include "nn/crew.h"

#include <thread>

namespace syrinx::nn {

void Crew::finish(Seat& seat) {
  Part& part = seat.part_;
  if (part.size > 1) return team_.barrier();
  const int others = team_.size() - 1;
  if (others == 0 || waiting_.load(std::memory_order_acquire) < others) return;
  part.size = team_.size();
  admitted_.store(seat.index_ + 1, std::memory_order_release);
}

void Crew::leave(const Seat& seat) {
  if (seat.part_.size == 1) admitted_.store(kEnded, std::memory_order_release);
}

Crew::Seat Crew::join(int member) {
  const int rank = waiting_.fetch_add(1, std::memory_order_acq_rel) + 1;
  size_t from = admitted_.load(std::memory_order_acquire);
  // A stage lasts a fraction of a millisecond, so nobody parks.
  for (; from == kNobody; from = admitted_.load(std::memory_order_acquire)) std::this_thread::yield();
  return {*this, {.member = member, .rank = rank, .size = team_.size()}, from == kEnded ? kNobody : from};
}

}  // namespace syrinx::nn
