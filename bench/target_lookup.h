// Measures the fifth principle of the hot path (spec transducer-asr.md, section 5.6 (5)): within a scope, every call of
// a kernel looks its target up anew, asking the processor, instead of through the table that was resolved once.
//
// Highway's calls go through GetChosenTarget(), which the linker replaces by ours in programs that have
// target_lookup.cc and the option of bench/CMakeLists.txt; elsewhere in such a program it costs a call and a branch.
#pragma once

namespace syrinx::bench {

// One at a time; calls of all threads are meant.
class TargetLookup {
 public:
  explicit TargetLookup(bool each_call);
  ~TargetLookup();
  TargetLookup(const TargetLookup&) = delete;
  TargetLookup& operator=(const TargetLookup&) = delete;

  // Calls that asked, since the program began.
  static unsigned long asked();
};

}  // namespace syrinx::bench
