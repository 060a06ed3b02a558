#include "kernels/relative_head.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "for_each_target.h"
#include "tensor/buffer.h"

namespace syrinx::kernels {
namespace {

constexpr double kBf16 = 0x1p-8;  // of one rounding, as a part of the value

struct Case {
  size_t rows, width;
  size_t left, right;  // what a query sees around its place
  size_t more = 0;     // offsets at both ends of the positions that nobody asks for
};

// Inputs of a case, with numbers that are none behind and between them.
struct Head {
  explicit Head(const Case& c)
      : stride(3 * c.width + 5),
        ahead(std::min(c.left, c.rows - 1) + c.more),
        offsets(ahead + std::min(c.right, c.rows - 1) + c.more + 1),
        qkv(c.rows * stride, static_cast<uint32_t>(c.rows * 100 + c.width)),
        positions(offsets * c.width, static_cast<uint32_t>(c.rows)),
        constants(offsets + 32, std::numeric_limits<float>::quiet_NaN()) {
    const TestValues drawn(offsets, 5);
    std::copy_n(drawn.data(), offsets, constants.begin());
    for (size_t i = 0; i < c.rows; ++i)
      sees.push_back(
          {static_cast<uint32_t>(i - std::min(i, c.left)), static_cast<uint32_t>(std::min(i + c.right + 1, c.rows))});
    in.q = {qkv.data(), {c.rows, c.width}, {stride, 1}};
    in.k = {qkv.data() + c.width, {c.rows, c.width}, {stride, 1}};
    in.v = {qkv.data() + 2 * c.width, {c.rows, c.width}, {stride, 1}};
    in.constants = constants.data();
    in.offsets = offsets;
    in.first_offset = ahead;
    in.sees = sees;
    in.scale = 0.125f;
  }

  const float* position(size_t i, size_t j) const { return positions.data() + (ahead + j - i) * in.q.extent(1); }

  size_t stride, ahead, offsets;
  TestValues qkv, positions;
  std::vector<float> constants;
  std::vector<KeyRange> sees;
  RelativeHead in;
};

std::vector<float> attend(Head& head, DType type) {
  const size_t rows = head.in.q.extent(0), width = head.in.q.extent(1);
  Buffer<std::byte> positions(packed_positions_bytes(type, head.offsets, width));
  Buffer<std::byte> scratch(relative_head_scratch_bytes(type, rows, width));
  for (Buffer<std::byte>* buffer : {&positions, &scratch})  // what was there must not matter
    std::fill_n(buffer->data(), buffer->size(), std::byte{0xFF});
  pack_positions(type, {head.positions.data(), {head.offsets, width}}, positions.span());
  head.in.type = type;
  head.in.positions = positions.span();
  std::vector<float> out(rows * (width + 1), 7.0f);
  relative_head(head.in, scratch.span(), {out.data(), {rows, width}, {width + 1, 1}});
  return out;
}

// Query i in double; `terms` becomes the largest magnitude of a score.
std::vector<Expected> twin(const Head& head, size_t i, double* terms) {
  const RelativeHead& in = head.in;
  std::vector<double> weight;
  double sum = 0, most = -std::numeric_limits<double>::infinity();
  *terms = 0;
  for (size_t j = in.sees[i].begin; j < in.sees[i].end; ++j) {
    Expected score;
    score.add(in.scale, head.constants[head.ahead + j - i]);
    for (size_t t = 0; t < in.q.extent(1); ++t) {
      score.add(static_cast<double>(in.scale) * in.q(i, t), in.k(j, t));
      score.add(static_cast<double>(in.scale) * in.q(i, t), head.position(i, j)[t]);
    }
    weight.push_back(score.value);
    most = std::max(most, score.value);
    *terms = std::max(*terms, score.magnitude);
  }
  for (double& w : weight) w = std::exp(w - most), sum += w;
  std::vector<Expected> out(in.q.extent(1));
  for (size_t j = in.sees[i].begin; j < in.sees[i].end; ++j)
    for (size_t t = 0; t < out.size(); ++t) out[t].add(weight[j - in.sees[i].begin] / sum, in.v(j, t));
  return out;
}

void run_case(const Case& c) {
  Head head(c);
  for (const DType type : {DType::kF32, DType::kBF16}) {
    const std::vector<float> out = attend(head, type);
    for (size_t i = 0; i < c.rows; ++i) {
      double terms = 0;
      const std::vector<Expected> want = twin(head, i, &terms);
      // f32: a score's error, that of its sum, goes through the exponential, of the numerator and of the denominator.
      // bf16: the roundings of q, k and p move a score by two of bf16's of its magnitude, and each weight with it, in
      // the numerator and in the sum; those of the weights and values are two more.
      const double part = type == DType::kF32 ? FLT_EPSILON * (sum_factor(head.sees[i].end - head.sees[i].begin + 4) +
                                                               2 * sum_factor(2 * c.width + 1) * terms)
                                              : std::exp(4 * kBf16 * terms) * (1 + 3 * kBf16) - 1;
      for (size_t t = 0; t < c.width; ++t) {
        ASSERT_LE(std::fabs(out[i * (c.width + 1) + t] - want[t].value), part * want[t].magnitude + FLT_MIN)
            << dtype_name(type) << " query " << i << " column " << t << " of " << c.rows << " rows of " << c.width;
      }
      ASSERT_EQ(out[i * (c.width + 1) + c.width], 7.0f);
    }
  }
}

TEST(RelativeHead, MatchesTheDefinition) {
  for_each_target([] {
    for (const size_t n : {1, 2, 13, 14, 15, 31, 32, 33, 70}) run_case({n, 64, n, n});
    for (const size_t width : {1, 3, 17, 40, 80, 128}) run_case({37, width, 40, 40, 5});
    // Few keys of many, as limited contexts see them.
    run_case({100, 64, 6, 3});
    run_case({100, 16, 70, 0, 40});
  });
}

// Peaked heads: scores of 50 and more.  Of inputs that bf16 holds exactly the scores have f32's error alone, so what is
// left are the roundings of the weights, however great the scores are.
TEST(RelativeHead, GreatScoresOfExactInputs) {
  constexpr size_t kRows = 60, kWidth = 64;
  const auto to_bf16 = [](float v) { return std::bit_cast<float>(std::bit_cast<uint32_t>(v) & 0xFFFF0000u); };
  for_each_target([&] {
    Head head({kRows, kWidth, kRows, kRows});
    for (TestValues* values : {&head.qkv, &head.positions})
      std::transform(values->data(), values->data() + values->size(), values->data(), to_bf16);
    head.in.scale = 2;
    const std::vector<float> out = attend(head, DType::kBF16);
    double greatest = 0;
    for (size_t i = 0; i < kRows; ++i) {
      double terms = 0;
      const std::vector<Expected> want = twin(head, i, &terms);
      greatest = std::max(greatest, terms);
      const double score = FLT_EPSILON * 2 * sum_factor(2 * kWidth + 1) * terms;
      const double part = std::exp(2 * score) * (1 + kBf16) * (1 + 2e-5) - 1 + FLT_EPSILON * sum_factor(kRows + 4);
      for (size_t t = 0; t < kWidth; ++t)
        ASSERT_LE(std::fabs(out[i * (kWidth + 1) + t] - want[t].value), part * want[t].magnitude + 8 * kRows * FLT_MIN)
            << "query " << i << " column " << t;
    }
    EXPECT_GT(greatest, 100) << "of a score's magnitude";
  });
}

// A score that overflows, or is none, is seen in what the query gets, and in no query that does not see the key.
TEST(RelativeHead, NonFiniteValuesReachTheResult) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kNone = std::numeric_limits<float>::quiet_NaN();
  constexpr size_t kRows = 60, kWidth = 40, kBad = 30;
  for_each_target([&] {
    for (const float bad : {kInfinity, kNone, 3e38f}) {
      for (const DType type : {DType::kF32, DType::kBF16}) {
        Head head({kRows, kWidth, 4, 4});
        float* const query = head.qkv.data() + kBad * head.stride;
        float* const key = query + kWidth;
        query[3] = key[3] = bad == 3e38f ? bad : std::fabs(query[3]) + 1;  // both finite: their product is not
        if (bad != 3e38f) key[3] = bad;
        const std::vector<float> out = attend(head, type);
        const auto row = [&](size_t i) { return std::span(&out[i * (kWidth + 1)], kWidth); };
        for (const float value : row(kBad)) EXPECT_TRUE(std::isnan(value)) << bad << dtype_name(type);
        for (const size_t i : {size_t{0}, kBad - 5, kBad + 5, kRows - 1})
          for (const float value : row(i)) EXPECT_TRUE(std::isfinite(value)) << bad << dtype_name(type) << i;
      }
    }
  });
}

TEST(RelativeHeadDeathTest, EveryOffsetThatIsSeenHasAPosition) {
  for (const bool behind : {false, true}) {
    Head head({20, 16, 6, 3});
    behind ? --head.offsets : --head.in.first_offset;
    head.in.offsets = head.offsets;
    EXPECT_DEATH(attend(head, DType::kF32), "query .* sees keys");
  }
}

// A query's result does not depend on the queries beside it, nor on how far the positions reach.
TEST(RelativeHead, QueriesAreIndependent) {
  for_each_target([] {
    Head near({96, 40, 8, 8}), far({96, 40, 8, 8, 77});
    std::copy_n(near.positions.data(), near.positions.size(), far.positions.data() + size_t{77} * 40);
    std::copy_n(near.constants.data(), near.offsets, far.constants.data() + 77);
    std::copy_n(near.qkv.data(), near.qkv.size(), far.qkv.data());
    for (const DType type : {DType::kF32, DType::kBF16}) {
      const std::vector<float> all = attend(near, type);
      EXPECT_EQ(all, attend(far, type));
      // The first 50 rows see nothing behind row 57.
      Head half({58, 40, 8, 8});
      std::copy_n(near.qkv.data(), half.qkv.size(), half.qkv.data());
      std::copy_n(near.positions.data(), half.positions.size(), half.positions.data());
      std::copy_n(near.constants.data(), half.offsets, half.constants.data());
      const std::vector<float> some = attend(half, type);
      EXPECT_TRUE(std::equal(some.begin(), some.begin() + 50 * 41, all.begin()));
    }
  });
}

}  // namespace
}  // namespace syrinx::kernels
