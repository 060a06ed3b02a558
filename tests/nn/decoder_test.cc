// The decoder in all its kinds against a slow plain twin, with bounds that the twin computes; and the rules of passes:
// the same bits alone and together, with any number of threads, behind a prefix and in a ring.
#include "nn/decoder.h"

#include <gtest/gtest.h>

#include "allocation_count.h"
#include "decoder_fixture.h"
#include "kernels/cache_attention.h"

namespace syrinx::nn {
namespace {

void expect_twin(const Fixture& f, const std::vector<std::vector<Numbers>>& expected) {
  for (const std::vector<size_t>& counts : {std::vector<size_t>{kPositions}, {3, 1, 4}, {1}}) {
    Running run(f, 1);
    for (size_t i = 0; i < std::size(kLengths); ++i)
      expect_within(run.all(i, counts), expected[i], counts[0] == 1 ? "single" : counts[0] == 3 ? "chunks" : "whole");
  }
}

// Four positions of three streams, by passes of `count`: alone, and together on teams of up to `threads`.
void expect_same_together(const Fixture& f, size_t count, int threads) {
  SCOPED_TRACE(count);
  Running alone(f, 1);
  std::vector<Rows> want;
  for (size_t i = 0; i < 3; ++i) {
    want.emplace_back();
    for (size_t n = 0; n < 4; n += count) {
      const std::vector<Rows> rows = alone.pass({i}, count);
      want[i].insert(want[i].end(), rows[0].begin(), rows[0].end());
    }
  }
  for (int team = 1; team <= threads; ++team) {
    Running together(f, team);
    for (size_t n = 0; n < 4; n += count) {
      const std::vector<Rows> made = together.pass({0, 1, 2}, count);
      for (size_t i = 0; i < 3; ++i)
        for (size_t r = 0; r < count; ++r) ASSERT_EQ(made[i][r], want[i][n + r]) << team << " threads, stream " << i;
    }
  }
}

void expect_prefix(const Fixture& f, const std::vector<std::vector<Numbers>>& expected) {
  Running first(f, 1), behind(f, 2), apart(f, 1);
  first.pass({0}, 4, Decoder::Output::kNone);
  apart.pass({0}, 4);
  const auto prefix = std::make_shared<const KvCache>(std::move(first.caches[0]));
  behind.caches[0].begin_behind(prefix);
  EXPECT_EQ(behind.caches[0].room(), kPositions);
  const Rows rows = behind.all(0, {1, 3});
  expect_within(rows, expected[0], "behind a prefix");
  EXPECT_EQ(rows, apart.all(0, {1, 3}));
}

// With several threads a pass waits at some twenty barriers, which takes long where cores are busy elsewhere.
void run_case(Case test, Extra extra, int threads) {
  SCOPED_TRACE(::testing::Message() << "norm " << int(test.shape.norm) << " rotary " << int(test.shape.rotary)
                                    << " half " << test.half_split << " mlp " << int(test.shape.mlp) << " key heads "
                                    << test.shape.key_heads << " cache " << int(test.cache) << " extra " << int(extra));
  DecoderConfig& c = test.shape;
  c.head_norm = extra == Extra::kHeadNorm;
  c.layer_scale = c.stream_gain = extra == Extra::kScaleAndGain;
  c.cross = extra == Extra::kCross;
  c.window = test.cache == Cache::kRing || test.cache == Cache::kInt8Ring ? kWindow : 0;
  c.cache = test.cache == Cache::kF32 || test.cache == Cache::kRing      ? DType::kF32
            : test.cache == Cache::kBf16 || test.cache == Cache::kPrefix ? DType::kBF16
                                                                         : DType::kI8;
  const Fixture f(test);
  const std::vector<std::vector<Numbers>> expected = f.expected();
  expect_twin(f, expected);
  expect_same_together(f, 1, threads);
  expect_same_together(f, 2, threads);
  if (test.cache == Cache::kPrefix || test.cache == Cache::kInt8Prefix) expect_prefix(f, expected);
}

class DecoderMatrix : public ::testing::TestWithParam<Precision> {};
INSTANTIATE_TEST_SUITE_P(All, DecoderMatrix, ::testing::ValuesIn(kAllPrecisions),
                         [](const auto& info) { return std::string(precision_name(info.param)); });

TEST_P(DecoderMatrix, EveryKindMatchesTwin) {
  size_t count = 0;  // the extras go round
  for (const Norm norm : {Norm::kLayer, Norm::kRms}) {
    for (const bool half_split : {false, true}) {
      for (const Rotary rotary : {Rotary::kInterleaved, Rotary::kNone}) {
        if (half_split && rotary == Rotary::kNone) continue;
        for (const size_t key_heads : {4, 2, 1}) {
          for (const Mlp mlp : {Mlp::kGelu, Mlp::kGeluTanh, Mlp::kSwiGlu}) {
            for (const Cache cache : {Cache::kF32, Cache::kBf16, Cache::kRing, Cache::kPrefix}) {
              const Extra extra = static_cast<Extra>((count + count / 4) % kExtras);
              run_case({.shape = shape_of(key_heads, norm, rotary, mlp),
                        .precision = GetParam(),
                        .cache = cache,
                        .half_split = half_split},
                       extra, count % 11 == 0 ? 3 : 1);
              if (::testing::Test::HasFailure()) return;
              ++count;
            }
          }
        }
      }
    }
  }
}

// Caches that are attended to in parts: the same as in one, within the twin's bounds, and the same bits together.
TEST(Decoder, LongCachesInPartsMatchTwin) {
  for (const Precision precision : {Precision::kF32, Precision::kInt8}) {
    for (const Cache cache : {Cache::kF32, Cache::kBf16, Cache::kRing, Cache::kPrefix}) {
      for (const size_t segment : {1, 3, 4, 12}) {
        SCOPED_TRACE(segment);
        Case test{.shape = shape_of(2, Norm::kRms, Rotary::kInterleaved, Mlp::kSwiGlu),
                  .precision = precision,
                  .cache = cache};
        test.shape.segment = segment;
        run_case(test, Extra::kNone, segment == 3 ? 3 : 1);
      }
    }
  }
}

// Frames of many rows through kernels/row_conv.h, as a codec has them.
TEST(Decoder, RowProductsMatchTwin) {
  for (const Precision precision : {Precision::kF32, Precision::kBf16}) {
    for (const Products products : {Products::kF32Rows, Products::kBf16Rows}) {
      if (precision == Precision::kF32 && products == Products::kBf16Rows) continue;
      for (const Cache cache : {Cache::kF32, Cache::kRing}) {
        for (const Extra extra : {Extra::kNone, Extra::kHeadNorm, Extra::kScaleAndGain}) {
          Case test{.shape = shape_of(2, Norm::kLayer, Rotary::kInterleaved, Mlp::kGeluTanh),
                    .precision = precision,
                    .cache = cache};
          test.shape.products = products;
          if (extra == Extra::kHeadNorm) test.shape.mlp = Mlp::kGelu;
          run_case(test, extra, extra == Extra::kNone ? 3 : 1);
        }
      }
    }
  }
}

TEST(Decoder, GatedRowProductsMatchTwin) {
  for (const Products products : {Products::kF32Rows, Products::kBf16Rows}) {
    for (const bool half_split : {false, true}) {
      for (const Cache cache : {Cache::kF32, Cache::kRing}) {
        Case test{.shape = shape_of(half_split ? 2 : 4, Norm::kRms, Rotary::kInterleaved, Mlp::kSwiGlu),
                  .precision = products == Products::kF32Rows ? Precision::kF32 : Precision::kBf16,
                  .cache = cache,
                  .half_split = half_split};
        test.shape.products = products;
        test.shape.rows_alone = half_split;
        run_case(test, half_split ? Extra::kScaleAndGain : Extra::kNone, half_split ? 3 : 1);
      }
    }
  }
}

// Passes of any size give a row the same bits.
TEST(Decoder, RowsAloneDoNotDependOnPasses) {
  for (const Products products : {Products::kF32Rows, Products::kBf16Rows}) {
    for (const Mlp mlp : {Mlp::kSwiGlu, Mlp::kGelu}) {
      Case test{.shape = shape_of(2, Norm::kRms, Rotary::kInterleaved, mlp),
                .precision = products == Products::kF32Rows ? Precision::kF32 : Precision::kBf16,
                .cache = Cache::kRing};
      test.shape.products = products;
      test.shape.rows_alone = true;
      test.shape.window = kWindow;
      const Fixture f(test);
      Running single(f, 1);
      const Rows want = single.all(0, {1});
      for (const int threads : {1, 3}) {
        for (const std::vector<size_t>& counts : {std::vector<size_t>{2}, {4}, {3, 1, 4}}) {
          Running run(f, threads);
          EXPECT_TRUE(run.all(0, counts) == want) << threads << " threads, passes of " << counts[0];
        }
      }
    }
  }
}

// The last row of each stream, with the others skipped in the last layer; then steps go on.
TEST(Decoder, LastRowsMatchTwin) {
  for (const Precision precision : kAllPrecisions) {
    for (const Extra extra : {Extra::kNone, Extra::kScaleAndGain, Extra::kCross}) {
      for (const size_t segment : {0, 3}) {
        Case test{.shape = shape_of(2, Norm::kRms, Rotary::kInterleaved, Mlp::kSwiGlu), .precision = precision};
        test.shape.layer_scale = test.shape.stream_gain = extra == Extra::kScaleAndGain;
        test.shape.cross = extra == Extra::kCross;
        test.shape.segment = segment;
        const Fixture f(test);
        const std::vector<std::vector<Numbers>> expected = f.expected();
        for (const int threads : {1, 2}) {
          Running run(f, threads);
          const std::vector<Rows> last = run.pass({0, 1, 2}, 4, Decoder::Output::kLastRows);
          const std::vector<Rows> next = run.pass({0, 1, 2}, 1, Decoder::Output::kLastRows);
          for (size_t i = 0; i < 3; ++i) {
            ASSERT_EQ(last[i].size(), 1u);
            const auto until = [&](size_t end) {
              return std::vector<Numbers>(expected[i].begin(), expected[i].begin() + static_cast<ptrdiff_t>(end));
            };
            expect_within(last[i], until(4), "last row");
            expect_within(next[i], until(5), "step behind it");
          }
        }
      }
    }
  }
}

TEST(Decoder, Int8CachesMatchTwin) {
  for (const Precision precision : {Precision::kF32, Precision::kInt8}) {
    for (const Cache cache : {Cache::kInt8, Cache::kInt8Ring, Cache::kInt8Prefix}) {
      for (const size_t segment : {0, 4}) {
        Case test{.shape = shape_of(2, Norm::kRms, Rotary::kInterleaved, Mlp::kSwiGlu),
                  .precision = precision,
                  .cache = cache};
        test.shape.segment = segment;
        run_case(test, segment == 0 ? Extra::kHeadNorm : Extra::kNone, 2);
      }
    }
  }
}

Case swiglu_case() {
  return {.shape = shape_of(2, Norm::kRms, Rotary::kInterleaved, Mlp::kSwiGlu), .half_split = true};
}

TEST(Decoder, StepsAllocateNothing) {
  for (const Precision precision : kAllPrecisions) {
    Case test = swiglu_case();
    test.precision = precision;
    const Fixture f(test);
    Running run(f, 2);
    run.pass({0, 1}, 1);
    std::vector<Decoder::Rows> work = {{.cache = &run.caches[0], .first = 0}, {.cache = &run.caches[1], .first = 1}};
    const size_t before = allocation_count();
    for (int i = 0; i < 10; ++i) run.run(work, Decoder::Output::kRows);
    EXPECT_EQ(allocation_count() - before, 0u);
  }
}

// Two sets of weights over one cache, with norms of their own and shared ones: the first positions through one, the
// next ones through the other, and one pass a position through both, as a depth transformer does.
TEST(Decoder, WeightSetsAlternateOverOneCache) {
  for (const bool shared_norms : {false, true}) {
    const Case test = swiglu_case();
    const Fixture f(test);
    Maker other(test, 12);
    if (shared_norms) {
      for (size_t i = 0; i < test.shape.layers; ++i) {
        other.weights.layers[i].before = f.maker.weights.layers[i].before;
        other.weights.layers[i].after = f.maker.weights.layers[i].after;
      }
    }
    const std::vector<const DecoderWeights*> sets = {&f.maker.weights, &other.weights};
    const std::vector<Numbers> expected =
        decoder_twin({.weights = sets[0], .second = sets[1], .half_split = test.half_split}, f.inputs[0]);
    Running run(f, 2);
    Rows made;
    for (size_t n = 0; n < kPositions; ++n) {
      run.weights = sets[n % 2];
      made.push_back(run.pass({0}, 1)[0][0]);
    }
    expect_within(made, expected, shared_norms ? "shared norms" : "own norms");
    run.weights = nullptr;
    run.caches[0].reset();
    EXPECT_NE(run.all(0, {1}), made);
  }
}

TEST(Decoder, TruncatedAndCopiedCachesContinueEqually) {
  const Fixture f(swiglu_case());
  Running run(f, 1);
  const std::vector<Rows> before = run.pass({0}, 4);
  run.caches[1].copy_from(run.caches[0]);
  EXPECT_EQ(run.caches[1].position, 4u);
  const std::vector<Rows> next = run.pass({0}, 1);
  run.caches[0].truncate(4);
  EXPECT_EQ(run.pass({0}, 1), next);
  run.caches[0].truncate(4);
  run.caches[0].copy_from(run.caches[1]);
  EXPECT_EQ(run.pass({0}, 1), next);
}

// Two streams part behind a common beginning: one becomes the other by the rows alone in which they differ.
TEST(KvCache, CopyLeavesEqualRows) {
  for (const DType type : {DType::kF32, DType::kBF16, DType::kI8}) {
    for (const bool has_prefix : {false, true}) {
      Case test = swiglu_case();
      test.shape.cache = type;
      const Fixture f(test);
      Running run(f, 1);
      if (has_prefix) {
        run.pass({0}, 2);
        const auto prefix = std::make_shared<const KvCache>(std::move(run.caches[0]));
        run.caches[0] = f.cache();
        run.caches[0].begin_behind(prefix);
      }
      run.pass({0}, 2);
      run.caches[1].copy_from(run.caches[0]);
      const size_t same = run.caches[0].position;
      run.pass({0, 1}, 2);
      run.caches[1].copy_from(run.caches[0], same);
      EXPECT_EQ(run.caches[1].position, same + 2);
      const std::vector<Rows> want = run.pass({0}, 1);
      std::swap(run.caches[0], run.caches[1]);
      EXPECT_EQ(run.pass({0}, 1), want);
    }
  }
}

// A stream behind the beginning of another one goes on as that one did.
TEST(KvCache, BeginningsArePrefixes) {
  for (const DType type : {DType::kF32, DType::kBF16, DType::kI8}) {
    Case test = swiglu_case();
    test.shape.cache = type;
    const Fixture f(test);
    Running run(f, 1), behind(f, 1);
    run.pass({0}, 3);
    const std::vector<Rows> want = run.pass({0}, 2);
    const auto prefix = std::make_shared<const KvCache>(run.caches[0].beginning(3));
    EXPECT_EQ(prefix->capacity, 3u);
    EXPECT_LT(prefix->bytes(), run.caches[0].bytes());
    behind.pass({0}, 3);
    behind.caches[0].begin_behind(prefix);
    EXPECT_EQ(behind.pass({0}, 2), want);
  }
}

TEST(KvCache, RingKeepsWindowAcrossTruncation) {
  Case test = swiglu_case();
  test.cache = Cache::kRing;
  test.shape.window = kWindow;
  const Fixture f(test);
  Running run(f, 1), twice(f, 1);
  for (size_t n = 0; n < 11; ++n) run.pass({0}, 1);
  const std::vector<Rows> want = run.pass({0}, 1);
  for (size_t n = 0; n < 12; ++n) twice.pass({0}, 1);
  twice.caches[0].truncate(11);
  EXPECT_EQ(twice.pass({0}, 1), want);
  EXPECT_EQ(twice.caches[0].pass_room(), kRing - kWindow + 1);
}

TEST(KvCache, Int8RowsStayWithinHalfStep) {
  constexpr size_t kSize = 24;
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  std::vector<float> rows(6 * kSize);
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = i / kSize == 2 ? 0.0f : normal(random) * static_cast<float>(i + 1);
  KvCache cache =
      *KvCache::make({.type = DType::kI8, .layers = 1, .key_heads = 1, .head_size = kSize, .capacity = 5, .window = 2});
  cache.position = 3;  // the ring wraps
  const View<const float, 2> four(rows.data(), {4, kSize});
  cache.append(0, 0, four, four);
  KvCache copy =
      *KvCache::make({.type = DType::kI8, .layers = 1, .key_heads = 1, .head_size = kSize, .capacity = 5, .window = 2});
  cache.position = 7;
  copy.copy_from(cache);
  for (size_t n = 0; n < 4; ++n) {
    const size_t row = (3 + n) % 5;
    const float scale = copy.head_key_scales(0, 0).row(row)[0];
    for (size_t i = 0; i < kSize; ++i) {
      const float kept = scale * static_cast<float>(copy.head_keys<int8_t>(0, 0).row(row)[i]);
      EXPECT_LE(std::abs(kept - rows[n * kSize + i]), scale * 0.5001f) << n << " " << i;
    }
  }
}

struct OneQuery {
  static constexpr size_t kSize = 64, kRows = 300;
  static constexpr double kScale = 0.125;
  std::vector<float> q, keys, values;
  std::vector<int8_t> narrow_keys = std::vector<int8_t>(kRows * kSize), narrow_values = narrow_keys;
  std::vector<float> key_scales = std::vector<float>(kRows), value_scales = key_scales;

  OneQuery() : q(kSize), keys(kRows * kSize), values(kRows * kSize) {
    std::mt19937 random(4);
    std::normal_distribution<float> normal;
    for (auto* all : {&q, &keys, &values})
      for (float& value : *all) value = normal(random);
    quantise_rows({keys.data(), {kRows, kSize}}, {narrow_keys.data(), {kRows, kSize}}, key_scales.data());
    quantise_rows({values.data(), {kRows, kSize}}, {narrow_values.data(), {kRows, kSize}}, value_scales.data());
  }
  std::vector<float> narrow() const {
    kernels::Int8CacheAttentionInput input{.q = {q.data(), {1, kSize}},
                                           .keys = {narrow_keys.data(), {kRows, kSize}},
                                           .values = {narrow_values.data(), {kRows, kSize}}};
    input.key_scales = {key_scales.data(), {kRows, 1}};
    input.value_scales = {value_scales.data(), {kRows, 1}};
    input.first_position = kRows - 1;
    input.scale = static_cast<float>(kScale);
    std::vector<float> scratch(kernels::cache_attention_scratch_size(kRows)), out(kSize);
    kernels::cache_attention(input, {0, 1}, scratch, {out.data(), {1, kSize}});
    return out;
  }
  double kept_key(size_t n, size_t i) const { return double{key_scales[n]} * narrow_keys[n * kSize + i]; }
  double kept_value(size_t n, size_t i) const { return double{value_scales[n]} * narrow_values[n * kSize + i]; }
};

// The softmax of kScale q . key(n, i) and the sums of value(n, i), in double.
template <class Key, class Value>
std::pair<std::vector<double>, std::vector<double>> attention(const OneQuery& one, const Key& key, const Value& value) {
  std::vector<double> weights(one.kRows), out(one.kSize);
  double total = 0;
  for (size_t n = 0; n < one.kRows; ++n) {
    double score = 0;
    for (size_t i = 0; i < one.kSize; ++i) score += one.kScale * one.q[i] * key(n, i);
    total += weights[n] = std::exp(score);
  }
  for (double& weight : weights) weight /= total;
  for (size_t n = 0; n < one.kRows; ++n)
    for (size_t i = 0; i < one.kSize; ++i) out[i] += weights[n] * value(n, i);
  return {weights, out};
}

// An int8 cache gives what the numbers that it keeps give, but for the rounding of sums: each score is off by
// at most gamma = (kSize + 4) 2^-24 of the sum of its terms' magnitudes, so each weight by a factor within exp(2 (error
// + 4 * 2^-24)), and the sum over rows by kRows 2^-24.
TEST(KvCache, Int8AttentionMatchesKeptNumbers) {
  const OneQuery one;
  constexpr double kRound = 0x1p-24;
  const auto key = [&](size_t n, size_t i) { return one.kept_key(n, i); };
  const auto value = [&](size_t n, size_t i) { return one.kept_value(n, i); };
  const auto [weights, expected] = attention(one, key, value);
  double most = 0;
  for (size_t n = 0; n < one.kRows; ++n) {
    double terms = 0;
    for (size_t i = 0; i < one.kSize; ++i) terms += one.kScale * std::abs(one.q[i] * key(n, i));
    most = std::max(most, (one.kSize + 4) * kRound * terms);
  }
  const std::vector<float> got = one.narrow();
  double tightest = 1e30, worst = 0;
  for (size_t i = 0; i < one.kSize; ++i) {
    double magnitudes = 0;
    for (size_t n = 0; n < one.kRows; ++n) magnitudes += weights[n] * std::abs(value(n, i));
    const double bound = (std::expm1(2 * (most + 4 * kRound)) + one.kRows * kRound) * magnitudes;
    EXPECT_LE(std::abs(got[i] - expected[i]), bound) << i;
    tightest = std::min(tightest, bound);
    worst = std::max(worst, std::abs(got[i] - expected[i]));
  }
  std::printf("int8 cache beside its numbers: worst %.2e, tightest bound %.2e\n", worst, tightest);
}

// Beside an f32 cache: key n is off by half its step at most, so its score by d(n) = kScale |q|_1 step(n) / 2 and the
// sum of exponentials by a factor within exp(D), D = log(sum of weight(n) exp(d(n))).  As the weighted sum of
// value - out is 0, a column moves by at most the sum of weight(n) ((exp(d(n) + D) - 1) |value - out| +
// exp(d(n) + D) step of value n / 2).
TEST(KvCache, Int8AttentionStaysNearF32) {
  const OneQuery one;
  const auto [weights, exact] = attention(
      one, [&](size_t n, size_t i) { return double{one.keys[n * one.kSize + i]}; },
      [&](size_t n, size_t i) { return double{one.values[n * one.kSize + i]}; });
  double sum_q = 0, total = 0;
  for (const float value : one.q) sum_q += std::abs(value);
  const auto moved = [&](size_t n) { return one.kScale * sum_q * one.key_scales[n] / 2; };
  for (size_t n = 0; n < one.kRows; ++n) total += weights[n] * std::exp(moved(n));
  const std::vector<float> got = one.narrow();
  double worst = 0, tightest = 1e30;
  for (size_t i = 0; i < one.kSize; ++i) {
    double bound = 1e-5;  // the rounding of sums, as the test before has it
    for (size_t n = 0; n < one.kRows; ++n) {
      const double factor = std::exp(moved(n)) * total;
      bound += weights[n] *
               ((factor - 1) * std::abs(one.values[n * one.kSize + i] - exact[i]) + factor * one.value_scales[n] / 2);
    }
    EXPECT_LE(std::abs(got[i] - exact[i]), bound) << i;
    worst = std::max(worst, std::abs(got[i] - exact[i]));
    tightest = std::min(tightest, bound);
  }
  EXPECT_GT(worst, 0.0);
  std::printf("int8 cache beside f32: worst %.2e, tightest bound %.2e\n", worst, tightest);
}

TEST(KvCacheDeathTest, RingForgetsOldPositions) {
  KvCache cache = *KvCache::make({.layers = 1, .key_heads = 1, .head_size = 2, .capacity = kRing, .window = kWindow});
  cache.position = 20;
  cache.truncate(18);
  cache.position = 19;
  EXPECT_DEATH(cache.truncate(15), "position 15 of 19 in a ring of 8");
}

TEST(KvCache, ShapesBeyondLimitsAreRefused) {
  EXPECT_EQ(KvCache::make({.layers = 1, .key_heads = 1, .head_size = 2, .capacity = 4, .window = 5}).error().code,
            Code::kInvalidArgument);
  EXPECT_EQ(KvCache::make({.layers = 64, .key_heads = 64, .head_size = 128, .capacity = kMaxPositions}).error().code,
            Code::kLimitExceeded);
}

}  // namespace
}  // namespace syrinx::nn
