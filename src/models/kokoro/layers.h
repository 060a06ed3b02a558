// Layers shared by Kokoro's stages: style norms, and the residual block of its decoder (specification 4.1).
#pragma once

#include <span>
#include <vector>

#include "models/kokoro/weights.h"
#include "nn/runner.h"

namespace syrinx::kokoro {

// The half of a style row that a stage listens to, and the gamma and beta that norms make of it.
class StyleNorm {
 public:
  void set(std::span<const float> style);
  // [2C]: gamma, then beta; valid until the next call.  Weights may be int8: the style then goes through in two parts,
  // its 8 leading bits and what they leave, which keeps the product accurate to 16 bits.
  const float* gamma_beta(const PackedMatrix& fc);
  // Coefficients of AdaIN over a plane, padded to 32; valid until the next call.
  void coefficients(const PackedMatrix& fc, const kernels::TileStats& stats, size_t channels);
  const float* scale() const { return scale_.data(); }
  const float* shift() const { return shift_.data(); }

 private:
  std::vector<float> style_, leading_, rest_, gamma_beta_, scale_, shift_;
  std::vector<std::byte> scratch_;
};

// AdainResBlk1d: out = (conv2(act(adain(conv1(act(adain(x)))))) + shortcut(x)) / sqrt(2), twice the rows when it
// upsamples.
class ResBlockRunner {
 public:
  explicit ResBlockRunner(nn::Runner& runner) : runner_(runner) {}
  // `out` is prepared by the caller: rows x 1 or 2, at least `block.out` channels wide, other storage columns untouched
  // beyond whole panels.
  void run(const ResBlock& block, StyleNorm& style, const nn::Plane& x, nn::Plane& out);
  void release();  // gives the scratch back

 private:
  const nn::Plane& upsampled(const ResBlock& block, StyleNorm& style, const nn::Plane& x);
  const nn::Plane* shortcut(const ResBlock& block, const nn::Plane& x);

  nn::Runner& runner_;
  nn::Plane activated_, upsampled_, hidden_, shortcut_, repeated_;
  nn::PlaneStats stats_, hidden_stats_;
};

}  // namespace syrinx::kokoro
