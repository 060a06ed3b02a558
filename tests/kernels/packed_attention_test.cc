#include "kernels/packed_attention.h"

#include "for_each_target.h"
#include "tensor/buffer.h"

namespace syrinx::kernels {
namespace {

constexpr double kBf16 = 0x1p-8;  // of one rounding, as a part of the value

struct Case {
  size_t queries, keys, width;
  Fill fill = Fill::kNormal;
  float scale = 0.125f;
};

struct Aligned {
  explicit Aligned(size_t size) : memory(size) {}
  std::span<std::byte> span() { return memory.span(); }
  Buffer<std::byte> memory;
};

// One query in double.  The roundings of q and k move a score by two of bf16's of its magnitude, and with it each
// weight by e to that power, in the numerator and in the sum; those of the weights and values are two more.
std::vector<Expected> attend_twin(const float* q, const View<const float, 2>& k, const View<const float, 2>& v,
                                  const Case& c, double* bound) {
  std::vector<double> weight(c.keys);
  double maximum = -1e300, largest_magnitude = 0, sum = 0;
  for (size_t j = 0; j < c.keys; ++j) {
    Expected score;
    for (size_t t = 0; t < c.width; ++t) score.add(q[t], static_cast<double>(k(j, t)) * c.scale);
    weight[j] = score.value;
    maximum = std::max(maximum, score.value);
    largest_magnitude = std::max(largest_magnitude, score.magnitude);
  }
  for (double& w : weight) w = std::exp(w - maximum), sum += w;
  std::vector<Expected> out(c.width);
  for (size_t j = 0; j < c.keys; ++j)
    for (size_t t = 0; t < c.width; ++t) out[t].add(weight[j] / sum, v(j, t));
  *bound = std::exp(4 * kBf16 * largest_magnitude) * (1 + 3 * kBf16) - 1;
  return out;
}

void run_case(const Case& c) {
  const size_t stride = 3 * c.width + 5;
  const TestValues qkv(std::max(c.queries, c.keys) * stride, static_cast<uint32_t>(c.queries * 100 + c.keys), c.fill);
  const View<const float, 2> q(qkv.data(), {c.queries, c.width}, {stride, 1});
  const View<const float, 2> k(qkv.data() + c.width, {c.keys, c.width}, {stride, 1});
  const View<const float, 2> v(qkv.data() + 2 * c.width, {c.keys, c.width}, {stride, 1});
  Aligned head(packed_head_bytes(c.keys, c.width)), scratch(packed_attention_scratch_bytes(c.keys, c.width));
  std::fill_n(head.span().data(), head.span().size(), std::byte{0x7F});  // what was there must not matter
  const size_t cut = c.keys / 2 / 2 * 2;
  const auto part = [](View<const float, 2> rows, size_t begin, size_t end) {
    return View<const float, 2>(rows.data() + begin * rows.stride(0), {end - begin, rows.extent(1)},
                                {rows.stride(0), 1});
  };
  pack_head(part(k, cut, c.keys), part(v, cut, c.keys), cut, c.keys, head.span());
  pack_head(part(k, 0, cut), part(v, 0, cut), 0, c.keys, head.span());
  const PackedAttention input{.q = q, .head = head.span(), .keys = c.keys, .scale = c.scale};
  std::vector<float> out(c.queries * (c.width + 1), 7.0f), whole = out;
  const View<float, 2> view(out.data(), {c.queries, c.width}, {c.width + 1, 1});
  const size_t half = c.queries / 3;  // two ranges, as two threads would do it
  packed_attention(input, {half, c.queries}, scratch.span(), view);
  packed_attention(input, {0, half}, scratch.span(), view);
  packed_attention(input, {0, c.queries}, scratch.span(), {whole.data(), {c.queries, c.width}, {c.width + 1, 1}});
  EXPECT_EQ(out, whole);
  for (size_t i = 0; i < c.queries; ++i) {
    double bound = 0;
    const std::vector<Expected> want = attend_twin(q.row(i), k, v, c, &bound);
    for (size_t t = 0; t < c.width; ++t) {
      ASSERT_LE(std::fabs(view(i, t) - want[t].value), bound * want[t].magnitude + 1e-37)
          << "query " << i << " column " << t << " of N " << c.queries << " M " << c.keys << " K " << c.width;
    }
    EXPECT_EQ(out[i * (c.width + 1) + c.width], 7.0f);
  }
}

TEST(PackedAttention, EveryBlockRemainder) {
  for_each_target([] {
    for (const size_t queries : {1, 2, 13, 14, 15, 29}) {
      for (const size_t keys : {1, 2, 31, 32, 33, 64, 95}) run_case({queries, keys, 64});
    }
  });
}

TEST(PackedAttention, OtherWidths) {
  for_each_target([] {
    for (const size_t width : {1, 3, 16, 33, 80, 128}) run_case({15, 37, width});
  });
}

TEST(PackedAttention, OddInputs) {
  for_each_target([] {
    run_case({70, 150, 64, Fill::kNormal, 0.01f});
    run_case({9, 40, 64, Fill::kZeros});
    run_case({9, 40, 64, Fill::kNormal, 1.0f});
  });
}

}  // namespace
}  // namespace syrinx::kernels
