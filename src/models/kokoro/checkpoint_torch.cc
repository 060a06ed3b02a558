// The maker's kokoro-v1_0.pth: five state dicts, whose names may carry "module." in front, with weight norm in either
// of PyTorch's spellings.  Specification: Kokoro, section 1.2.
#include <cmath>

#include "models/kokoro/checkpoint_file.h"
#include "tensor/torch_file.h"

namespace syrinx::kokoro {
namespace {

// A tensor as it is, or direction * magnitude / |direction|, the norm taken over all axes but the first.
struct TorchBinding {
  std::vector<size_t> shape;
  const TorchTensor* values = nullptr;
  const TorchTensor* magnitude = nullptr;  // of a weight norm
};

struct Spelling {
  std::string_view magnitude, direction;
};
constexpr Spelling kWeightNorms[] = {{".weight_g", ".weight_v"},
                                     {".parametrizations.weight.original0", ".parametrizations.weight.original1"}};

// "decoder.module.encode.conv1.bias" -> "decoder.encode.conv1.bias"
std::string without_wrapper(const std::string& name) {
  constexpr std::string_view kWrapper = "module.";
  const size_t dot = name.find('.');
  if (dot == std::string::npos || !std::string_view(name).substr(dot + 1).starts_with(kWrapper)) return name;
  return name.substr(0, dot + 1) + name.substr(dot + 1 + kWrapper.size());
}

class TorchCheckpoint final : public CheckpointFile<TorchBinding> {
 public:
  TorchCheckpoint(MappedFile file, TorchFile torch) : CheckpointFile(std::move(file)), torch_(std::move(torch)) {
    std::map<std::string, const TorchTensor*> plain;
    for (const TorchTensor& tensor : torch_.tensors()) plain.emplace(without_wrapper(tensor.name), &tensor);
    for (const auto& [name, tensor] : plain) {
      if (!bind_weight_norm(plain, name, tensor)) bindings_.emplace(name, TorchBinding{tensor->dims, tensor, nullptr});
    }
  }

 private:
  // True if the tensor is half of a weight norm; the pair is bound as the weight when its direction comes by.
  bool bind_weight_norm(const std::map<std::string, const TorchTensor*>& plain, const std::string& name,
                        const TorchTensor* tensor) {
    for (const Spelling& spelling : kWeightNorms) {
      const bool is_direction = name.ends_with(spelling.direction);
      if (!is_direction && !name.ends_with(spelling.magnitude)) continue;
      const std::string_view own = is_direction ? spelling.direction : spelling.magnitude;
      const std::string module = name.substr(0, name.size() - own.size());
      const auto other = plain.find(module + std::string(is_direction ? spelling.magnitude : spelling.direction));
      if (other == plain.end()) return false;
      if (is_direction) bindings_.emplace(module + ".weight", TorchBinding{tensor->dims, tensor, other->second});
      return true;
    }
    return false;
  }

  Result<StoredWeight> load(std::string_view name, const TorchBinding& binding) const override {
    StoredWeight weight;
    weight.f32 = read_f32(*binding.values);
    release(binding.values->storage);
    if (binding.magnitude == nullptr) return weight;
    const std::vector<float> magnitude = read_f32(*binding.magnitude);
    release(binding.magnitude->storage);
    const size_t rows = binding.shape.empty() ? 0 : binding.shape[0];
    if (rows == 0 || magnitude.size() != rows)
      return fail(Code::kDataLoss, "'{}': the weight norm of '{}' has {} magnitudes for {} rows", path(), name,
                  magnitude.size(), rows);
    const size_t columns = weight.f32.size() / rows;
    for (size_t r = 0; r < rows; ++r) {
      double square = 0;
      for (size_t c = 0; c < columns; ++c) {
        const double value = weight.f32[r * columns + c];
        square += value * value;
      }
      // A row of zeros has no direction: PyTorch would divide by zero; zeros are what it meant.
      const float factor = square > 0 ? static_cast<float>(magnitude[r] / std::sqrt(square)) : 0.0f;
      for (size_t c = 0; c < columns; ++c) weight.f32[r * columns + c] *= factor;
    }
    return weight;
  }

  TorchFile torch_;
};

}  // namespace

Result<std::unique_ptr<Checkpoint>> open_torch_checkpoint(MappedFile file) {
  SYRINX_TRY(TorchFile torch, TorchFile::parse(file.bytes(), file.path()));
  return std::make_unique<TorchCheckpoint>(std::move(file), std::move(torch));
}

}  // namespace syrinx::kokoro
