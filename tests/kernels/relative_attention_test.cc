#include "kernels/relative_attention.h"

#include <algorithm>

#include "for_each_target.h"

namespace syrinx::kernels {
namespace {

struct Case {
  size_t queries, keys, heads, head_size;
  size_t left, right;      // what a query sees around its place
  size_t first_query = 0;  // its place among the keys
  size_t ring_first = 0;
  bool ring = false;
};

// Rows with room behind them for what may be read there; the room holds what is no number.
struct Table {
  Table(size_t rows, size_t columns, uint32_t seed)
      : columns(columns), stride(columns + kRelativeAttentionSlack), values(rows * stride + kRelativeAttentionSlack) {
    const TestValues drawn(rows * columns, seed);
    std::fill(values.begin(), values.end(), std::nanf(""));
    for (size_t r = 0; r < rows; ++r) std::copy_n(drawn.data() + r * columns, columns, values.data() + r * stride);
  }
  View<const float, 2> view(size_t rows) const { return {values.data(), {rows, columns}, {stride, 1}}; }
  size_t columns, stride;
  std::vector<float> values;
};

void run_case(const Case& c) {
  const uint32_t seed = static_cast<uint32_t>(c.queries * 100 + c.keys + c.head_size);
  const size_t width = c.heads * c.head_size, reach = c.left + c.right + 8;
  const size_t ahead = std::min(reach, c.first_query + c.queries), behind = std::min(reach, c.keys + 4);
  const TestValues q(c.queries * width, seed), values(c.keys * width, seed + 1);
  const Table keys(width, c.keys, seed + 2), positions(width, ahead + behind + 1, seed + 3);
  const Table constants(c.heads, ahead + behind + 1, seed + 4);
  std::vector<KeyRange> sees;
  for (size_t i = 0; i < c.queries; ++i) {
    const size_t place = c.first_query + i;
    sees.push_back({static_cast<uint32_t>(place - std::min(place, c.left)),
                    static_cast<uint32_t>(std::min(place + c.right + 1, c.keys))});
  }
  RelativeAttention in;
  in.q = {q.data(), {c.queries, width}};
  in.keys = keys.view(width);
  in.values = {values.data(), {c.keys, width}};
  in.positions = positions.view(width);
  in.constants = constants.view(c.heads);
  in.sees = sees;
  in.first_query = static_cast<ptrdiff_t>(c.first_query);
  in.first_offset = static_cast<ptrdiff_t>(ahead);
  in.ring = c.ring ? c.keys : 0;
  in.ring_first = c.ring_first;
  in.head_size = c.head_size;
  in.scale = 0.125f;
  std::vector<float> scratch(relative_attention_scratch_size(c.keys), std::nanf(""));
  TestValues out(c.queries * width, seed + 5);
  const View<float, 2> to(out.data(), {c.queries, width});
  relative_attention(in, c.heads / 2, c.heads, scratch, to);
  relative_attention(in, 0, c.heads / 2, scratch, to);
  for (size_t i = 0; i < c.queries; ++i) {
    for (size_t h = 0; h < c.heads; ++h) {
      std::vector<double> weight;
      double sum = 0, terms = 0;
      const auto place = [&](size_t j) { return c.ring ? (c.ring_first + j) % c.keys : j; };
      for (size_t j = sees[i].begin; j < sees[i].end; ++j) {
        const size_t column = ahead + j - c.first_query - i;
        Expected score;
        score.add(in.constants(h, column));
        for (size_t t = h * c.head_size; t < (h + 1) * c.head_size; ++t) {
          score.add(in.q(i, t), in.keys(t, place(j)));
          score.add(in.q(i, t), in.positions(t, column));
        }
        weight.push_back(std::exp(0.125 * score.value));
        sum += weight.back();
        terms = std::max(terms, 0.125 * score.magnitude);
      }
      for (size_t t = h * c.head_size; t < (h + 1) * c.head_size; ++t) {
        Expected want;
        for (size_t j = sees[i].begin; j < sees[i].end; ++j)
          want.add(weight[j - sees[i].begin] / sum, in.values(place(j), t));
        // A score's error, that of its sum, goes through the exponential: of the numerator and of the denominator.
        const double factor = sum_factor(weight.size() + 4) + 2 * sum_factor(2 * c.head_size + 1) * terms;
        ASSERT_TRUE(within(want, factor, to(i, t))) << i << " " << t;
      }
    }
  }
}

TEST(RelativeAttention, MatchesTheDefinition) {
  for_each_target([] {
    for (const size_t n : {1, 2, 3, 4, 5, 9, 40}) run_case({n, n, 2, 8, n, n});
    run_case({70, 70, 3, 64, 70, 70});
    run_case({33, 33, 2, 40, 6, 3});
    run_case({9, 9, 2, 17, 2, 0});
    // Some queries behind cached keys, in a ring.
    run_case({2, 72, 2, 64, 70, 1, 70, 5, true});
    run_case({1, 71, 2, 64, 70, 0, 70, 70, true});
    run_case({3, 40, 4, 16, 20, 2, 37, 0, true});
  });
}

// A query's result does not depend on the queries beside it, nor on where in the ring its keys lie.
TEST(RelativeAttention, QueriesAreIndependent) {
  const size_t keys = 37, width = 48;
  const TestValues q(4 * width, 1), values(keys * width, 2);
  const Table table(width, keys, 3), positions(width, 2 * keys, 4), constants(1, 2 * keys, 5);
  const std::vector<KeyRange> sees(4, {3, 33});
  RelativeAttention in;
  in.q = {q.data(), {4, width}};
  in.keys = table.view(width);
  in.values = {values.data(), {keys, width}};
  in.positions = positions.view(width);
  in.constants = constants.view(1);
  in.sees = sees;
  in.first_query = 20;
  in.first_offset = keys;
  in.head_size = width;
  std::vector<float> scratch(relative_attention_scratch_size(keys)), together(4 * width), alone(width);
  relative_attention(in, 0, 1, scratch, {together.data(), {4, width}});
  for (size_t i = 0; i < 4; ++i) {
    in.q = {q.data() + i * width, {1, width}};
    in.sees = std::span(sees).first(1);
    in.first_query = 20 + static_cast<ptrdiff_t>(i);
    relative_attention(in, 0, 1, scratch, {alone.data(), {1, width}});
    EXPECT_EQ(alone, std::vector<float>(together.begin() + static_cast<ptrdiff_t>(i * width),
                                        together.begin() + static_cast<ptrdiff_t>((i + 1) * width)));
  }
}

}  // namespace
}  // namespace syrinx::kernels
