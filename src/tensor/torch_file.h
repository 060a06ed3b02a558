// Reader of files that torch.save writes since PyTorch 1.6: a zip archive of stored members NAME/data.pkl (the
// objects), NAME/data/KEY (the values of each storage) and NAME/byteorder.  Source: PyTorch's serialization notes.
//
// The tensors of nested dictionaries and lists come out under their keys joined by dots ("bert.module.pooler.bias").
// A trainer's entries beside a top dictionary's "state_dict" are left out: counters, an optimiser's tensors, and
// settings, which may be objects of known classes; among the weights, and in files without one, such an object is
// refused.
// Nothing in the file is executed (pickle.h).  Does not own the bytes.  Thread-safe once made.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/dtype.h"

namespace syrinx {

struct TorchTensor {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<size_t> dims;
  std::vector<size_t> strides;         // in elements
  std::span<const std::byte> storage;  // from the first element to the last that is reachable
  bool contiguous = true;              // row-major: `storage` is the values
};

class TorchFile {
 public:
  // `name` stands in messages.  kDataLoss, kUnsupported (older or foreign formats, names we refuse), kLimitExceeded.
  static Result<TorchFile> parse(std::span<const std::byte> bytes, const std::string& name);

  const std::vector<TorchTensor>& tensors() const { return tensors_; }  // sorted by name
  const TorchTensor* find(std::string_view name) const;

 private:
  std::vector<TorchTensor> tensors_;
};

// The values in row-major order, whatever the strides.
std::vector<float> read_f32(const TorchTensor& tensor);

}  // namespace syrinx
