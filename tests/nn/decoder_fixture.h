// Random decoders, as a checkpoint has them and packed, their streams, and passes over them.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>
#include <string>

#include "decoder_twin.h"
#include "kernels/pack_rows.h"
#include "nn/decoder.h"
#include "nn/rows.h"
#include "tensor/precision.h"

namespace syrinx::nn {

inline constexpr size_t kPositions = 13, kCrossPositions = 6, kWindow = 5, kRing = 8;
inline constexpr size_t kLengths[] = {kPositions, 9, 5};  // of the streams

enum class Cache { kF32, kBf16, kRing, kPrefix, kInt8, kInt8Ring, kInt8Prefix };
enum class Extra { kNone, kHeadNorm, kScaleAndGain, kCross };
inline constexpr size_t kExtras = 4;

struct Case {
  DecoderConfig shape;
  Precision precision = Precision::kF32;
  Cache cache = Cache::kF32;
  bool half_split = false;
};

// Random weights of a shape, as a checkpoint has them, packed as the decoder reads them.
class Maker {
 public:
  explicit Maker(const Case& test, uint32_t seed = 11) : case_(test), c_(test.shape), random_(seed) {
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
  // The tensors of the checkpoint, by names as in checkpoint_names(): queries, keys, values, gate and up apart.
  struct Tensor {
    std::vector<size_t> dims;
    std::vector<float> values;
  };
  std::map<std::string, Tensor, std::less<>> tensors;

 private:
  PanelType row_panels() const { return case_.precision == Precision::kF32 ? PanelType::kF32 : PanelType::kBf16; }
  void keep(const std::string& name, const std::vector<size_t>& dims, std::span<const float> values) {
    tensors["layers." + std::to_string(weights.layers.size()) + "." + name] = {dims, {values.begin(), values.end()}};
  }
  void keep_linear(const std::string& name, size_t columns, size_t channels, std::span<const float> rows,
                   std::span<const float> bias) {
    keep(name + ".weight", {columns, channels}, rows);
    if (!bias.empty()) keep(name + ".bias", {columns}, bias);
  }
  kernels::OwnedMatrix pack(std::span<const float> rows, std::span<const float> bias, size_t channels,
                            bool feed_forward) {
    const bool int4 = case_.precision == Precision::kInt4 && feed_forward;
    const kernels::StoredRows stored{.bytes = std::as_bytes(rows), .columns = rows.size() / channels};
    return kernels::pack_rows(c_.products != Products::kLinear ? row_panels()
                              : int4                           ? PanelType::kInt4
                                                               : panel_type(case_.precision),
                              channels, {&stored, 1}, bias, team_);
  }
  kernels::OwnedMatrix matrix(const std::string& name, size_t channels, size_t columns, bool feed_forward = false) {
    const std::vector<float> rows = values(columns * channels, 1.0f / std::sqrt(static_cast<float>(channels)));
    const std::vector<float> bias = values(columns, 0.1f);
    keep_linear(name, columns, channels, rows, bias);
    return pack(rows, bias, channels, feed_forward);
  }
  NormWeights norm(const std::string& name) {
    NormWeights made{values(c_.width, 0.2f, 1.0f),
                     c_.norm == Norm::kLayer ? values(c_.width, 0.1f) : std::vector<float>()};
    keep(name + ".weight", {c_.width}, made.gamma);
    if (!made.beta.empty()) keep(name + ".bias", {c_.width}, made.beta);
    return made;
  }
  kernels::OwnedMatrix query_key_value() {
    const size_t reordered = c_.query_width() + c_.key_width(), columns = reordered + c_.key_width();
    std::vector<float> rows = values(columns * c_.width, 1.0f / std::sqrt(static_cast<float>(c_.width)));
    std::vector<float> bias = values(columns, 0.1f);
    const size_t first[] = {0, c_.query_width(), reordered, columns};
    const char* const names[] = {"q_proj", "k_proj", "v_proj"};
    for (size_t i = 0; i < 3; ++i) {
      const size_t count = first[i + 1] - first[i];
      keep_linear(names[i], count, c_.width, std::span(rows).subspan(first[i] * c_.width, count * c_.width),
                  std::span(bias).subspan(first[i], count));
    }
    if (case_.half_split) {
      interleave_halves(std::span(rows).first(reordered * c_.width), c_.head_size, c_.width);
      interleave_halves(std::span(bias).first(reordered), c_.head_size, 1);
    }
    return pack(rows, bias, c_.width, false);
  }
  kernels::OwnedMatrix up() {
    if (c_.mlp != Mlp::kSwiGlu) return matrix("up", c_.width, c_.hidden, true);
    const float scale = 1.0f / std::sqrt(static_cast<float>(c_.width));
    const std::vector<float> gate = values(c_.hidden * c_.width, scale), value = values(c_.hidden * c_.width, scale);
    keep_linear("gate", c_.hidden, c_.width, gate, {});
    keep_linear("up", c_.hidden, c_.width, value, {});
    const std::vector<float> rows = interleave_panels(gate, value, c_.width);
    return pack(rows, {}, c_.width, true);
  }
  DecoderBlock block() {
    DecoderBlock made{.before = norm("before"),
                      .after = norm("after"),
                      .in = query_key_value(),
                      .out = matrix("out", c_.query_width(), c_.width),
                      .up = up(),
                      .down = matrix("down", c_.hidden, c_.width, true)};
    if (c_.head_norm) {
      for (auto* gamma : {&made.query_norm, &made.key_norm}) {
        *gamma = values(c_.head_size, 0.2f, 1.0f);
        keep(gamma == &made.query_norm ? "q_norm" : "k_norm", {c_.head_size}, *gamma);
        if (case_.half_split) interleave_halves(*gamma, c_.head_size, 1);
      }
    }
    if (c_.layer_scale) {
      made.attention_scale = values(c_.width, 0.2f, 0.8f);
      made.mlp_scale = values(c_.width, 0.2f, 0.8f);
      keep("attention_scale", {c_.width}, made.attention_scale);
      keep("mlp_scale", {c_.width}, made.mlp_scale);
      for (auto* scale : {&made.attention_scale, &made.mlp_scale}) scale->resize(round_up(c_.width, kPanelColumns));
    }
    if (c_.cross)
      made.cross.emplace(CrossBlock{.norm = norm("cross"),
                                    .query = matrix("cross_query", c_.width, c_.query_width()),
                                    .key_value = matrix("cross_key_value", c_.width, 2 * c_.query_width()),
                                    .out = matrix("cross_out", c_.query_width(), c_.width)});
    return made;
  }

  const Case& case_;
  const DecoderConfig& c_;
  ThreadTeam team_{1};
  std::mt19937 random_;
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
    const bool ring = test_case.cache == Cache::kRing || test_case.cache == Cache::kInt8Ring;
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
    const size_t kept = wanted == Decoder::Output::kLastRows ? 1 : count;
    const View<const float, 2> out = decoder_.output(streams.size() * kept);
    std::vector<Rows> made(streams.size());
    for (size_t n = 0; n < out.extent(0); ++n) made[n / kept].emplace_back(out.row(n), out.row(n) + f_.shape.width);
    return made;
  }
  void run(std::span<const Decoder::Rows> work, Decoder::Output wanted) {
    decoder_.begin(weights == nullptr ? f_.maker.weights : *weights, work, wanted);
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
  const DecoderWeights* weights = nullptr;  // of the passes; null: the fixture's

 private:
  const Fixture& f_;
  ThreadTeam team_;
  Runner runner_;
  Crew crew_;
  Decoder decoder_;
};

inline void expect_within(const Rows& rows, const std::vector<Numbers>& expected, const char* what) {
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

inline DecoderConfig shape_of(size_t key_heads, Norm norm, Rotary rotary, Mlp mlp) {
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

}  // namespace syrinx::nn
