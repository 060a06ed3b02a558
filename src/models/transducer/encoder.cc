#include "models/transducer/encoder.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "kernels/depthwise_rows.h"
#include "kernels/layer_norm.h"
#include "kernels/narrow_gemm.h"
#include "kernels/relative_head.h"
#include "kernels/row_conv.h"

namespace syrinx::transducer {
namespace {

// Frames of features that the subsampling takes at once: its planes then stay in the second-level cache.
constexpr size_t kPiece = 128;
constexpr float kEpsilon = 1e-5f;
// Multiplications of a job where others may have the team between jobs: a few milliseconds of two threads.
constexpr size_t kJobProducts = 600'000'000, kJobProductsF32 = 200'000'000;
// Half a tile: with fewer, reading the weights again weighs more.
constexpr size_t kLeastRowsAMember = 42;

// Narrow weights come with bf16 in attention, where that is faster.
DType attention_type(const EncoderWeights& weights) {
  const bool narrow = kernels::is_narrow(weights.layers.front().qkv.view.type);
  return narrow && kernels::bf16_rows_are_faster() ? DType::kBF16 : DType::kF32;
}

}  // namespace

std::vector<kernels::KeyRange> visible_keys(size_t frames, ContextStyle style, AttentionContext context) {
  std::vector<kernels::KeyRange> out;
  visible_keys(frames, style, context, out);
  return out;
}

void visible_keys(size_t frames, ContextStyle style, AttentionContext context, std::vector<kernels::KeyRange>& out) {
  out.resize(frames);
  const bool chunked = style == ContextStyle::kChunkedLimited && context.right >= 0;
  for (size_t i = 0; i < frames; ++i) {
    size_t begin = i, end = i;
    if (context.chunk > 0) {
      const auto chunk = static_cast<size_t>(context.chunk);
      begin = i / chunk * chunk;
      end = begin + chunk - 1 + static_cast<size_t>(std::max<ptrdiff_t>(context.right, 0));
    } else if (chunked) {
      const size_t chunk = static_cast<size_t>(context.right) + 1;
      begin = end = i / chunk * chunk;
      end += chunk - 1;
    } else if (context.right >= 0) {
      end = i + static_cast<size_t>(context.right);
    } else {
      end = frames - 1;
    }
    begin = context.left < 0 ? 0 : begin - std::min(begin, static_cast<size_t>(context.left));
    out[i] = {static_cast<uint32_t>(begin), static_cast<uint32_t>(std::min(end + 1, frames))};
  }
}

Encoder::Encoder(const std::shared_ptr<const EncoderWeights>& weights, nn::Runner& runner)
    : EncoderLayers(weights, runner, false),
      tiles_(weights, runner),
      subsampler_(*weights, runner, 1, kPiece, false),
      subsampling_(weights->config, kPiece),
      prompt_(weights->config.prompt.fallback),
      attention_type_(attention_type(*weights)) {}

void Encoder::set_prompt(size_t row) {
  SYRINX_CHECK(row < config().prompt.count, "prompt {} of {}", row, config().prompt.count);
  prompt_ = row;
}

void Encoder::make_room(size_t frames, AttentionContext context) {
  prepare(frames);
  visible_keys(frames, config().style, context, sees_);
  size_t ahead = 0, behind = 0;  // offsets, query minus key
  for (size_t i = 0; i < frames; ++i) {
    ahead = std::max<size_t>(ahead, i - std::min<size_t>(i, sees_[i].begin));
    behind = std::max<size_t>(behind, sees_[i].end - 1 - std::min<size_t>(i, sees_[i].end - 1));
  }
  if (!positions_.covers(ahead, behind))
    positions_ = PositionTable(weights(), std::max(ahead, positions_.ahead()), std::max(behind, positions_.behind()),
                               runner_, attention_type_);
  if (tiles_.takes(frames)) tiles_.prepare();
  const size_t bytes = kernels::relative_head_scratch_bytes(attention_type_, frames, config().head_size());
  for (int member = 0; member < runner_.team().size(); ++member) runner_.scratch(member, bytes);
}

View<const float, 2> Encoder::encode(View<const float, 2> mels, AttentionContext context, const BetweenJobs& between) {
  const size_t frames = config().frames(mels.extent(0));
  SYRINX_CHECK(frames > 0 && mels.extent(1) == config().mels, "{} frames of {} features", mels.extent(0),
               mels.extent(1));
  make_room(frames, context);
  subsampling_.reset();
  size_t made = 0;
  for (size_t first = 0; first < mels.extent(0); first += kPiece) {
    const size_t count = std::min(kPiece, mels.extent(0) - first);
    const Subsampler::Piece piece{&subsampling_,
                                  {mels.row(first), {count, mels.extent(1)}, {mels.stride(0), 1}},
                                  first + count == mels.extent(0)};
    size_t rows = 0;
    made += subsampler_.run({&piece, 1}, {&rows, 1}, rows_of(x_, {made, frames}));
    if (between) between();
  }
  SYRINX_CHECK(made == frames, "{} frames, {} expected", made, frames);
  run(frames, between);
  return rows_of(x_);
}

// By tiles: only attention and the convolution need rows of other members, from the stage before.
void Encoder::run_layer(nn::Crew::Seat& seat, size_t index) {
  if (!tiles_.takes(rows_)) return EncoderLayers::run_layer(seat, index);
  const EncoderLayer& layer = weights().layers[index];
  const auto behind = [&](const char* what) {
    if (!probed()) return;
    seat.stage([](const nn::Part&) {});  // the others' rows of x
    show(seat, index, what);
    seat.stage([](const nn::Part&) {});
  };
  const auto own = [&](const nn::Part& part, nn::Plane& plane) { return rows_of(plane, part.split(rows_)); };
  seat.together([&](const nn::Part& part) {
    tiles_.feed_forward(part.member, layer.norm_feed_forward1, layer.linear1, layer.linear2, own(part, x_));
  });
  behind(".ff1");
  seat.stage([&](const nn::Part& part) {
    tiles_.project(part.member, layer.norm_attention, layer.qkv, own(part, x_), own(part, qkv_));
  });
  seat.stage([&](const nn::Part& part) { attend(part, index); });
  seat.together([&](const nn::Part& part) { tiles_.add(part.member, layer.out, own(part, attended_), own(part, x_)); });
  behind(".att");
  seat.stage([&](const nn::Part& part) {
    tiles_.gate(part.member, layer.norm_convolution, layer.pointwise1, own(part, x_), own(part, gated_));
  });
  seat.together([&](const nn::Part& part) {
    convolve(part, index);
    tiles_.add(part.member, layer.pointwise2, own(part, mixed_), own(part, x_));
  });
  behind(".conv");
  seat.together([&](const nn::Part& part) {
    tiles_.feed_forward(part.member, layer.norm_feed_forward2, layer.linear3, layer.linear4, own(part, x_));
    kernels::layer_norm(own(part, x_), layer.norm_out.affine(), kEpsilon, own(part, x_));
  });
  behind("");
}

size_t Encoder::rows_of_job() const {
  const EncoderConfig& c = config();
  const bool narrow = kernels::is_narrow(weights().layers.front().qkv.view.type);
  const auto members = static_cast<size_t>(runner_.team().size());
  const size_t products = (narrow ? kJobProducts : kJobProductsF32) / (c.width * (3 * c.width + 2 * c.hidden));
  return members * std::max(products / members, kLeastRowsAMember);
}

// The stages of run_layer(), each cut by rows or heads into jobs of its own.
bool Encoder::run_layer_in_jobs(size_t index, const BetweenJobs& between) {
  if (!tiles_.takes(rows_)) return false;
  const EncoderLayer& layer = weights().layers[index];
  const auto jobs = [&](size_t count, size_t at_once, const auto& work) {
    for (size_t first = 0; first < count; first += at_once) {
      runner_.team().run([&](int member) {
        const Range own = split_range(std::min(at_once, count - first), member, runner_.team().size());
        if (own.begin < own.end) work(member, Range{first + own.begin, first + own.end});
      });
      between();
    }
  };
  const size_t rows = rows_of_job();
  jobs(rows_, rows, [&](int member, Range own) {
    const View<float, 2> x = rows_of(x_, own);
    tiles_.feed_forward(member, layer.norm_feed_forward1, layer.linear1, layer.linear2, x);
    tiles_.project(member, layer.norm_attention, layer.qkv, x, rows_of(qkv_, own));
  });
  jobs(config().heads, static_cast<size_t>(runner_.team().size()),
       [&](int member, Range heads) { attend_heads(member, heads, index); });
  jobs(rows_, rows, [&](int member, Range own) {
    const View<float, 2> x = rows_of(x_, own);
    tiles_.add(member, layer.out, rows_of(attended_, own), x);
    tiles_.gate(member, layer.norm_convolution, layer.pointwise1, x, rows_of(gated_, own));
  });
  jobs(rows_, rows, [&](int member, Range own) {
    const View<float, 2> x = rows_of(x_, own);
    convolve_rows(own, index);
    tiles_.add(member, layer.pointwise2, rows_of(mixed_, own), x);
    tiles_.feed_forward(member, layer.norm_feed_forward2, layer.linear3, layer.linear4, x);
    kernels::layer_norm(x, layer.norm_out.affine(), kEpsilon, x);
  });
  return true;
}

void Encoder::attend(const nn::Part& part, size_t layer) {
  attend_heads(part.member, part.split(config().heads), layer);
}

void Encoder::attend_heads(int member, Range heads, size_t layer) {
  if (heads.begin == heads.end) return;
  const EncoderConfig& c = config();
  const size_t k = c.head_size();
  const size_t bytes = kernels::relative_head_scratch_bytes(attention_type_, rows_, k);
  kernels::RelativeHead in;
  in.type = attention_type_;
  in.offsets = positions_.ahead() + positions_.behind() + 1;
  in.first_offset = positions_.ahead();
  in.sees = sees_;
  in.scale = 1.0f / std::sqrt(static_cast<float>(k));
  for (size_t head = heads.begin; head < heads.end; ++head) {
    const auto columns = [&](size_t first) {
      return View<const float, 2>(qkv_.f32() + first + head * k, {rows_, k}, {qkv_.stride(), 1});
    };
    in.q = columns(0);
    in.k = columns(c.width);
    in.v = columns(2 * c.width);
    in.positions = positions_.packed_positions(layer, head);
    in.constants = positions_.constants(layer).row(head);
    kernels::relative_head(in, runner_.scratch(member, bytes),
                           {attended_.f32() + head * k, {rows_, k}, {attended_.stride(), 1}});
  }
}

void Encoder::convolve(const nn::Part& part, size_t index) { convolve_rows(part.split(rows_), index); }

void Encoder::convolve_rows(Range own, size_t index) {
  const EncoderLayer& layer = weights().layers[index];
  kernels::DepthwiseRows conv;
  conv.weight = layer.depthwise.data();
  conv.bias = layer.depthwise_bias.data();
  conv.taps = config().kernel;
  conv.pad = config().conv_left;
  conv.activation = config().layer_norm ? kernels::RowsActivation::kNone : kernels::RowsActivation::kSilu;
  kernels::depthwise_rows(conv, rows_of(gated_), own.begin, own.end, rows_of(mixed_));
  if (config().layer_norm) finish_convolution(layer, rows_of(mixed_, own));
}

}  // namespace syrinx::transducer
