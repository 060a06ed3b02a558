// Reads a model's weights out of a checkpoint by name and shape, and gathers what is wrong, so that one message names
// every tensor that is missing.  Load time only; one thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "tensor/safetensors.h"

namespace syrinx {

class TensorReader {
 public:
  // `file` stands in messages.  Both outlive the reader.
  TensorReader(const Safetensors& tensors, const std::string& file) : tensors_(tensors), file_(file) {}

  // The values as f32, row-major.  Empty, and remembered for status(), when the tensor is missing, has other dims, is
  // not stored as bf16, f16 or f32, or holds a value that is not finite.
  std::vector<float> read(const std::string& name, const std::vector<size_t>& dims);

  // kDataLoss or kUnsupported once a read() failed: the missing tensors, else the first other fault.
  Status status() const;

 private:
  const Safetensors& tensors_;
  const std::string& file_;
  std::vector<std::string> missing_;
  std::optional<Error> fault_;
};

}  // namespace syrinx
