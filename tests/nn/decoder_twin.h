// A slow plain twin of nn/decoder.h: one stream from its first position on, a number at a time, in double, in the order
// of the checkpoint.  Each number carries the standard deviation of what a float implementation adds to it by rounding,
// taken as independent and each of a whole epsilon, more than three times what it is; a test accepts kDeviations of it
// (Higham and Mary, "A new approach to probabilistic rounding error analysis", 2019; bounds of the worst case grow by
// two digits a layer).
//
// Where the product narrows its activations or a cache its rows, the twin narrows too; a number so near to the border
// between two steps that rounding may carry it over is a step uncertain.
#pragma once

#include <cstddef>
#include <vector>

#include "nn/cross_cache.h"
#include "nn/decoder_weights.h"

namespace syrinx::nn {

inline constexpr double kDeviations = 8;

struct Number {
  double value = 0, deviation = 0;
};
using Numbers = std::vector<Number>;

struct TwinInput {
  const DecoderWeights* weights = nullptr;
  const DecoderWeights* second = nullptr;    // of every other position, if there is one
  bool half_split = false;                   // the checkpoint turns (i, i + K / 2), and the weights were reordered
  const CrossCache* cross = nullptr;         // with DecoderConfig::cross
  const std::vector<float>* gain = nullptr;  // [layers, D], with stream_gain
};

// x [positions, D] -> what the last layer gives, the same.
std::vector<Numbers> decoder_twin(const TwinInput& input, const std::vector<std::vector<float>>& x);

// Weight of output column n and input channel k of a matrix of one tap, from its panels.
double weight_at(const PackedMatrix& matrix, size_t n, size_t k);

}  // namespace syrinx::nn
