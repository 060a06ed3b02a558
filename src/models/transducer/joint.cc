#include "models/transducer/joint.h"

#include "base/check.h"
#include "nn/linear.h"

namespace syrinx::transducer {
namespace {

View<float, 2> rows_of(nn::Plane& plane, size_t begin, size_t end) {
  return {plane.f32(begin), {end - begin, plane.channels()}, {plane.stride(), 1}};
}

}  // namespace

Joint::Joint(std::shared_ptr<const DecoderWeights> weights, nn::Runner& runner, size_t frames, size_t rows)
    : weights_(std::move(weights)), runner_(runner) {
  encoded_.prepare(frames, weights_->config.joint, kernels::Storage::kF32);
  sum_.prepare(rows, weights_->config.joint, kernels::Storage::kF32);
  logits_.prepare(rows, weights_->joint_output.view.columns, kernels::Storage::kF32);
  nn::reserve_linear(runner, weights_->joint_encoder.view, frames);
  nn::reserve_linear(runner, weights_->joint_output.view, rows);
}

void Joint::encode(const nn::Part& part, View<const float, 2> frames, size_t first) {
  SYRINX_CHECK(first + frames.extent(0) <= encoded_.rows(), "{} frames from {} on, made for {}", frames.extent(0),
               first, encoded_.rows());
  nn::stream_linear_part(runner_, part, weights_->joint_encoder.view, frames, {},
                         rows_of(encoded_, first, first + frames.extent(0)));
}

void Joint::pair(size_t row, std::span<const float> a, std::span<const float> b) {
  float* const sum = sum_.f32(row);
  for (size_t k = 0; k < a.size(); ++k) {
    const float value = a[k] + b[k];
    sum[k] = value < 0.0f ? 0.0f : value;  // NaN stays
  }
}

void Joint::multiply(const nn::Part& part, size_t rows) {
  nn::stream_linear_part(runner_, part, weights_->joint_output.view, rows_of(sum_, 0, rows), {},
                         rows_of(logits_, 0, rows));
}

}  // namespace syrinx::transducer
