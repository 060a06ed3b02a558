#include "engine/threads.h"

#include <algorithm>

#include "base/cpu_info.h"

namespace syrinx {
namespace {

constexpr int kMaxThreads = 64;
constexpr int kMaxDefaultThreads = 8;

}  // namespace

int default_threads() { return std::clamp(cpu_info().logical_cores, 1, kMaxDefaultThreads); }

Result<int> choose_threads(int threads) {
  if (threads < 0 || threads > kMaxThreads)
    return fail(Code::kInvalidArgument, "{} threads: give 1 to {}, or 0 for the default", threads, kMaxThreads);
  return threads == 0 ? default_threads() : threads;
}

}  // namespace syrinx
