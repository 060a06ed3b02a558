#include "models/whisper/align.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "base/check.h"

namespace syrinx::whisper {
namespace {

constexpr size_t kFilterWidth = 7;
constexpr size_t kTokensAtOnce = 32;  // of a head

// Over the rows of one head: (x - mean) / deviation for each position.
void standardise(std::span<float> weights, size_t tokens, size_t positions) {
  for (size_t p = 0; p < positions; ++p) {
    double sum = 0, squares = 0;
    for (size_t t = 0; t < tokens; ++t) sum += weights[t * positions + p];
    const double mean = sum / static_cast<double>(tokens);
    for (size_t t = 0; t < tokens; ++t) {
      const double off = weights[t * positions + p] - mean;
      squares += off * off;
    }
    const double deviation = std::sqrt(squares / static_cast<double>(tokens));
    for (size_t t = 0; t < tokens; ++t) {
      float& w = weights[t * positions + p];
      // All equal: nothing tells the tokens apart here.
      w = deviation > 0 ? static_cast<float>((w - mean) / deviation) : 0.0f;
    }
  }
}

}  // namespace

void median_filter(std::span<const float> in, size_t width, std::span<float> out) {
  SYRINX_CHECK(width % 2 == 1 && width <= 15 && in.size() == out.size());
  const size_t half = width / 2;
  if (in.size() <= half) {
    std::ranges::copy(in, out.begin());
    return;
  }
  const auto size = static_cast<ptrdiff_t>(in.size());
  float window[15];
  for (ptrdiff_t i = 0; i < size; ++i) {
    for (size_t k = 0; k < width; ++k) {
      ptrdiff_t from = i + static_cast<ptrdiff_t>(k) - static_cast<ptrdiff_t>(half);
      if (from < 0) from = -from;
      if (from >= size) from = 2 * (size - 1) - from;
      window[k] = in[static_cast<size_t>(from)];
    }
    std::nth_element(window, window + half, window + width);
    out[static_cast<size_t>(i)] = window[half];
  }
}

std::vector<float> alignment_matrix(std::span<const float> attention, size_t heads, size_t tokens, size_t all_positions,
                                    size_t positions, const std::function<void()>& between) {
  SYRINX_CHECK(heads > 0 && positions <= all_positions && attention.size() == heads * tokens * all_positions);
  std::vector<float> matrix(tokens * positions), weights(tokens * positions), filtered(positions);
  for (size_t h = 0; h < heads; ++h) {
    for (size_t t = 0; t < tokens; ++t) {
      const std::span<const float> row = attention.subspan((h * tokens + t) * all_positions, positions);
      double sum = 0;
      for (const float w : row) sum += w;
      for (size_t p = 0; p < positions; ++p)
        weights[t * positions + p] = sum > 0 ? static_cast<float>(row[p] / sum) : 0.0f;
    }
    if (between) between();
    standardise(weights, tokens, positions);
    for (size_t t = 0; t < tokens; ++t) {
      if (between && t % kTokensAtOnce == 0) between();
      median_filter(std::span(weights).subspan(t * positions, positions), kFilterWidth, filtered);
      for (size_t p = 0; p < positions; ++p) matrix[t * positions + p] += filtered[p] / static_cast<float>(heads);
    }
  }
  return matrix;
}

std::vector<PathStep> warp(std::span<const float> cost, size_t rows, size_t columns) {
  SYRINX_CHECK(rows > 0 && columns > 0 && cost.size() == rows * columns);
  enum Move : uint8_t { kBoth, kDown, kRight };
  const float far = std::numeric_limits<float>::infinity();
  std::vector<float> before(rows + 1, far), now(rows + 1, far);  // columns of the sums so far
  before[0] = 0;
  std::vector<Move> moves(rows * columns);
  for (size_t c = 0; c < columns; ++c) {
    now[0] = far;
    for (size_t r = 0; r < rows; ++r) {
      const float both = before[r], down = now[r], right = before[r + 1];
      const Move move = both < down && both < right ? kBoth : down < both && down < right ? kDown : kRight;
      moves[r * columns + c] = move;
      now[r + 1] = cost[r * columns + c] + (move == kBoth ? both : move == kDown ? down : right);
    }
    std::swap(before, now);
  }
  std::vector<PathStep> path;
  for (size_t r = rows - 1, c = columns - 1;;) {
    path.push_back({r, c});
    if (r == 0 && c == 0) break;
    const Move move = r == 0 ? kRight : c == 0 ? kDown : moves[r * columns + c];
    if (move != kRight) --r;
    if (move != kDown) --c;
  }
  std::ranges::reverse(path);
  return path;
}

std::vector<size_t> entries(std::span<const PathStep> path, size_t rows) {
  std::vector<size_t> columns;
  for (size_t i = 0; i < path.size(); ++i)
    if (i == 0 || path[i].row != path[i - 1].row) columns.push_back(path[i].column);
  SYRINX_CHECK(columns.size() == rows);
  return columns;
}

}  // namespace syrinx::whisper
