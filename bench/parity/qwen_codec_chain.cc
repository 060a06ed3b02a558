#include "bench/parity/qwen_codec_chain.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "kernels/depthwise_rows.h"
#include "kernels/layer_norm.h"
#include "kernels/pack_rows.h"
#include "kernels/rms_norm.h"
#include "nn/decoder.h"

namespace syrinx::qwen_tts {
namespace {

using kernels::OwnedMatrix;
using Before = CodecLayer::Before;

constexpr size_t kPass = 4;  // frames of the transformer
constexpr size_t kRowGroup = 64, kWeightGroup = 32;
constexpr size_t kSlack = 64;  // numbers behind the rows of a plane
constexpr float kInt8Most = 127.0f;

bool has_int8_rows(CodecForm form) { return form == CodecForm::kInt8 || form == CodecForm::kInt8Groups; }

// To whole multiples of what makes `most` of the largest.
void round_numbers(std::span<float> numbers, float most) {
  float largest = 0;
  for (const float v : numbers) largest = std::max(largest, std::fabs(v));
  if (largest <= 1e-30f) return std::fill(numbers.begin(), numbers.end(), 0.0f);
  const float scale = largest / most, inverse = most / largest;
  for (float& v : numbers) v = std::nearbyint(v * inverse) * scale;
}

void round_groups(std::span<float> numbers, size_t group, float most) {
  for (size_t i = 0; i < numbers.size(); i += group)
    round_numbers(numbers.subspan(i, std::min(group, numbers.size() - i)), most);
}

void round_row(CodecForm form, std::span<float> row) {
  if (form == CodecForm::kInt8) round_numbers(row, kInt8Most);
  if (form == CodecForm::kInt8Groups) round_groups(row, kRowGroup, kInt8Most);
  if (form == CodecForm::kInt8Weights || form == CodecForm::kInt8WeightBlocks)
    round_numbers(row, static_cast<float>(kInt16Activation));
}

// A column's weights, all taps one behind the other.
void round_column(CodecForm form, std::span<float> column) {
  if (has_int8_rows(form) || form == CodecForm::kInt8Weights) round_numbers(column, kInt8Most);
  if (form == CodecForm::kInt8WeightBlocks) round_groups(column, kWeightGroup, kInt8Most);
}

OwnedMatrix repack(const PackedMatrix& f32, CodecForm form, PanelType type, ThreadTeam& team) {
  SYRINX_CHECK(f32.type == PanelType::kF32, "panels of type {}", static_cast<int>(f32.type));
  const size_t depth = f32.taps * f32.depth();
  std::vector<float> rows(f32.columns * depth);
  const auto* const panels = static_cast<const float*>(f32.panels);
  team.run([&](int member) {
    const Range own = split_range(f32.columns, member, team.size(), kPanelColumns);
    for (size_t n = own.begin; n < own.end; ++n) {
      const float* const column = panels + n / kPanelColumns * depth * kPanelColumns + n % kPanelColumns;
      for (size_t k = 0; k < depth; ++k) rows[n * depth + k] = column[k * kPanelColumns];
      if (type == PanelType::kF32) round_column(form, {rows.data() + n * depth, depth});
    }
  });
  const kernels::StoredRows stored{.bytes = std::as_bytes(std::span(rows)), .columns = f32.columns};
  OwnedMatrix packed = kernels::pack_rows(type, depth, {&stored, 1}, {f32.bias, f32.columns}, team);
  packed.view.channels = f32.channels;
  packed.view.taps = f32.taps;
  return packed;
}

nn::CausalConv convolution(const nn::CausalConv& f32, CodecForm form, bool is_narrow, ThreadTeam& team) {
  nn::CausalConv made{.stride = f32.stride,
                      .dilation = f32.dilation,
                      .up = f32.up,
                      .history = f32.history,
                      .input_width = f32.input_width,
                      .width = f32.width,
                      .dot = f32.dot,
                      .dot_bias = f32.dot_bias};
  if (!made.dot.empty()) {
    round_column(form, made.dot);
    return made;
  }
  const PanelType type = !is_narrow                  ? PanelType::kF32
                         : form == CodecForm::kBf16  ? PanelType::kBf16
                         : form == CodecForm::kInt16 ? PanelType::kInt16
                                                     : PanelType::kF32;
  made.matrix = repack(f32.matrix.view, is_narrow ? form : CodecForm::kF32, type, team);
  return made;
}

nn::DecoderWeights transformer_of(const nn::DecoderWeights& f32, CodecForm form, ThreadTeam& team) {
  nn::DecoderWeights made{.shape = f32.shape, .layers = {}, .theta = f32.theta};
  PanelType type = PanelType::kF32;
  if (form == CodecForm::kBf16 || form == CodecForm::kInt16) type = PanelType::kBf16;
  if (has_int8_rows(form)) {
    type = PanelType::kInt8Symmetric;
    made.shape.products = nn::Products::kLinear;
  }
  for (const nn::DecoderBlock& layer : f32.layers)
    made.layers.push_back({.before = layer.before,
                           .after = layer.after,
                           .in = repack(layer.in.view, form, type, team),
                           .out = repack(layer.out.view, form, type, team),
                           .up = repack(layer.up.view, form, type, team),
                           .down = repack(layer.down.view, form, type, team),
                           .attention_scale = layer.attention_scale,
                           .mlp_scale = layer.mlp_scale});
  return made;
}

std::vector<CodecPart> parts_of(const std::vector<CodecLayer>& chain) {
  std::vector<CodecPart> parts;
  size_t first = 0;
  for (size_t i = 0; i < chain.size(); ++i) {
    const CodecLayer& layer = chain[i];
    std::string name;
    if (layer.stage == CodecStage::kPreConv) name = "pre_conv";
    if (layer.stage == CodecStage::kPreTransformer) name = "transformer";
    if (layer.stage == CodecStage::kDecoder)
      name = i + 1 == chain.size()    ? "output"
             : layer.stage_index == 0 ? "first"
                                      : fmt::format("block{}", layer.stage_index);
    if (layer.stage == CodecStage::kUpsample && chain[i + 1].stage == CodecStage::kDecoder) name = "upsampling";
    if (name.empty()) continue;
    parts.push_back({.name = std::move(name), .layers = {first, i + 1}});
    first = i + 1;
  }
  return parts;
}

}  // namespace

CodecChain::CodecChain(const CodecDecoderWeights& weights, ThreadTeam& team)
    : w_(weights), runner_(team), parts_(parts_of(weights.chain)) {}

CodecChain::Weights CodecChain::weights(size_t part, CodecForm form) {
  Weights made{.form = form, .layers = {}};
  for (size_t i = parts_[part].layers.begin; i < parts_[part].layers.end; ++i) {
    made.layers.push_back(convolution(w_.chain[i].conv, form, i > 0, runner_.team()));
    if (w_.chain[i].before == Before::kTransformer)
      made.transformer = transformer_of(w_.transformer, form, runner_.team());
  }
  return made;
}

std::vector<float> CodecChain::quantise(std::span<const int32_t> codes) const {
  const size_t books = w_.config.codebooks, width = w_.config.row_width(), stride = w_.chain[0].conv.input_width;
  std::vector<float> rows(codes.size() / books * stride);
  for (size_t n = 0; n < codes.size() / books; ++n) {
    w_.first.decode(codes.subspan(n * books, 1), {rows.data() + n * stride, width});
    w_.rest.decode(codes.subspan(n * books + 1, books - 1), {rows.data() + n * stride + width, width});
  }
  return rows;
}

CodecChain::Rows CodecChain::run(size_t part, const Weights& weights, std::vector<float> ready) {
  Rows rows{.made = {}, .ready = std::move(ready)};
  std::vector<float> kept;
  const Range layers = parts_[part].layers;
  for (size_t i = layers.begin; i < layers.end; ++i) {
    if (w_.chain[i].before == Before::kTransformer) transform(weights.transformer, i, rows);
    if (w_.chain[i].before == Before::kConvNext) upsample(i, rows);
    convolve(i, weights.layers[i - layers.begin], i == 0 ? CodecForm::kF32 : weights.form, kept, rows);
    if (w_.chain[i].keeps || w_.chain[i].adds) kept = rows.made;
  }
  return rows;
}

void CodecChain::transform(const nn::DecoderWeights& transformer, size_t layer, Rows& rows) {
  const nn::DecoderConfig& c = transformer.shape;
  const size_t stride = w_.chain[layer].conv.input_width, count = rows.made.size() / stride;
  const size_t capacity = c.window - 1 + kPass;
  nn::Decoder decoder(transformer, runner_, {.rows = kPass, .positions = capacity});
  nn::KvCache cache = *nn::KvCache::make({.layers = c.layers,
                                          .key_heads = c.key_heads,
                                          .head_size = c.head_size,
                                          .capacity = capacity,
                                          .window = c.window});
  rows.ready.assign(count * stride, 0.0f);
  nn::Crew crew(runner_.team());
  for (size_t first = 0; first < count; first += kPass) {
    const size_t pass = std::min(kPass, count - first);
    const nn::Decoder::Rows stream{.cache = &cache, .first = 0, .count = pass};
    const View<float, 2> x = decoder.input(pass);
    for (size_t n = 0; n < pass; ++n) std::copy_n(rows.made.data() + (first + n) * stride, c.width, x.row(n));
    decoder.begin(transformer, {&stream, 1}, nn::Decoder::Output::kRows);
    runner_.team().run([&](int member) {
      nn::Crew::Seat seat = crew.everyone(member);
      decoder.work(seat);
    });
    decoder.end();
    kernels::rms_norm(decoder.output(pass), w_.norm.gamma.data(), c.epsilon,
                      {rows.ready.data() + first * stride, {pass, c.width}, {stride, 1}});
  }
}

void CodecChain::upsample(size_t layer, Rows& rows) const {
  const ConvNextWeights& next = w_.upsampling[w_.chain[layer + 1].stage_index];
  const size_t width = w_.config.latent, stride = w_.chain[layer].conv.input_width, count = rows.made.size() / stride;
  const size_t history = ConvNextWeights::kTaps - 1;
  std::vector<float> plane((history + count) * stride);
  std::copy(rows.made.begin(), rows.made.end(), plane.begin() + static_cast<ptrdiff_t>(history * stride));
  rows.ready.assign(count * stride, 0.0f);
  const View<float, 2> made(rows.ready.data(), {count, width}, {stride, 1});
  kernels::depthwise_rows({.weight = next.depthwise.data(), .bias = next.bias.data(), .taps = ConvNextWeights::kTaps},
                          View<const float, 2>(plane.data(), {history + count, width}, {stride, 1}), 0, count, made);
  kernels::layer_norm(made, next.norm.affine(), ConvNextWeights::kEpsilon, made);
}

void CodecChain::convolve(size_t layer, const nn::CausalConv& conv, CodecForm form, const std::vector<float>& kept,
                          Rows& rows) {
  const CodecLayer& l = w_.chain[layer];
  const size_t count = rows.ready.size() / conv.input_width, history = conv.history * conv.input_width;
  std::vector<float> plane(history + rows.ready.size() + kSlack);
  std::copy(rows.ready.begin(), rows.ready.end(), plane.begin() + static_cast<ptrdiff_t>(history));
  for (size_t n = 0; n < count; ++n) round_row(form, {plane.data() + history + n * conv.input_width, conv.input_width});
  rows.made.assign(count * conv.up * conv.width, 0.0f);
  rows.ready.assign(conv.dot.empty() ? rows.made.size() : 0, 0.0f);
  const auto* const in = reinterpret_cast<const std::byte*>(plane.data() + history);
  const nn::CausalConv::Piece piece{
      .in = in,
      .rows = count,
      .to = {.output = rows.made.data(),
             .ready = rows.ready.empty() ? nullptr : reinterpret_cast<std::byte*>(rows.ready.data()),
             .activation = l.activation,
             .snake = {l.alpha.data(), l.inverse_beta.data()},
             .residual = l.adds ? kept.data() : nullptr,
             .scale = l.scale.empty() ? nullptr : l.scale.data()}};
  const size_t scratch = conv.dot.empty() ? conv.scratch_bytes(count, 1) : 0;
  for (int member = 0; member < runner_.team().size(); ++member) runner_.scratch(member, scratch);
  runner_.team().run([&](int member) {
    const nn::Part part{.member = member, .rank = member, .size = runner_.team().size()};
    if (conv.dot.empty()) return conv.run(part, {&piece, 1}, runner_.scratch(member, scratch));
    conv.run(part, in, count, piece.to);
  });
}

}  // namespace syrinx::qwen_tts
