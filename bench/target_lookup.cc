#include "target_lookup.h"

#include <hwy/highway.h>

#include <atomic>

namespace syrinx::bench {
namespace {

std::atomic<bool> each_call{false};
std::atomic<unsigned long> asked_calls{0};

}  // namespace

TargetLookup::TargetLookup(bool on) { each_call.store(on); }
TargetLookup::~TargetLookup() { each_call.store(false); }
unsigned long TargetLookup::asked() { return asked_calls.load(); }

// The library's own, and what the linker puts in its place.
hwy::ChosenTarget& chosen_target() asm("__real__ZN3hwy15GetChosenTargetEv");
hwy::ChosenTarget& forgotten_target() asm("__wrap__ZN3hwy15GetChosenTargetEv");

// A target that has been forgotten is looked for by the call itself, as the first one of a program does.
hwy::ChosenTarget& forgotten_target() {
  hwy::ChosenTarget& chosen = chosen_target();
  if (each_call.load(std::memory_order_relaxed)) {
    chosen.DeInit();
    asked_calls.fetch_add(1, std::memory_order_relaxed);
  }
  return chosen;
}

}  // namespace syrinx::bench
