// The tiny files of tests/data/tensor, what their makers' libraries say is in them (expected.json, written by
// tools/checkpoints/tensor_files.py), and the sweeps that every reader of foreign bytes must survive.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "tensor/dtype.h"

namespace syrinx::test {

inline std::string data_path(const std::string& name) { return std::string(SYRINX_TEST_DATA) + "/tensor/" + name; }

inline std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}
inline std::string read_data(const std::string& name) { return read_file(data_path(name)); }

inline std::span<const std::byte> as_bytes(const std::string& text) {
  return std::as_bytes(std::span<const char>(text.data(), text.size()));
}

// The tensors that a file must hold: name -> {dtype, dims, values}.
inline Json expected_tensors(const std::string& file) {
  const auto root = parse_json(read_data("expected.json"), "expected.json");
  EXPECT_TRUE(root.has_value());
  const Json* const tensors = root->find(file);
  EXPECT_NE(tensors, nullptr) << file;
  return tensors == nullptr ? Json(Json::Object{}) : *tensors;
}

inline double number(const Json& value) {
  return value.whole() != nullptr ? static_cast<double>(*value.whole()) : *value.real();
}

inline void expect_tensor(const JsonMember& expected, DType dtype, const std::vector<size_t>& dims,
                          const std::vector<float>& values) {
  SCOPED_TRACE(expected.key);
  EXPECT_EQ(*expected.value.find("dtype")->string(), dtype_name(dtype));
  const Json::Array& want_dims = *expected.value.find("dims")->array();
  ASSERT_EQ(want_dims.size(), dims.size());
  for (size_t i = 0; i < dims.size(); ++i) EXPECT_EQ(static_cast<size_t>(*want_dims[i].whole()), dims[i]);
  const Json::Array& want = *expected.value.find("values")->array();
  ASSERT_EQ(want.size(), values.size());
  for (size_t i = 0; i < values.size(); ++i) EXPECT_EQ(static_cast<float>(number(want[i])), values[i]) << i;
}

// Calls `read(span)` with every beginning of the file and with every byte changed in several ways, each time in memory
// of exactly that size, so that sanitizers see a step outside.  `read` must only come back.
template <class Read>
void sweep_hostile(const std::string& good, Read&& read) {
  const auto run = [&](const std::string& bytes, size_t size) {
    const auto exact = std::make_unique<std::byte[]>(size);
    if (size > 0) std::memcpy(exact.get(), bytes.data(), size);
    read(std::span<const std::byte>(exact.get(), size));
  };
  for (size_t size = 0; size < good.size(); ++size) run(good, size);
  std::string bytes = good;
  for (size_t i = 0; i < good.size(); ++i) {
    for (const int flip : {0x01, 0x20, 0x80, 0xff}) {
      bytes[i] = static_cast<char>(good[i] ^ flip);
      run(bytes, bytes.size());
    }
    bytes[i] = good[i];
  }
}

}  // namespace syrinx::test
