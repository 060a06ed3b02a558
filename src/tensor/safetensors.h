// safetensors: a u64 header length, a JSON header naming each tensor's type, shape and byte range, then the values.
// Source of the facts: the format's own description (safetensors README, "Format").
//
// The reader checks everything before it hands out a span: header at most 16 MiB, no name twice, ranges inside the
// file, in agreement with type and shape, not overlapping.  It does not own the bytes.  Thread-safe once made.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tensor/dtype.h"

namespace syrinx {

class Safetensors {
 public:
  // `name` stands in messages.  kDataLoss, kUnsupported (an element type we do not know), kLimitExceeded.
  static Result<Safetensors> parse(std::span<const std::byte> bytes, const std::string& name);

  // In the order of the file's header.
  const std::vector<TensorRef>& tensors() const { return tensors_; }
  const TensorRef* find(std::string_view name) const;
  // The free-form strings under "__metadata__".
  const std::vector<std::pair<std::string, std::string>>& metadata() const { return metadata_; }

 private:
  std::vector<TensorRef> tensors_;
  std::vector<size_t> by_name_;  // indices of tensors_, sorted by name
  std::vector<std::pair<std::string, std::string>> metadata_;
};

// The file for these tensors, in their order; for tools and tests.
std::string write_safetensors(std::span<const TensorRef> tensors);

}  // namespace syrinx
