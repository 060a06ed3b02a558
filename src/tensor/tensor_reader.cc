#include "tensor/tensor_reader.h"

#include <algorithm>

#include "tensor/tensor_faults.h"

namespace syrinx {

std::vector<float> TensorReader::read(const std::string& name, const std::vector<size_t>& dims) {
  const TensorRef* const tensor = tensors_.find(name);
  const auto refuse = [&](auto error) {
    if (!fault_) fault_ = error.value();
    return std::vector<float>();
  };
  switch (fault_of(tensor, dims)) {
    case TensorFault::kNone: break;
    case TensorFault::kMissing: missing_.push_back(name); return {};
    case TensorFault::kWrongType:
      return refuse(fail(Code::kUnsupported,
                         "'{}': tensor '{}' is stored as {}; weights are read from bf16, f16 or f32", file_, name,
                         dtype_name(tensor->dtype)));
    case TensorFault::kWrongShape:
      return refuse(fail(Code::kDataLoss, "'{}': tensor '{}' has the shape {}, its configuration asks for {}", file_,
                         name, dims_text(tensor->dims), dims_text(dims)));
    case TensorFault::kNotFinite:
      return refuse(fail(Code::kDataLoss, "'{}': tensor '{}' holds values that are not finite; the file is damaged",
                         file_, name));
  }
  return to_f32(tensor->bytes, tensor->dtype);
}

Status TensorReader::status() const {
  constexpr size_t kNamed = 8;
  if (!missing_.empty()) {
    std::string names;
    for (size_t i = 0; i < std::min(kNamed, missing_.size()); ++i) names += (i == 0 ? "" : ", ") + missing_[i];
    if (missing_.size() > kNamed) names += fmt::format(" and {} more", missing_.size() - kNamed);
    return fail(Code::kDataLoss, "'{}' lacks {} of the tensors that its configuration asks for: {}", file_,
                missing_.size(), names);
  }
  if (fault_) return tl::unexpected(*fault_);
  return {};
}

}  // namespace syrinx
