#include "engine/schedule/compute.h"

#include <mutex>

namespace syrinx {

std::shared_ptr<Compute> Compute::shared() {
  static std::mutex mutex;
  static std::weak_ptr<Compute> kept;
  const std::lock_guard lock(mutex);
  std::shared_ptr<Compute> compute = kept.lock();
  if (compute == nullptr) kept = compute = std::make_shared<Compute>();
  return compute;
}

ThreadTeam Compute::team(int threads) {
  StepQueue::Turn turn(growing_, kDueAtOnce);
  turn.make_nothing();
  whole_.grow(threads);
  return ThreadTeam(whole_, threads);
}

}  // namespace syrinx
