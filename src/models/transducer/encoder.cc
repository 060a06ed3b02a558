#include "models/transducer/encoder.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "kernels/depthwise_rows.h"

namespace syrinx::transducer {
namespace {

// Frames of features that the subsampling takes at once: its planes then stay in the second-level cache.
constexpr size_t kPiece = 128;
// Queries that attention takes together see keys of each other.
constexpr size_t kBlockReach = 4;

}  // namespace

std::vector<kernels::KeyRange> visible_keys(size_t frames, ContextStyle style, AttentionContext context) {
  std::vector<kernels::KeyRange> out(frames);
  const bool chunked = style != ContextStyle::kRegular && context.right >= 0;
  for (size_t i = 0; i < frames; ++i) {
    size_t begin = i, end = i;
    if (chunked) {
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
  return out;
}

Encoder::Encoder(const std::shared_ptr<const EncoderWeights>& weights, nn::Runner& runner)
    : EncoderLayers(weights, runner, false),
      subsampler_(*weights, runner, 1, kPiece),
      subsampling_(weights->config, kPiece) {}

void Encoder::make_room(size_t frames, AttentionContext context) {
  prepare(frames);
  sees_ = visible_keys(frames, config().style, context);
  most_keys_ = 0;
  size_t ahead = 0, behind = 0;  // offsets, query minus key
  for (size_t i = 0; i < frames; ++i) {
    const size_t last = std::min(i + kBlockReach - 1, frames - 1);
    most_keys_ = std::max<size_t>(most_keys_, sees_[last].end - sees_[i].begin);
    ahead = std::max<size_t>(ahead, last - sees_[i].begin);
    behind = std::max<size_t>(behind, sees_[last].end - 1 - i);
  }
  if (!positions_.covers(ahead, behind))
    positions_ =
        PositionTable(weights(), std::max(ahead, positions_.ahead()), std::max(behind, positions_.behind()), runner_);
  const size_t slack = kernels::kRelativeAttentionSlack, size = config().width * (frames + slack) + slack;
  key_stride_ = frames + slack;
  if (keys_.size() < size) keys_ = Buffer<float>(size);
  const size_t bytes = kernels::relative_attention_scratch_size(most_keys_) * sizeof(float);
  for (int member = 0; member < runner_.team().size(); ++member) runner_.scratch(member, bytes);
}

View<const float, 2> Encoder::encode(View<const float, 2> mels, AttentionContext context) {
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
  }
  SYRINX_CHECK(made == frames, "{} frames, {} expected", made, frames);
  run(frames);
  return rows_of(x_);
}

void Encoder::attend(const nn::Part& part, size_t layer) {
  const EncoderConfig& c = config();
  const Range heads = part.split(c.heads);
  if (heads.begin == heads.end) return;
  const size_t k = c.head_size(), begin = heads.begin * k, width = (heads.end - heads.begin) * k;
  const View<const float, 2> own_keys(qkv_.f32() + c.width + begin, {rows_, width}, {qkv_.stride(), 1});
  kernels::transpose_rows(own_keys, 0, false, {keys_.data() + begin * key_stride_, {width, rows_}, {key_stride_, 1}});
  kernels::RelativeAttention in;
  in.q = {qkv_.f32(), {rows_, c.width}, {qkv_.stride(), 1}};
  in.keys = {keys_.data(), {c.width, rows_}, {key_stride_, 1}};
  in.values = {qkv_.f32() + 2 * c.width, {rows_, c.width}, {qkv_.stride(), 1}};
  in.positions = positions_.positions(layer);
  in.constants = positions_.constants(layer);
  in.sees = sees_;
  in.first_offset = static_cast<ptrdiff_t>(positions_.ahead());
  in.head_size = k;
  in.scale = 1.0f / std::sqrt(static_cast<float>(k));
  const size_t floats = kernels::relative_attention_scratch_size(most_keys_);
  auto* const scratch = reinterpret_cast<float*>(runner_.scratch(part.member, floats * sizeof(float)).data());
  kernels::relative_attention(in, heads.begin, heads.end, {scratch, floats}, rows_of(attended_));
}

void Encoder::convolve(const nn::Part& part, size_t index) {
  const EncoderLayer& layer = weights().layers[index];
  const Range own = part.split(rows_);
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
