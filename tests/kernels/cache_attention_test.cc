#include "kernels/cache_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "for_each_target.h"
#include "tensor/dtype.h"

namespace syrinx::kernels {
namespace {

struct Case {
  size_t ring, first, queries, heads, key_heads, width;
  size_t window = 0;
  Fill fill = Fill::kNormal;
  float scale = 0.125f;
};

// A number of a cache from a float, and back.
template <class T>
T kept(float value) {
  if constexpr (std::is_same_v<T, float>) {
    return value;
  } else if constexpr (std::is_same_v<T, int8_t>) {  // a row that is not to be read has a scale of NaN
    return std::isnan(value) ? int8_t{1} : static_cast<int8_t>(std::clamp(value * 40.0f, -127.0f, 127.0f));
  } else {
    return std::isnan(value) ? 0x7FC0 : f32_to_bf16(value);
  }
}
double number(float value) { return value; }
double number(uint16_t value) { return bf16_to_f32(value); }
double number(int8_t value) { return value; }

// n numbers, one element behind the alignment of their memory.
template <class T>
std::vector<T> cache_values(size_t n, uint32_t seed, Fill fill) {
  const TestValues from(n, seed, fill);
  std::vector<T> values(n + 1);
  std::transform(from.data(), from.data() + n, values.begin() + 1, kept<T>);
  return values;
}

// A ring in which the rows of positions that were never written, or that no query may see any more, hold NaN.
template <class T>
struct Ring {
  Ring(const Case& c, uint32_t seed)
      : stride(c.key_heads * c.width + 3),
        keys(cache_values<T>(c.ring * stride, seed, c.fill)),
        values(cache_values<T>(c.ring * stride, seed + 1, c.fill)),
        key_scales(c.ring * c.key_heads),
        value_scales(c.ring * c.key_heads) {
    for (size_t i = 0; i < key_scales.size(); ++i) {
      key_scales[i] = 0.02f + 0.001f * static_cast<float>(i % 17);
      value_scales[i] = 0.03f + 0.001f * static_cast<float>(i % 13);
    }
    const size_t end = c.first + c.queries;
    const size_t begin = c.window == 0 || c.first < c.window ? 0 : c.first + 1 - c.window;
    std::vector<bool> seen(c.ring);
    for (size_t position = begin; position < end; ++position) seen[position % c.ring] = true;
    for (size_t row = 0; row < c.ring; ++row) {
      if (seen[row]) continue;
      for (size_t head = 0; head < c.key_heads; ++head)
        key_scales[row * c.key_heads + head] = value_scales[row * c.key_heads + head] =
            std::numeric_limits<float>::quiet_NaN();
      for (size_t column = 0; column < stride; ++column)
        keys[1 + row * stride + column] = values[1 + row * stride + column] =
            kept<T>(std::numeric_limits<float>::quiet_NaN());
    }
  }
  size_t stride;
  std::vector<T> keys, values;
  std::vector<float> key_scales, value_scales;
};

template <class T>
CacheAttention<T> input_of(const Case& c, const Ring<T>& ring, const TestValues& q) {
  CacheAttention<T> in;
  in.q = {q.data(), {c.queries, c.heads * c.width}, {c.heads * c.width + 5, 1}};
  in.keys = {ring.keys.data() + 1, {c.ring, c.key_heads * c.width}, {ring.stride, 1}};
  in.values = {ring.values.data() + 1, {c.ring, c.key_heads * c.width}, {ring.stride, 1}};
  if constexpr (std::is_same_v<T, int8_t>) {
    in.key_scales = {ring.key_scales.data(), {c.ring, c.key_heads}};
    in.value_scales = {ring.value_scales.data(), {c.ring, c.key_heads}};
  }
  in.heads = c.heads;
  in.key_heads = c.key_heads;
  in.head_size = c.width;
  in.first_position = c.first;
  in.window = c.window;
  in.scale = c.scale;
  return in;
}

double scale_of(View<const float, 2> scales, size_t row, size_t key_head) {
  return scales.data() == nullptr ? 1.0 : scales(row, key_head);
}

// One query of one head in double; the bound is that of tests/kernels/attention_test.cc.
template <class T>
std::vector<Expected> attend_twin(const CacheAttention<T>& in, size_t query, size_t head, double* factor) {
  const size_t width = in.head_size, column = head * in.key_heads / in.heads * width;
  const size_t position = in.first_position + query;
  std::vector<double> weight;
  double maximum = -1e300, largest_magnitude = 0, sum = 0;
  std::vector<size_t> rows;
  for (size_t p = 0; p <= position; ++p) {
    if (in.window > 0 && position - p >= in.window) continue;
    rows.push_back(p % in.keys.extent(0));
    Expected score;
    for (size_t t = 0; t < width; ++t)
      score.add(in.q(query, head * width + t), number(in.keys(rows.back(), column + t)) * in.scale *
                                                   scale_of(in.key_scales, rows.back(), column / width));
    weight.push_back(score.value);
    maximum = std::max(maximum, score.value);
    largest_magnitude = std::max(largest_magnitude, score.magnitude);
  }
  for (double& w : weight) w = std::exp(w - maximum), sum += w;
  std::vector<Expected> out(width);
  for (size_t j = 0; j < rows.size(); ++j)
    for (size_t t = 0; t < width; ++t)
      out[t].add(weight[j] / sum,
                 number(in.values(rows[j], column + t)) * scale_of(in.value_scales, rows[j], column / width));
  *factor = 2 * sum_factor(width) * largest_magnitude + 2 * sum_factor(rows.size()) + 4;
  return out;
}

template <class T>
void run_case_in(const Case& c) {
  SCOPED_TRACE(::testing::Message() << (sizeof(T) == 4 ? "f32" : "bf16") << " ring " << c.ring << " from " << c.first
                                    << ", " << c.queries << " queries, " << c.heads << " heads on " << c.key_heads
                                    << " of " << c.width << ", window " << c.window);
  const uint32_t seed = static_cast<uint32_t>(c.ring * 100 + c.first + c.queries);
  const size_t columns = c.heads * c.width;
  const Ring<T> ring(c, seed);
  const TestValues q(c.queries * (columns + 5), seed + 2, c.fill);
  const CacheAttention<T> in = input_of(c, ring, q);
  std::vector<float> scratch(cache_attention_scratch_size(c.ring), std::numeric_limits<float>::quiet_NaN());
  TestValues out(c.queries * (columns + 1), seed);
  const TestValues before = out;
  const View<float, 2> view(out.data(), {c.queries, columns}, {columns + 1, 1});
  const size_t part = c.heads / 2;  // two ranges, as two threads would do it
  cache_attention(in, {part, c.heads}, scratch, view);
  cache_attention(in, {0, part}, scratch, view);
  for (size_t i = 0; i < c.queries; ++i) {
    for (size_t h = 0; h < c.heads; ++h) {
      double factor = 0;
      const std::vector<Expected> want = attend_twin(in, i, h, &factor);
      for (size_t t = 0; t < c.width; ++t)
        ASSERT_TRUE(within(want[t], factor, view(i, h * c.width + t))) << "query " << i << " head " << h << " at " << t;
    }
    ASSERT_EQ(out[i * (columns + 1) + columns], before[i * (columns + 1) + columns]);
  }
}

void run_case(const Case& c) {
  run_case_in<float>(c);
  run_case_in<uint16_t>(c);
  run_case_in<int8_t>(c);
}

TEST(CacheAttention, OneQueryAndSomeAtEveryLength) {
  for_each_target([] {
    for (const size_t first : {0, 1, 2, 3, 4, 6, 7, 30, 31}) {
      for (const size_t queries : {1, 2, 3, 4, 5, 9}) run_case({first + queries + 2, first, queries, 2, 2, 64});
    }
  });
}

TEST(CacheAttention, HeadsShareKeys) {
  for_each_target([] {
    for (const size_t queries : {1, 3, 16}) {
      run_case({40, 11, queries, 4, 2, 64});
      run_case({40, 11, queries, 3, 1, 64});
      run_case({40, 11, queries, 8, 2, 16});
      run_case({40, 11, queries, 6, 3, 8});
    }
  });
}

TEST(CacheAttention, OtherHeadSizes) {
  for_each_target([] {
    for (const size_t width : {1, 2, 3, 8, 16, 24, 32, 33, 80, 128}) {
      run_case({20, 9, 1, 2, 2, width});
      run_case({20, 9, 6, 2, 1, width});
    }
  });
}

TEST(CacheAttention, WindowOverARingThatWraps) {
  for_each_target([] {
    for (const size_t first : {0, 16, 32, 48, 64, 1600}) run_case({55, first, 16, 4, 4, 16, 40});
    for (const size_t first : {0, 1, 4, 5, 6, 17, 100}) run_case({5, first, 1, 2, 2, 8, 5});
    run_case({265, 4000, 16, 2, 2, 64, 250});
    run_case({297, 4000, 48, 4, 2, 64, 250});
    run_case({60, 100, 33, 2, 2, 100, 20});
    run_case({7, 3, 2, 1, 1, 8, 100});   // a window that is not reached
    run_case({16, 50, 16, 2, 2, 8, 1});  // each sees itself alone
  });
}

TEST(CacheAttention, OddInputs) {
  for_each_target([] {
    run_case({512, 500, 1, 2, 2, 64});
    run_case({40, 20, 9, 2, 2, 64, 0, Fill::kZeros});
    run_case({40, 20, 9, 2, 2, 64, 0, Fill::kDenormal});
    run_case({40, 20, 9, 2, 2, 64, 0, Fill::kNormal, 20.0f});
  });
}

// One position's result from parts of so many positions each, merged.  A part's sum adds its own roundings once more.
template <class T>
void run_parts(const Case& c, size_t part) {
  SCOPED_TRACE(::testing::Message() << "position " << c.first << " in parts of " << part << ", window " << c.window);
  const size_t columns = c.heads * c.width, begin = c.window == 0 || c.first < c.window ? 0 : c.first + 1 - c.window;
  const Ring<T> ring(c, 5);
  const TestValues q(columns + 5, 6);
  CacheAttention<T> in = input_of(c, ring, q);
  std::vector<float> scratch(cache_attention_scratch_size(c.ring), std::numeric_limits<float>::quiet_NaN());
  std::vector<float> parts, log_sums;
  size_t count = 0;
  for (size_t i = begin / part; i <= c.first / part; ++i, ++count) {
    parts.resize((count + 1) * columns);
    log_sums.resize((count + 1) * c.heads);
    in.see_from = i * part;
    in.see_to = (i + 1) * part;
    in.log_sums = log_sums.data() + count * c.heads;
    cache_attention(in, {0, c.heads}, scratch, {parts.data() + count * columns, {1, columns}});
  }
  for (size_t h = 0; h < c.heads; ++h) {
    std::vector<float> merged(c.width);
    merge_attention({parts.data() + h * c.width, {count, c.width}, {columns, 1}}, log_sums.data() + h, c.heads,
                    merged.data());
    double factor = 0;
    const std::vector<Expected> want = attend_twin(in, 0, h, &factor);
    for (size_t t = 0; t < c.width; ++t)
      ASSERT_TRUE(within(want[t], 2 * factor, merged[t])) << "head " << h << " at " << t;
  }
}

TEST(CacheAttention, PartsMergeToWhole) {
  for_each_target([] {
    for (const size_t part : {1, 3, 16, 100}) {
      for (const size_t first : {0, 15, 16, 40}) {
        run_parts<float>({first + 1, first, 1, 4, 2, 24}, part);
        run_parts<uint16_t>({first + 1, first, 1, 3, 1, 64}, part);
        run_parts<int8_t>({first + 1, first, 1, 2, 2, 40}, part);
        run_parts<float>({11, first, 1, 2, 2, 16, 11}, part);
      }
    }
  });
}

// Every pair of successive positions against all of them, and every head by itself against a range.
template <class T>
void expect_independent_queries() {
  for (const size_t queries : {9, 40}) {
    const Case all{80, 13, queries, 6, 2, 24, 12};
    const Ring<T> ring(all, 1);
    const TestValues q(all.queries * (all.heads * all.width + 5), 2);
    const CacheAttention<T> in = input_of(all, ring, q);
    const size_t columns = all.heads * all.width;
    std::vector<float> scratch(cache_attention_scratch_size(all.ring)), together(all.queries * columns);
    cache_attention(in, {0, all.heads}, scratch, {together.data(), {all.queries, columns}});
    std::vector<float> pair(2 * columns);
    for (size_t i = 0; i + 1 < all.queries; ++i) {
      CacheAttention<T> two = in;
      two.q = {in.q.row(i), {2, columns}, {in.q.stride(0), 1}};
      two.first_position = all.first + i;
      for (size_t head = 0; head < all.heads; ++head)
        cache_attention(two, {head, head + 1}, scratch, {pair.data(), {2, columns}});
      EXPECT_EQ(std::memcmp(pair.data(), &together[i * columns], pair.size() * sizeof(float)), 0) << "query " << i;
    }
  }
}

TEST(CacheAttention, AQueryDoesNotDependOnItsNeighbours) {
  for_each_target([] {
    expect_independent_queries<float>();
    expect_independent_queries<uint16_t>();
    expect_independent_queries<int8_t>();
  });
}

template <class T>
void expect_prefix_as_rows() {
  for (const size_t shared : {1, 4, 9, 13, 22}) {
    for (const size_t queries : {1, 5}) {
      const Case whole{60, 22, queries, 4, 2, 24};
      const Ring<T> ring(whole, 1);
      const TestValues q(whole.queries * (whole.heads * whole.width + 5), 2);
      const size_t columns = whole.heads * whole.width;
      std::vector<float> scratch(cache_attention_scratch_size(whole.ring)), want(queries * columns), got(want);
      CacheAttention<T> in = input_of(whole, ring, q);
      cache_attention(in, {0, whole.heads}, scratch, {want.data(), {queries, columns}});
      const auto rows = [&](View<const T, 2> all, size_t first, size_t count) {
        return View<const T, 2>(all.row(first), {count, all.extent(1)}, {all.stride(0), 1});
      };
      // The rows behind lie in a ring that is exactly full.
      const size_t rest = whole.first + queries - shared;
      const View<const T, 2> keys = in.keys, values = in.values;
      in.prefix_keys = rows(keys, 0, shared);
      in.prefix_values = rows(values, 0, shared);
      in.keys = rows(keys, shared, rest);
      in.values = rows(values, shared, rest);
      if constexpr (std::is_same_v<T, int8_t>) {
        const auto scales = [&](const std::vector<float>& all, size_t first, size_t count) {
          return View<const float, 2>(all.data() + first * whole.key_heads, {count, whole.key_heads});
        };
        in.prefix_key_scales = scales(ring.key_scales, 0, shared);
        in.prefix_value_scales = scales(ring.value_scales, 0, shared);
        in.key_scales = scales(ring.key_scales, shared, rest);
        in.value_scales = scales(ring.value_scales, shared, rest);
      }
      cache_attention(in, {0, whole.heads}, scratch, {got.data(), {queries, columns}});
      EXPECT_EQ(std::memcmp(want.data(), got.data(), want.size() * sizeof(float)), 0) << shared << " of " << queries;
    }
  }
}

TEST(CacheAttention, APrefixIsTheRowsInFront) {
  for_each_target([] {
    expect_prefix_as_rows<float>();
    expect_prefix_as_rows<uint16_t>();
    expect_prefix_as_rows<int8_t>();
  });
}

}  // namespace
}  // namespace syrinx::kernels
