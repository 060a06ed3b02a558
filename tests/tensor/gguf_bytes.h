// Writes GGUF files for tests, with whatever faults a test asks for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace syrinx::test {

struct GgufBytes {
  struct Tensor {
    std::string name;
    std::vector<uint64_t> dims;  // fastest first, as in the file
    uint32_t type = 0;
    uint64_t offset = 0;
  };
  uint32_t version = 3;
  uint64_t extra_tensors = 0, extra_entries = 0;  // that the head speaks of beyond those below
  std::vector<std::string> entries;               // as entry() makes them
  std::vector<Tensor> tensors;
  std::string blocks;
  size_t alignment = 32;

  template <class T>
  static void append(std::string& to, T value) {
    to.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  static std::string string(const std::string& text) {
    std::string made;
    append<uint64_t>(made, text.size());
    return made + text;
  }
  static std::string entry(const std::string& key, uint32_t kind, const std::string& value) {
    std::string made = string(key);
    append(made, kind);
    return made + value;
  }
  template <class T>
  static std::string number(const std::string& key, uint32_t kind, T value) {
    std::string made;
    append(made, value);
    return entry(key, kind, made);
  }

  std::string file() const {
    std::string made = "GGUF";
    append(made, version);
    append<uint64_t>(made, tensors.size() + extra_tensors);
    append<uint64_t>(made, entries.size() + extra_entries);
    for (const std::string& each : entries) made += each;
    for (const Tensor& tensor : tensors) {
      made += string(tensor.name);
      append(made, static_cast<uint32_t>(tensor.dims.size()));
      for (const uint64_t dim : tensor.dims) append(made, dim);
      append(made, tensor.type);
      append(made, tensor.offset);
    }
    made.append((alignment - made.size() % alignment) % alignment, '\0');
    return made + blocks;
  }
};

}  // namespace syrinx::test
