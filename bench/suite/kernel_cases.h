// Cases of `syrinx bench kernels`: one a kernel and shape, taken from the models that use it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/thread_team.h"
#include "kernels/limits.h"

namespace syrinx::bench {

// Which of the machine's limits a case is compared with, and the unit of its work: bytes read for kRead, operations
// (a multiply-add is two) for the others.
enum class LimitKind { kRead, kF32, kBf16, kInt8 };

struct KernelCase {
  std::string name;   // "attention"
  std::string shape;  // "12 heads of 64, 200 tokens"
  LimitKind limit = LimitKind::kF32;
  double work = 0;                       // of one run, all threads together
  std::function<void(ThreadTeam&)> run;  // once, split over the team; owns its data; allocates nothing
  double read_bytes = 0;   // of one run, from memory: the slower of this and `work` at their limits is what counts
  std::string group = {};  // of several cases, whose least share is reported too; may be empty
};

// Norms, activations, attention, transforms: the kernels without packed weights.  Their data is in cache, so they are
// measured against the f32 peak, counting each addition, multiplication, comparison and conversion as one operation.
std::vector<KernelCase> vector_kernel_cases(int threads);
// Convolutions, linear layers and the vector product at Kokoro's shapes, f32 and int8.
std::vector<KernelCase> matrix_kernel_cases(int threads);
// The products of Pocket TTS's language model in every precision: a row and a few streams against 128 MB of weights,
// measured against the read rate, and a prompt's rows against a matrix in cache.
std::vector<KernelCase> stream_kernel_cases();
// The same product at the shapes of Pocket TTS, Qwen3-TTS 0.6B and Kyutai's STT-1B with 1 to 32 rows.
std::vector<KernelCase> row_kernel_cases();
// The codec's layers at the shapes of one frame.
std::vector<KernelCase> codec_kernel_cases();
// All of these.
std::vector<KernelCase> all_kernel_cases(int threads);

const kernels::Limit& limit_of(const kernels::MachineLimits& limits, LimitKind kind);
const char* limit_name(LimitKind kind);  // "read", "f32", ...

}  // namespace syrinx::bench
