// Faults in the tensors of a checkpoint: one at a time, and all of them in one message.  Load time only; one thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tensor/safetensors.h"

namespace syrinx {

// The fault of a tensor that should have these dims.  kWrongType: not bf16, f16 or f32.
enum class TensorFault { kNone, kMissing, kWrongType, kWrongShape, kNotFinite };
TensorFault fault_of(const TensorRef* tensor, const std::vector<size_t>& dims);

// Gathers faults, so that one message tells them all.
class TensorFaults {
 public:
  // Whether `tensor`, which was looked for under `name`, has no fault_of(); notes it otherwise.  `types` says in the
  // message what is read.
  bool accept(const std::string& name, const TensorRef* tensor, const std::vector<size_t>& dims,
              std::string_view types = "bf16, f16 or f32");
  // A fault in other words, of which 400 bytes are kept: files name their tensors at any length.
  void note(std::string_view fault);

  bool empty() const { return faults_.empty(); }
  // "a; b; and 3 more": the first six.
  std::string text() const;

 private:
  std::vector<std::string> faults_;
};

}  // namespace syrinx
