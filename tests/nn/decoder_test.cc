// The decoder in all its kinds against a slow plain twin, with bounds that the twin computes; and the rules of passes:
// the same bits alone and together, with any number of threads, behind a prefix and in a ring.
#include "nn/decoder.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "allocation_count.h"
#include "decoder_twin.h"
#include "kernels/pack_rows.h"
#include "nn/rows.h"
#include "tensor/precision.h"

namespace syrinx::nn {
namespace {

constexpr size_t kPositions = 13, kCrossPositions = 6, kWindow = 5, kRing = 8;
constexpr size_t kLengths[] = {kPositions, 9, 5};  // of the streams

enum class Cache { kF32, kBf16, kRing, kPrefix };
enum class Extra { kNone, kHeadNorm, kScaleAndGain, kCross };
constexpr size_t kExtras = 4;

struct Case {
  DecoderConfig shape;
  Precision precision = Precision::kF32;
  Cache cache = Cache::kF32;
  bool half_split = false;
};

// Random weights of a shape, as a checkpoint has them, packed as the decoder reads them.
class Maker {
 public:
  explicit Maker(const Case& test) : case_(test), c_(test.shape) {
    weights.shape = c_;
    for (size_t i = 0; i < c_.layers; ++i) weights.layers.push_back(block());
    weights.set_frequencies();
  }

  std::vector<float> values(size_t count, float scale, float centre = 0) {
    std::vector<float> made(count);
    for (float& value : made) value = centre + scale * normal_(random_);
    return made;
  }
  DecoderWeights weights;

 private:
  kernels::OwnedMatrix pack(std::span<const float> rows, std::span<const float> bias, size_t channels,
                            bool feed_forward) {
    const bool int4 = case_.precision == Precision::kInt4 && feed_forward;
    const kernels::StoredRows stored{.bytes = std::as_bytes(rows), .columns = rows.size() / channels};
    return kernels::pack_rows(int4 ? PanelType::kInt4 : panel_type(case_.precision), channels, {&stored, 1}, bias,
                              team_);
  }
  kernels::OwnedMatrix matrix(size_t channels, size_t columns, bool feed_forward = false) {
    const std::vector<float> rows = values(columns * channels, 1.0f / std::sqrt(static_cast<float>(channels)));
    return pack(rows, values(columns, 0.1f), channels, feed_forward);
  }
  NormWeights norm() {
    return {values(c_.width, 0.2f, 1.0f), c_.norm == Norm::kLayer ? values(c_.width, 0.1f) : std::vector<float>()};
  }
  kernels::OwnedMatrix query_key_value() {
    const size_t reordered = c_.query_width() + c_.key_width(), columns = reordered + c_.key_width();
    std::vector<float> rows = values(columns * c_.width, 1.0f / std::sqrt(static_cast<float>(c_.width)));
    std::vector<float> bias = values(columns, 0.1f);
    if (case_.half_split) {
      interleave_halves(std::span(rows).first(reordered * c_.width), c_.head_size, c_.width);
      interleave_halves(std::span(bias).first(reordered), c_.head_size, 1);
    }
    return pack(rows, bias, c_.width, false);
  }
  kernels::OwnedMatrix up() {
    if (c_.mlp != Mlp::kSwiGlu) return matrix(c_.width, c_.hidden, true);
    const float scale = 1.0f / std::sqrt(static_cast<float>(c_.width));
    const std::vector<float> gate = values(c_.hidden * c_.width, scale), value = values(c_.hidden * c_.width, scale);
    const std::vector<float> rows = interleave_panels(gate, value, c_.width);
    return pack(rows, {}, c_.width, true);
  }
  DecoderBlock block() {
    DecoderBlock made{.before = norm(),
                      .after = norm(),
                      .in = query_key_value(),
                      .out = matrix(c_.query_width(), c_.width),
                      .up = up(),
                      .down = matrix(c_.hidden, c_.width, true)};
    if (c_.head_norm) {
      for (auto* gamma : {&made.query_norm, &made.key_norm}) {
        *gamma = values(c_.head_size, 0.2f, 1.0f);
        if (case_.half_split) interleave_halves(*gamma, c_.head_size, 1);
      }
    }
    if (c_.layer_scale) {
      made.attention_scale = values(c_.width, 0.2f, 0.8f);
      made.mlp_scale = values(c_.width, 0.2f, 0.8f);
    }
    if (c_.cross)
      made.cross.emplace(CrossBlock{.norm = norm(),
                                    .query = matrix(c_.width, c_.query_width()),
                                    .key_value = {},
                                    .out = matrix(c_.query_width(), c_.width)});
    return made;
  }

  const Case& case_;
  const DecoderConfig& c_;
  ThreadTeam team_{1};
  std::mt19937 random_{11};
  std::normal_distribution<float> normal_;
};

using Rows = std::vector<std::vector<float>>;

// A decoder's weights, what its streams read, and what the twin makes of it.
struct Fixture {
  explicit Fixture(const Case& test) : shape(test.shape), test_case(test), maker(test_case) {
    for (const size_t length : kLengths) {
      Rows rows;
      for (size_t n = 0; n < length; ++n) rows.push_back(maker.values(shape.width, 1.0f));
      inputs.push_back(std::move(rows));
    }
    gain = maker.values(shape.layers * shape.width, 0.1f, 1.0f);
    if (!shape.cross) return;
    cross = CrossCache(shape.cache, shape.layers, shape.heads, shape.head_size, kCrossPositions + 2);
    cross.positions = kCrossPositions;
    for (size_t i = 0; i < shape.layers; ++i)
      for (size_t h = 0; h < shape.heads; ++h) fill_cross(i, h);
  }

  void fill_cross(size_t layer, size_t head) {
    const std::vector<float> numbers = maker.values(2 * kCrossPositions * shape.head_size, 1.0f);
    const View<const float, 2> keys(numbers.data(), {kCrossPositions, shape.head_size});
    const View<const float, 2> values(keys.row(0) + keys.size(), {kCrossPositions, shape.head_size});
    if (cross.type == DType::kF32) {
      copy_rows(keys, cross.head_keys<float>(layer, head));
      copy_rows(values, cross.head_values<float>(layer, head));
    } else {
      copy_rows(keys, cross.head_keys<uint16_t>(layer, head));
      copy_rows(values, cross.head_values<uint16_t>(layer, head));
    }
  }

  KvCache cache(size_t capacity = kPositions) const {
    const bool ring = test_case.cache == Cache::kRing;
    return *KvCache::make({.type = shape.cache,
                           .layers = shape.layers,
                           .key_heads = shape.key_heads,
                           .head_size = shape.head_size,
                           .capacity = ring ? kRing : capacity,
                           .window = ring ? kWindow : 0});
  }
  std::vector<std::vector<Numbers>> expected() const {
    const TwinInput input{
        .weights = &maker.weights, .half_split = test_case.half_split, .cross = &cross, .gain = &gain};
    std::vector<std::vector<Numbers>> all;
    for (const Rows& rows : inputs) all.push_back(decoder_twin(input, rows));
    return all;
  }

  DecoderConfig shape;
  Case test_case;
  Maker maker;
  std::vector<Rows> inputs;
  std::vector<float> gain;
  CrossCache cross;
};

// A team with a decoder, and the caches of the streams.
class Running {
 public:
  Running(const Fixture& fixture, int threads)
      : f_(fixture),
        team_(threads),
        runner_(team_),
        crew_(team_),
        decoder_(fixture.maker.weights, runner_, {.rows = 40, .streams = 3, .positions = 32, .cross_positions = 16}) {
    for (size_t i = 0; i < std::size(kLengths); ++i) caches.push_back(f_.cache());
  }

  // `count` positions of these streams, from the next one of each on, in one pass: their rows.
  std::vector<Rows> pass(const std::vector<size_t>& streams, size_t count,
                         Decoder::Output wanted = Decoder::Output::kRows) {
    std::vector<Decoder::Rows> work;
    size_t rows = 0;
    const View<float, 2> x = decoder_.input(40);
    for (const size_t i : streams) {
      KvCache& cache = caches[i];
      for (size_t n = 0; n < count; ++n)
        std::copy_n(f_.inputs[i][cache.position + n].data(), f_.shape.width, x.row(rows + n));
      work.push_back({.cache = &cache, .first = rows, .count = count, .cross = &f_.cross, .gain = f_.gain.data()});
      rows += count;
    }
    run(work, wanted);
    const View<const float, 2> out = decoder_.output(rows);
    std::vector<Rows> made(streams.size());
    for (size_t n = 0; n < rows; ++n) made[n / count].emplace_back(out.row(n), out.row(n) + f_.shape.width);
    return made;
  }
  void run(std::span<const Decoder::Rows> work, Decoder::Output wanted) {
    decoder_.begin(f_.maker.weights, work, wanted);
    team_.run([&](int member) {
      Crew::Seat seat = crew_.everyone(member);
      decoder_.work(seat);
    });
    decoder_.end();
  }
  // All of a stream, in passes of these counts in turn, and of what is left.
  Rows all(size_t stream, const std::vector<size_t>& counts) {
    Rows made;
    for (size_t i = 0, left = kLengths[stream] - caches[stream].position; left > 0; ++i) {
      const size_t count = std::min({counts[i % counts.size()], left, caches[stream].pass_room()});
      const std::vector<Rows> rows = pass({stream}, count);
      made.insert(made.end(), rows[0].begin(), rows[0].end());
      left -= count;
    }
    return made;
  }

  std::vector<KvCache> caches;

 private:
  const Fixture& f_;
  ThreadTeam team_;
  Runner runner_;
  Crew crew_;
  Decoder decoder_;
};

void expect_within(const Rows& rows, const std::vector<Numbers>& expected, const char* what) {
  SCOPED_TRACE(what);
  const size_t first = expected.size() - rows.size();
  for (size_t n = 0; n < rows.size(); ++n) {
    double most = 0, bound = 0;
    for (size_t k = 0; k < rows[n].size(); ++k) {
      const Number& want = expected[first + n][k];
      ASSERT_LE(std::abs(static_cast<double>(rows[n][k]) - want.value), kDeviations * want.deviation)
          << "row " << n << " column " << k;
      most = std::max(most, std::abs(want.value));
      bound = std::max(bound, kDeviations * want.deviation);
    }
    // A bound that let anything pass would be no test.
    ASSERT_LT(bound, most) << "row " << n;
  }
}

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

DecoderConfig shape_of(size_t key_heads, Norm norm, Rotary rotary, Mlp mlp) {
  return {.width = 40,
          .layers = 2,
          .heads = 4,
          .key_heads = key_heads,
          .head_size = 12,
          .hidden = 72,
          .norm = norm,
          .rotary = rotary,
          .mlp = mlp};
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
  c.window = test.cache == Cache::kRing ? kWindow : 0;
  c.cache = test.cache == Cache::kF32 || test.cache == Cache::kRing ? DType::kF32 : DType::kBF16;
  const Fixture f(test);
  const std::vector<std::vector<Numbers>> expected = f.expected();
  expect_twin(f, expected);
  expect_same_together(f, 1, threads);
  expect_same_together(f, 2, threads);
  if (test.cache == Cache::kPrefix) expect_prefix(f, expected);
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
