// Writes files in CTranslate2's binary version 6 for tests.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tensor/dtype.h"

namespace syrinx::test {

template <class T>
void append_number(std::string& to, T value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof value);
}
inline void append_string(std::string& to, const std::string& text) {
  append_number(to, static_cast<uint16_t>(text.size() + 1));
  to.append(text.c_str(), text.size() + 1);
}

inline uint8_t ct2_type(DType dtype) {
  constexpr DType kTypes[] = {DType::kF32, DType::kI8, DType::kI16, DType::kI32, DType::kF16, DType::kBF16};
  uint8_t type = 0;
  while (type < std::size(kTypes) && kTypes[type] != dtype) ++type;
  return type;
}

inline std::string ct2_bytes(std::span<const TensorRef> variables,
                             const std::vector<std::pair<std::string, std::string>>& aliases = {},
                             const std::string& specification = "WhisperSpec") {
  std::string file;
  append_number<uint32_t>(file, 6);
  append_string(file, specification);
  append_number<uint32_t>(file, 3);
  append_number(file, static_cast<uint32_t>(variables.size()));
  for (const TensorRef& variable : variables) {
    append_string(file, variable.name);
    append_number(file, static_cast<uint8_t>(variable.dims.size()));
    for (const size_t dim : variable.dims) append_number(file, static_cast<uint32_t>(dim));
    append_number(file, ct2_type(variable.dtype));
    append_number(file, static_cast<uint32_t>(variable.bytes.size()));
    file.append(reinterpret_cast<const char*>(variable.bytes.data()), variable.bytes.size());
  }
  append_number(file, static_cast<uint32_t>(aliases.size()));
  for (const auto& [alias, variable] : aliases) {
    append_string(file, alias);
    append_string(file, variable);
  }
  return file;
}

}  // namespace syrinx::test
