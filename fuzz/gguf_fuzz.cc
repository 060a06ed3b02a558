#include "tensor/gguf.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span<const uint8_t>(data, size));
  const auto file = syrinx::GgufFile::parse(bytes, "fuzz");
  if (!file) return 0;
  for (const syrinx::GgufTensor& tensor : file->tensors()) {
    std::vector<float> values(*syrinx::element_count(tensor.dims));
    syrinx::ggml_to_f32(tensor.bytes, tensor.type, values.data());
    if (file->find(tensor.name) != &tensor) __builtin_trap();
  }
  for (const char* const key : {"general.architecture", "k", "array"}) {
    (void)file->whole(key);
    (void)file->number(key);
    (void)file->flag(key);
    (void)file->text(key);
    (void)file->texts(key, 100);
    (void)file->wholes(key, 100);
    (void)file->numbers(key, 100);
  }
  return 0;
}
