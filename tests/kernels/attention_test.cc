#include "kernels/attention.h"

#include "for_each_target.h"

namespace syrinx::kernels {
namespace {

struct Case {
  size_t queries, keys, heads, width;
  Fill fill = Fill::kNormal;
  float scale = 0.125f;
};

// One query of one head in double.  A score is off by (K + 2) eps sum |q k| scale, which moves each weight by e to
// that power, in the numerator and in the sum; the products with the values add M roundings.
std::vector<Expected> attend_twin(const float* q, const View<const float, 2>& k, const View<const float, 2>& v,
                                  const Case& c, size_t column, double* factor) {
  std::vector<double> weight(c.keys);
  double maximum = -1e300, largest_magnitude = 0, sum = 0;
  for (size_t j = 0; j < c.keys; ++j) {
    Expected score;
    for (size_t t = 0; t < c.width; ++t) score.add(q[t], static_cast<double>(k(j, column + t)) * c.scale);
    weight[j] = score.value;
    maximum = std::max(maximum, score.value);
    largest_magnitude = std::max(largest_magnitude, score.magnitude);
  }
  for (double& w : weight) w = std::exp(w - maximum), sum += w;
  std::vector<Expected> out(c.width);
  for (size_t j = 0; j < c.keys; ++j) {
    for (size_t t = 0; t < c.width; ++t) out[t].add(weight[j] / sum, v(j, column + t));
  }
  *factor = 2 * sum_factor(c.width) * largest_magnitude + 2 * sum_factor(c.keys) + 4;
  return out;
}

void run_case(const Case& c) {
  const size_t columns = c.heads * c.width, stride = 3 * columns + 5;
  const uint32_t seed = static_cast<uint32_t>(c.queries * 100 + c.keys);
  const size_t rows = std::max(c.queries, c.keys);
  const TestValues qkv(rows * stride, seed, c.fill);
  AttentionInput input;
  input.q = {qkv.data(), {c.queries, columns}, {stride, 1}};
  input.k = {qkv.data() + columns, {c.keys, columns}, {stride, 1}};
  input.v = {qkv.data() + 2 * columns, {c.keys, columns}, {stride, 1}};
  input.head_width = c.width;
  input.scale = c.scale;
  std::vector<float> scratch(attention_scratch_size(c.keys, c.width));
  TestValues out(c.queries * (columns + 1), seed);
  const TestValues before = out;
  const View<float, 2> view(out.data(), {c.queries, columns}, {columns + 1, 1});
  const size_t half = c.heads / 2;  // two ranges, as two threads would do it
  attention(input, half, c.heads, scratch, view);
  attention(input, 0, half, scratch, view);
  for (size_t i = 0; i < c.queries; ++i) {
    for (size_t h = 0; h < c.heads; ++h) {
      double factor = 0;
      const size_t column = h * c.width;
      const std::vector<Expected> want = attend_twin(input.q.row(i) + column, input.k, input.v, c, column, &factor);
      for (size_t t = 0; t < c.width; ++t) {
        ASSERT_TRUE(within(want[t], factor, view(i, column + t)))
            << "query " << i << " head " << h << " column " << t << " of N " << c.queries << " M " << c.keys;
      }
    }
    EXPECT_EQ(out[i * (columns + 1) + columns], before[i * (columns + 1) + columns]);
  }
}

TEST(Attention, EveryBlockRemainder) {
  for_each_target([] {
    for (const size_t queries : {1, 2, 5, 6, 7, 13}) {
      for (const size_t keys : {1, 2, 7, 8, 9, 31, 32, 33}) run_case({queries, keys, 2, 64});
    }
  });
}

TEST(Attention, OtherWidths) {
  for_each_target([] {
    for (const size_t width : {1, 3, 16, 33, 80, 128}) run_case({7, 19, 3, width});
  });
}

TEST(Attention, TheModelsShapeAndOddInputs) {
  for_each_target([] {
    run_case({70, 70, 3, 64});
    run_case({1, 512, 2, 64});
    run_case({9, 40, 2, 64, Fill::kZeros});
    run_case({9, 40, 2, 64, Fill::kDenormal});
    run_case({9, 40, 2, 64, Fill::kNormal, 20.0f});
  });
}

}  // namespace
}  // namespace syrinx::kernels
