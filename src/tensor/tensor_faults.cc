#include "tensor/tensor_faults.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/in_quotes.h"

namespace syrinx {

TensorFault fault_of(const TensorRef* tensor, const std::vector<size_t>& dims) {
  if (tensor == nullptr) return TensorFault::kMissing;
  if (tensor->dtype != DType::kF32 && tensor->dtype != DType::kF16 && tensor->dtype != DType::kBF16)
    return TensorFault::kWrongType;
  if (tensor->dims != dims) return TensorFault::kWrongShape;
  return all_finite(tensor->bytes, tensor->dtype) ? TensorFault::kNone : TensorFault::kNotFinite;
}

bool TensorFaults::accept(const std::string& name, const TensorRef* tensor, const std::vector<size_t>& dims,
                          std::string_view types) {
  const std::string known = shortened(name, 120);
  switch (fault_of(tensor, dims)) {
    case TensorFault::kNone: return true;
    case TensorFault::kMissing: note(known + " is missing"); break;
    case TensorFault::kWrongType:
      note(fmt::format("{} has the type {}, not {}", known, dtype_name(tensor->dtype), types));
      break;
    case TensorFault::kWrongShape:
      note(fmt::format("{} has the shape {}, not {}", known, dims_text(tensor->dims), dims_text(dims)));
      break;
    case TensorFault::kNotFinite: note(known + " holds values that are not finite"); break;
  }
  return false;
}

void TensorFaults::note(std::string_view fault) {
  constexpr size_t kMaxBytes = 400;
  faults_.push_back(shortened(fault, kMaxBytes));
}

std::string TensorFaults::text() const {
  constexpr size_t kMaxNamed = 6;
  std::string list;
  for (size_t i = 0; i < std::min(faults_.size(), kMaxNamed); ++i) list += (i > 0 ? "; " : "") + faults_[i];
  if (faults_.size() > kMaxNamed) list += fmt::format("; and {} more", faults_.size() - kMaxNamed);
  return list;
}

}  // namespace syrinx
