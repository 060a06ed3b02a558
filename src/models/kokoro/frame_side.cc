#include "models/kokoro/frame_side.h"

#include <cstring>

namespace syrinx::kokoro {

using kernels::Storage;

void FrameSide::prosody(const nn::Plane& encoded, std::span<const int32_t> token_of_frame, StyleNorm& style) {
  const size_t frames = token_of_frame.size(), hidden = w_.config.hidden;
  gates_.prepare(encoded.rows(), 4 * hidden, Storage::kF32);
  shared_.prepare(frames, hidden, Storage::kF32);
  nn::lstm(runner_, w_.shared, encoded.view(), token_of_frame, gates_.view(), shared_.view());
  branch(w_.f0, w_.f0_proj, style, f0_);
  branch(w_.energy, w_.energy_proj, style, energy_);
}

void FrameSide::release() {
  for (nn::Plane* plane :
       {&gates_, &shared_, &branch_a_, &branch_b_, &energy_, &asr_, &asr_res_, &contours_, &in_, &next_})
    plane->release();
  blocks_.release();
}

void FrameSide::branch(const std::array<ResBlock, 3>& blocks, const PackedMatrix& projection, StyleNorm& style,
                       nn::Plane& out) {
  const size_t frames = shared_.rows();
  branch_a_.prepare(frames, blocks[0].out, Storage::kF32);
  blocks_.run(blocks[0], style, shared_, branch_a_);
  branch_b_.prepare(2 * frames, blocks[1].out, Storage::kF32);
  blocks_.run(blocks[1], style, branch_a_, branch_b_);
  branch_a_.prepare(2 * frames, blocks[2].out, Storage::kF32);
  blocks_.run(blocks[2], style, branch_b_, branch_a_);
  out.prepare(2 * frames, 1, Storage::kF32);
  runner_.conv(projection, {.rows = 2 * frames},
               {.data = branch_a_.row(0), .rows = 2 * frames, .stride = branch_a_.stride()},
               {.data = out.row(0), .stride = out.stride()});
}

namespace {

// A convolution 1 -> 1, kernel 3, stride 2, pad 1: from 80 to 40 Hz.  weights: three taps, then the bias.
float halve(const nn::Plane& contour, const float* weights, size_t frame) {
  float sum = weights[3];
  for (size_t t = 0; t < 3; ++t) {
    const ptrdiff_t i = static_cast<ptrdiff_t>(2 * frame + t) - 1;
    if (i >= 0 && i < static_cast<ptrdiff_t>(contour.rows())) sum += weights[t] * *contour.f32(static_cast<size_t>(i));
  }
  return sum;
}

}  // namespace

// [asr residual, F0', N'] behind the features of a decoder block, and zeros to the end of the row.
void FrameSide::write_tail(nn::Plane& plane, size_t column) {
  const size_t res = w_.config.asr_res;
  for (size_t t = 0; t < plane.rows(); ++t) {
    float* const row = plane.f32(t);
    std::memcpy(row + column, asr_res_.f32(t), res * sizeof(float));
    row[column + res] = contours_.f32(t)[0];
    row[column + res + 1] = contours_.f32(t)[1];
    std::fill(row + column + res + 2, row + plane.stride(), 0.0f);
  }
}

void FrameSide::decode(const nn::Plane& text, std::span<const int32_t> token_of_frame, StyleNorm& style) {
  const Config& c = w_.config;
  const size_t frames = token_of_frame.size(), wide = c.decoder + c.asr_res + 2;
  asr_.prepare(frames, c.hidden, Storage::kF32);
  contours_.prepare(frames, 2, Storage::kF32);
  in_.prepare(frames, c.hidden + 2, Storage::kF32);
  for (size_t t = 0; t < frames; ++t) {
    std::memcpy(asr_.f32(t), text.f32(static_cast<size_t>(token_of_frame[t])), asr_.stride() * sizeof(float));
    contours_.f32(t)[0] = halve(f0_, w_.f0_conv, t);
    contours_.f32(t)[1] = halve(energy_, w_.energy_conv, t);
    float* const row = in_.f32(t);
    std::fill(row, row + in_.stride(), 0.0f);
    std::memcpy(row, asr_.f32(t), c.hidden * sizeof(float));
    row[c.hidden] = contours_.f32(t)[0];
    row[c.hidden + 1] = contours_.f32(t)[1];
  }
  asr_res_.prepare(frames, c.asr_res, Storage::kF32);
  runner_.linear(w_.asr_res, asr_.view(), asr_res_.view());

  next_.prepare(frames, wide, Storage::kF32);
  blocks_.run(w_.encode, style, in_, next_);
  write_tail(next_, c.decoder);
  in_.prepare(frames, wide, Storage::kF32);
  for (size_t i = 0; i < 3; ++i) {
    blocks_.run(w_.decode[i], style, next_, in_);
    write_tail(in_, c.decoder);
    std::swap(in_, next_);
  }
  output_.prepare(2 * frames, c.generator, Storage::kF32);
  blocks_.run(w_.decode[3], style, next_, output_);
}

}  // namespace syrinx::kokoro
