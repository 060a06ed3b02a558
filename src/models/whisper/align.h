// Words to times by cross-attention and dynamic time warping (spec whisper.md, section 5; openai/whisper, timing.py).
// Pure functions; thread-safe.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace syrinx::whisper {

// Median of each run of `width` values (odd), the row being reflected at its ends without repeating them.  A row of at
// most width / 2 values stays as it is.
void median_filter(std::span<const float> in, size_t width, std::span<float> out);

// How well each token fits each position, [tokens, positions]: attention [heads, tokens, all_positions], cut to the
// first `positions` and made to sum to 1 there again, is standardised over the tokens, median-filtered over 7
// positions and averaged over the heads.  `between` is called every few milliseconds; empty: never.
std::vector<float> alignment_matrix(std::span<const float> attention, size_t heads, size_t tokens, size_t all_positions,
                                    size_t positions, const std::function<void()>& between = {});

struct PathStep {
  size_t row = 0, column = 0;
  bool operator==(const PathStep&) const = default;
};

// The cheapest way through cost [rows, columns] from the first corner to the last one by steps down, right or both at
// once.  Costs are summed in f32 column by column, and ties go right, as the maker's do.
std::vector<PathStep> warp(std::span<const float> cost, size_t rows, size_t columns);

// For each row the column where the way enters it, [rows].
std::vector<size_t> entries(std::span<const PathStep> path, size_t rows);

}  // namespace syrinx::whisper
