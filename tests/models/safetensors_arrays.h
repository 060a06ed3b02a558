// Reference outputs of a maker's code, as the scripts in tools/reference store them.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "base/mapped_file.h"
#include "tensor/safetensors.h"

namespace syrinx {

// A safetensors file with the bytes it stands on.
class SafetensorsArrays {
 public:
  explicit SafetensorsArrays(const std::string& path) {
    auto file = MappedFile::open(path);
    if (!file) {
      ADD_FAILURE() << file.error().message;
      return;
    }
    file_ = std::move(*file);
    auto parsed = Safetensors::parse(file_.bytes(), path);
    if (!parsed) ADD_FAILURE() << parsed.error().message;
    if (parsed) tensors_ = std::move(*parsed);
  }
  const Safetensors& tensors() const { return tensors_; }
  bool has(const std::string& name) const { return tensors_.find(name) != nullptr; }
  // Floats of any type in the file are widened; other types are taken as they are stored.
  template <class T = float>
  std::vector<T> get(const std::string& name) const {
    const TensorRef* const tensor = tensors_.find(name);
    EXPECT_NE(tensor, nullptr) << name;
    if (tensor == nullptr) return {};
    if constexpr (std::is_same_v<T, float>) return to_f32(tensor->bytes, tensor->dtype);
    std::vector<T> values(tensor->bytes.size() / sizeof(T));
    if (!values.empty()) std::memcpy(values.data(), tensor->bytes.data(), tensor->bytes.size());
    return values;
  }

 private:
  MappedFile file_;
  Safetensors tensors_;
};

}  // namespace syrinx
