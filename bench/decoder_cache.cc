// Times a step of one stream of a decoder (nn/decoder.h) with random weights in int8, by the positions in its cache,
// the cache's type and the length of the parts in which it is attended to.
//
//   decoder_cache [THREADS [KEY_HEADS [LAYERS]]]
//
// The shape is that of Qwen3 0.6B but for its layers and key heads.  Times are medians of kSteps steps.  A run takes
// half a minute.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "base/rng.h"
#include "kernels/pack_rows.h"
#include "nn/decoder.h"
#include "tensor/dtype.h"

namespace {

using namespace syrinx;

constexpr size_t kSteps = 41, kPositionCounts[] = {64, 1024, 4096, 8000}, kSegments[] = {0, 256, 512, 1024};

std::vector<float> random_values(size_t count, float scale, uint64_t stream) {
  std::vector<float> values(count);
  Rng(1, stream).fill_normal(values);
  for (float& value : values) value *= scale;
  return values;
}

kernels::OwnedMatrix matrix(size_t channels, size_t columns, ThreadTeam& team) {
  const std::vector<float> rows =
      random_values(columns * channels, 1.0f / std::sqrt(static_cast<float>(channels)), channels + columns);
  const kernels::StoredRows stored{.bytes = std::as_bytes(std::span(rows)), .columns = columns};
  return kernels::pack_rows(PanelType::kInt8Symmetric, channels, {&stored, 1}, {}, team);
}

nn::DecoderWeights make_weights(size_t key_heads, size_t layers, ThreadTeam& team) {
  nn::DecoderWeights weights;
  nn::DecoderConfig& c = weights.shape;
  c = {.width = 1024, .layers = layers, .heads = 16, .key_heads = key_heads, .head_size = 128, .hidden = 3072};
  c.norm = nn::Norm::kRms;
  c.mlp = nn::Mlp::kSwiGlu;
  for (size_t i = 0; i < layers; ++i) {
    nn::DecoderBlock block;
    block.before = block.after = {std::vector<float>(c.width, 1.0f), {}};
    block.in = matrix(c.width, c.query_width() + 2 * c.key_width(), team);
    block.out = matrix(c.query_width(), c.width, team);
    block.up = matrix(c.width, 2 * c.hidden, team);
    block.down = matrix(c.hidden, c.width, team);
    weights.layers.push_back(std::move(block));
  }
  weights.set_frequencies();
  return weights;
}

nn::KvCache filled(const nn::DecoderConfig& c, size_t positions) {
  auto cache = nn::KvCache::make({.type = c.cache,
                                  .layers = c.layers,
                                  .key_heads = c.key_heads,
                                  .head_size = c.head_size,
                                  .capacity = positions + 1});
  const std::vector<float> rows = random_values(positions * c.head_size, 1.0f, 7);
  const View<const float, 2> view(rows.data(), {positions, c.head_size});
  for (size_t i = 0; i < c.layers; ++i)
    for (size_t head = 0; head < c.key_heads; ++head) cache->append(i, head, view, view);
  cache->position = positions;
  return std::move(*cache);
}

double step_ms(const nn::DecoderWeights& weights, ThreadTeam& team, size_t positions) {
  nn::Runner runner(team);
  nn::Crew crew(team);
  nn::Decoder decoder(weights, runner, {.rows = 1});
  nn::KvCache cache = filled(weights.shape, positions);
  const std::vector<float> row = random_values(weights.shape.width, 1.0f, 3);
  std::vector<double> times;
  for (size_t i = 0; i < kSteps; ++i) {
    std::copy(row.begin(), row.end(), decoder.input(1).data());
    const auto from = std::chrono::steady_clock::now();
    const nn::Decoder::Rows stream{.cache = &cache};
    decoder.begin(weights, {&stream, 1}, nn::Decoder::Output::kRows);
    team.run([&](int member) {
      nn::Crew::Seat seat = crew.everyone(member);
      decoder.work(seat);
    });
    decoder.end();
    times.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - from).count());
    cache.truncate(positions);
  }
  std::sort(times.begin(), times.end());
  return times[kSteps / 2];
}

}  // namespace

int main(int argc, char** argv) {
  const auto argument = [&](int i, int otherwise) { return argc > i ? std::atoi(argv[i]) : otherwise; };
  const int threads = argument(1, 2), key_heads = argument(2, 8), layers = argument(3, 2);
  if (threads < 1 || layers < 1 || key_heads < 1 || 16 % key_heads != 0) {
    std::fprintf(stderr, "decoder_cache [THREADS [KEY_HEADS [LAYERS]]]; 16 query heads are shared evenly\n");
    return 1;
  }
  ThreadTeam team(threads);
  nn::DecoderWeights weights = make_weights(static_cast<size_t>(key_heads), static_cast<size_t>(layers), team);
  std::printf("%d threads, 16 query heads on %d key heads of 128, %d layers; ms a step\n", threads, key_heads, layers);
  std::printf("%-6s %10s", "cache", "positions");
  for (const size_t segment : kSegments) std::printf("   parts %5zu", segment);
  std::printf("\n");
  for (const DType type : {DType::kF32, DType::kBF16, DType::kI8}) {
    for (const size_t positions : kPositionCounts) {
      std::printf("%-6s %10zu", dtype_name(type), positions);
      for (const size_t segment : kSegments) {
        weights.shape.cache = type;
        weights.shape.segment = segment;
        std::printf(" %13.3f", step_ms(weights, team, positions));
      }
      std::printf("\n");
    }
  }
  return 0;
}
