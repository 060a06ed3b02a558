#include "models/qwen_tts/speaker_encoder.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/check.h"
#include "kernels/activation.h"
#include "kernels/vector_math.h"
#include "nn/rows.h"

namespace syrinx::qwen_tts {
namespace {

constexpr size_t kFramesOfJob = 512, kPanelsOfMember = 4;  // where the team is shared between jobs

// Rows of a sound with room for `reach` mirrored ones at either end.
class MirroredRows {
 public:
  void prepare(size_t rows, size_t channels, size_t reach) {
    plane_.prepare(rows + 2 * reach, channels, kernels::Storage::kF32);
    rows_ = rows;
    reach_ = reach;
  }
  float* row(size_t i) { return plane_.f32(reach_ + i); }
  View<float, 2> view() { return {row(0), {rows_, plane_.channels()}, {plane_.stride(), 1}}; }
  size_t stride() const { return plane_.stride(); }
  void mirror() {
    for (size_t i = 1; i <= reach_; ++i) {
      std::copy_n(row(i), stride(), plane_.f32(reach_ - i));
      std::copy_n(row(rows_ - 1 - i), stride(), plane_.f32(reach_ + rows_ - 1 + i));
    }
  }
  kernels::ConvInput input() const {
    return {.data = plane_.f32(), .rows = rows_ + 2 * reach_, .stride = plane_.stride()};
  }
  void release() { plane_.release(); }

 private:
  nn::Plane plane_;
  size_t rows_ = 0, reach_ = 0;
};

void relu(float* row, size_t count) { kernels::leaky_relu({row, count}, 0.0f, {row, count}); }

// Mean and deviation of each column, [C] each, over all rows that `stats` describes.
void mean_and_deviation(const kernels::TileStats& stats, size_t channels, float* mean, float* deviation) {
  constexpr double kLeastVariance = 1e-12;
  const auto rows = static_cast<double>(stats.rows);
  const auto count = [&](size_t tile) {
    return static_cast<double>(std::min(stats.tile_rows(), stats.rows - tile * stats.tile_rows()));
  };
  for (size_t c = 0; c < channels; ++c) {
    double sum = 0, squares = 0;
    for (size_t t = 0; t < stats.tiles(); ++t) sum += count(t) * static_cast<double>(stats.mean(t)[c]);
    sum /= rows;
    for (size_t t = 0; t < stats.tiles(); ++t) {
      const double away = static_cast<double>(stats.mean(t)[c]) - sum;
      squares += static_cast<double>(stats.squares(t)[c]) + count(t) * away * away;
    }
    mean[c] = static_cast<float>(sum);
    if (deviation != nullptr) deviation[c] = static_cast<float>(std::sqrt(std::max(squares / rows, kLeastVariance)));
  }
}

// Columns of one panel: softmax of the scores over all rows, and the mean and deviation of x under it.
void pool_panel(View<float, 2> scores, View<const float, 2> x, size_t column, float* mean, float* deviation) {
  constexpr double kLeastVariance = 1e-12;
  constexpr size_t kColumns = kPanelColumns;
  const size_t rows = scores.extent(0);
  float most[kColumns];
  double sum[kColumns] = {}, first[kColumns] = {}, second[kColumns] = {};
  std::fill_n(most, kColumns, -std::numeric_limits<float>::infinity());
  for (size_t t = 0; t < rows; ++t)
    for (size_t n = 0; n < kColumns; ++n) most[n] = std::max(most[n], scores.row(t)[column + n]);
  for (size_t t = 0; t < rows; ++t) {
    float* const weight = scores.row(t) + column;
    for (size_t n = 0; n < kColumns; ++n) weight[n] -= most[n];
    kernels::exp_array({weight, kColumns}, {weight, kColumns});
    for (size_t n = 0; n < kColumns; ++n) {
      sum[n] += static_cast<double>(weight[n]);
      first[n] += static_cast<double>(weight[n]) * static_cast<double>(x.row(t)[column + n]);
    }
  }
  for (size_t n = 0; n < kColumns; ++n) first[n] /= sum[n];
  for (size_t t = 0; t < rows; ++t) {
    for (size_t n = 0; n < kColumns; ++n) {
      const double away = static_cast<double>(x.row(t)[column + n]) - first[n];
      second[n] += static_cast<double>(scores.row(t)[column + n]) * away * away;
    }
  }
  const size_t columns = std::min(kColumns, scores.extent(1) - column);
  for (size_t n = 0; n < columns; ++n) {
    mean[column + n] = static_cast<float>(first[n]);
    deviation[column + n] = static_cast<float>(std::sqrt(std::max(second[n] / sum[n], kLeastVariance)));
  }
}

// One recording on its way through the layers.
class Embedding {
 public:
  Embedding(const SpeakerWeights& weights, nn::Runner& runner, const SpeakerEncoder::Probe& probe, size_t rows)
      : w_(weights), runner_(runner), probe_(probe), rows_(rows) {}

  void features(std::span<const float> samples);
  void blocks();
  void aggregate();
  void pool(std::span<float> x_vector);

 private:
  void seen(const char* stage, size_t index, View<const float, 2> rows) const {
    if (probe_) probe_(stage, index, rows);
  }
  nn::Plane plane(size_t rows, size_t channels) const {
    nn::Plane made;
    made.prepare(rows, channels, kernels::Storage::kF32);
    return made;
  }
  void conv(const SpeakerConv& conv, const kernels::ConvInput& in, nn::Plane& out);
  void conv_relu(const SpeakerConv& conv, const kernels::ConvInput& in, nn::Plane& out);
  void chunks(const SpeakerBlock& block);
  void gate(const SpeakerBlock& block, size_t number);

  const SpeakerWeights& w_;
  nn::Runner& runner_;
  const SpeakerEncoder::Probe& probe_;
  const size_t rows_;            // T
  nn::Plane x_, inner_, left_;   // [T, C]
  MirroredRows mel_, chunk_in_;  // [T, mels], [T, C / scale]
  nn::Plane chunk_out_;          // [T, C / scale]
  MirroredRows side_by_side_;    // [T, M]
  nn::Plane aggregated_;         // [T, M]
  nn::PlaneStats stats_;
};

void Embedding::features(std::span<const float> samples) {
  const SpeakerFeatures& features = w_.features;
  const size_t scratch_size = features.scratch_size(), members = static_cast<size_t>(runner_.team().size());
  std::vector<float> scratch(scratch_size * members);
  mel_.prepare(rows_, features.mels(), w_.first.reach());
  const size_t at_once = runner_.cut() ? kFramesOfJob * members : rows_;
  for (size_t at = 0; at < rows_; at += at_once) {
    const size_t count = std::min(at_once, rows_ - at);
    runner_.team().run([&](int member) {
      const Range own = split_range(count, member, runner_.team().size(), SpeakerFeatures::kFramesAtOnce);
      if (own.begin == own.end) return;
      features.compute(samples, at + own.begin,
                       std::span(scratch).subspan(static_cast<size_t>(member) * scratch_size, scratch_size),
                       {mel_.row(at + own.begin), {own.end - own.begin, features.mels()}, {mel_.stride(), 1}});
    });
    runner_.between();
  }
  mel_.mirror();
  seen("mel", 0, mel_.view());
}

void Embedding::conv(const SpeakerConv& conv, const kernels::ConvInput& in, nn::Plane& out) {
  runner_.conv(conv.matrix.view, {.rows = rows_, .dilation = conv.dilation}, in,
               {.data = out.f32(), .stride = out.stride()});
}

void Embedding::conv_relu(const SpeakerConv& layer, const kernels::ConvInput& in, nn::Plane& out) {
  conv(layer, in, out);
  runner_.split(rows_, [&](size_t begin, size_t end) {
    for (size_t t = begin; t < end; ++t) relu(out.f32(t), out.stride());
  });
}

void Embedding::blocks() {
  const SpeakerEncoderConfig& c = w_.config;
  const size_t width = c.channels[0], chunk = width / c.res2net_scale;
  for (nn::Plane* each : {&x_, &inner_, &left_}) *each = plane(rows_, width);
  chunk_out_ = plane(rows_, chunk);
  side_by_side_.prepare(rows_, c.channels.back(), w_.aggregate.reach());
  conv_relu(w_.first, mel_.input(), x_);
  mel_.release();
  seen("block", 0, nn::rows_of(x_, rows_));
  const auto input = [&](const nn::Plane& from) {
    return kernels::ConvInput{.data = from.f32(), .rows = rows_, .stride = from.stride()};
  };
  for (size_t i = 0; i < w_.blocks.size(); ++i) {
    const SpeakerBlock& block = w_.blocks[i];
    conv_relu(block.enter, input(x_), inner_);
    chunks(block);
    conv_relu(block.leave, input(inner_), left_);
    gate(block, i);
    seen("block", i + 1, nn::rows_of(x_, rows_));
  }
}

// The first chunk of inner_ stays; each other one is convolved together with what came out of the one before.
void Embedding::chunks(const SpeakerBlock& block) {
  const size_t width = chunk_out_.channels();
  chunk_in_.prepare(rows_, width, block.chunks.front().reach());
  for (size_t i = 0; i < block.chunks.size(); ++i) {
    runner_.split(rows_, [&](size_t begin, size_t end) {
      for (size_t t = begin; t < end; ++t) {
        const float* const own = inner_.f32(t) + (i + 1) * width;
        float* const to = chunk_in_.row(t);
        for (size_t n = 0; n < width; ++n) to[n] = i == 0 ? own[n] : own[n] + chunk_out_.f32(t)[n];
      }
    });
    chunk_in_.mirror();
    conv(block.chunks[i], chunk_in_.input(), chunk_out_);
    runner_.split(rows_, [&](size_t begin, size_t end) {
      for (size_t t = begin; t < end; ++t) {
        relu(chunk_out_.f32(t), chunk_out_.stride());
        std::copy_n(chunk_out_.f32(t), width, inner_.f32(t) + (i + 1) * width);
      }
    });
  }
}

// x += gate * left, whose gate comes from left's mean; the sums stand side by side as well.
void Embedding::gate(const SpeakerBlock& block, size_t number) {
  const size_t width = x_.channels();
  nn::Plane mean = plane(1, width), squeezed = plane(1, w_.config.se_channels), gates = plane(1, width);
  runner_.stats(left_, stats_);
  mean_and_deviation(stats_.tiles(), width, mean.f32(), nullptr);
  runner_.linear(block.squeeze.view, mean.view(), squeezed.view());
  relu(squeezed.f32(), squeezed.stride());
  runner_.linear(block.excite.view, squeezed.view(), gates.view());
  kernels::sigmoid_array({gates.f32(), width}, {gates.f32(), width});
  runner_.split(rows_, [&](size_t begin, size_t end) {
    for (size_t t = begin; t < end; ++t) {
      float* const x = x_.f32(t);
      const float* const left = left_.f32(t);
      for (size_t n = 0; n < width; ++n) x[n] += left[n] * gates.f32()[n];
      std::copy_n(x, width, side_by_side_.row(t) + number * width);
    }
  });
}

void Embedding::aggregate() {
  for (nn::Plane* each : {&x_, &inner_, &left_, &chunk_out_}) each->release();
  chunk_in_.release();
  side_by_side_.mirror();
  aggregated_ = plane(rows_, w_.config.channels.back());
  conv_relu(w_.aggregate, side_by_side_.input(), aggregated_);
  seen("mfa", 0, aggregated_.view());
}

// The attention reads each row beside the mean and deviation of all rows.  These are the same in every row, so their
// part of the product is made once and added to each.
void Embedding::pool(std::span<float> x_vector) {
  const size_t all = w_.config.channels.back(), members = static_cast<size_t>(runner_.team().size());
  nn::Plane statistics = plane(1, 2 * all), of_statistics = plane(1, w_.config.attention_channels);
  runner_.stats(aggregated_, stats_);
  mean_and_deviation(stats_.tiles(), all, statistics.f32(), statistics.f32() + all);
  runner_.linear(w_.attention_of_statistics.view, statistics.view(), of_statistics.view());
  nn::Plane attention = plane(rows_, w_.config.attention_channels);
  runner_.conv(w_.attention.view, {.rows = rows_},
               {.data = aggregated_.f32(), .rows = rows_, .stride = aggregated_.stride()},
               {.data = attention.f32(), .stride = attention.stride(), .addend = of_statistics.f32()});
  runner_.split(rows_, [&](size_t begin, size_t end) {
    for (size_t t = begin; t < end; ++t) {
      relu(attention.f32(t), attention.stride());
      kernels::tanh_array({attention.f32(t), attention.stride()}, {attention.f32(t), attention.stride()});
    }
  });
  side_by_side_.prepare(rows_, all, 0);
  const View<float, 2> scores = side_by_side_.view();
  runner_.linear(w_.scores.view, attention.view(), scores);
  nn::Plane& pooled = statistics;
  const size_t panels = round_up(all, kPanelColumns) / kPanelColumns;
  const size_t at_once = runner_.cut() ? kPanelsOfMember * members : panels;
  for (size_t at = 0; at < panels; at += at_once) {
    runner_.split(std::min(at_once, panels - at), [&](size_t begin, size_t end) {
      for (size_t p = at + begin; p < at + end; ++p)
        pool_panel(scores, aggregated_.view(), p * kPanelColumns, pooled.f32(), pooled.f32() + all);
    });
  }
  seen("asp", 0, pooled.view());
  nn::Plane out = plane(1, x_vector.size());
  runner_.linear(w_.out.view, pooled.view(), out.view());
  std::copy_n(out.f32(), x_vector.size(), x_vector.data());
}

}  // namespace

size_t SpeakerEncoder::least_samples() const {
  size_t reach = std::max(w_->first.reach(), w_->aggregate.reach());
  for (const SpeakerBlock& block : w_->blocks) reach = std::max(reach, block.chunks.front().reach());
  return std::max(SpeakerFeatures::kLeastSamples, (reach + 1) * SpeakerFeatures::kHopSamples);
}

Status SpeakerEncoder::embed(std::span<const float> samples, std::span<float> x_vector) {
  SYRINX_CHECK(x_vector.size() == width(), "an x-vector of {} numbers, not {}", x_vector.size(), width());
  if (samples.size() < least_samples())
    return fail(Code::kInvalidArgument, "a recording of {} samples is too short for the speaker encoder, {} are needed",
                samples.size(), least_samples());
  if (samples.size() > kMaxSamples)
    return fail(Code::kLimitExceeded,
                "a recording of {} samples is too long for the speaker encoder, at most {} are taken; use 3 to 15 s",
                samples.size(), kMaxSamples);
  Embedding embedding(*w_, runner_, probe_, SpeakerFeatures::frame_count(samples.size()));
  embedding.features(samples);
  embedding.blocks();
  embedding.aggregate();
  embedding.pool(x_vector);
  if (std::all_of(x_vector.begin(), x_vector.end(), [](float value) { return std::isfinite(value); })) return {};
  return fail(Code::kDataLoss, "the speaker encoder makes numbers that are not finite; its weights are damaged");
}

}  // namespace syrinx::qwen_tts
