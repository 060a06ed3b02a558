#include "tensor/tensor_faults.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>

namespace syrinx {
namespace {

TensorRef tensor_of(const std::vector<float>& values, std::vector<size_t> dims) {
  TensorRef tensor;
  tensor.name = "w";
  tensor.dtype = DType::kF32;
  tensor.dims = std::move(dims);
  tensor.bytes = std::as_bytes(std::span(values));
  return tensor;
}

TEST(TensorFaults, AreToldInOneSentence) {
  const std::vector<float> good = {1, 2}, bad = {1, std::numeric_limits<float>::infinity()};
  TensorRef integers = tensor_of(good, {2});
  integers.dtype = DType::kI8;
  const TensorRef fits = tensor_of(good, {2}), infinite = tensor_of(bad, {2});

  TensorFaults faults;
  EXPECT_TRUE(faults.accept("a", &fits, {2}));
  EXPECT_TRUE(faults.empty());
  EXPECT_FALSE(faults.accept("b", nullptr, {2}));
  EXPECT_FALSE(faults.accept("c", &fits, {1, 2}));
  EXPECT_FALSE(faults.accept("d", &integers, {2}));
  EXPECT_FALSE(faults.accept("e", &infinite, {2}));
  EXPECT_FALSE(faults.accept("f", &integers, {2}, "f32"));
  EXPECT_EQ(faults.text(),
            "b is missing; c has the shape [2], not [1, 2]; d has the type i8, not bf16, f16 or f32; e holds values "
            "that are not finite; f has the type i8, not f32");
}

TEST(TensorFaults, NameSixAndCountTheRest) {
  TensorFaults faults;
  for (int n = 0; n < 9; ++n) faults.note(std::to_string(n));
  EXPECT_EQ(faults.text(), "0; 1; 2; 3; 4; 5; and 3 more");
}

TEST(TensorFaults, LongNamesAreShortened) {
  TensorFaults faults;
  EXPECT_FALSE(faults.accept(std::string(10000, 'x'), nullptr, {1}));
  EXPECT_LT(faults.text().size(), 200u);
  TensorFaults noted;
  noted.note(std::string(10000, 'x') + " is not known");
  EXPECT_LT(noted.text().size(), 500u);
}

}  // namespace
}  // namespace syrinx
