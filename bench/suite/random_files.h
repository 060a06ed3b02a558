// Files of random checkpoints: a safetensors file's header, and texts.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>

#include "base/json.h"
#include "base/result.h"
#include "base/scoped_file.h"

namespace syrinx::bench {

// The header for tensors that follow one another, all of `dtype`, whose numbers have so many bytes; each has a name and
// dims.  Errors of ScopedFile.
template <class Tensors>
Status write_tensor_header(ScopedFile& file, const Tensors& tensors, const char* dtype, size_t number_bytes) {
  Json header = Json::Object();
  size_t at = 0;
  for (const auto& tensor : tensors) {
    const size_t bytes =
        std::accumulate(tensor.dims.begin(), tensor.dims.end(), number_bytes, std::multiplies<size_t>());
    Json entry;
    entry.set("dtype", dtype).set("shape", Json::Array(tensor.dims.begin(), tensor.dims.end()));
    entry.set("data_offsets", Json::Array{at, at + bytes});
    header.set(tensor.name, std::move(entry));
    at += bytes;
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  const auto size = static_cast<uint64_t>(text.size());
  std::array<char, 8> length;  // little-endian
  for (size_t i = 0; i < length.size(); ++i) length[i] = static_cast<char>(size >> (8 * i));
  SYRINX_TRY_VOID(file.write(std::string_view(length.data(), length.size())));
  return file.write(text);
}

// Whole or not at all.
inline Status write_random_text(const std::string& path, const std::string& text) {
  SYRINX_TRY(ScopedFile file, ScopedFile::create(path));
  SYRINX_TRY_VOID(file.write(text));
  return file.commit();
}

}  // namespace syrinx::bench
