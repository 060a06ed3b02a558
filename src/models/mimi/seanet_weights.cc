#include "models/mimi/seanet_weights.h"

#include <algorithm>
#include <span>

#include <fmt/format.h>

namespace syrinx::mimi {

Conv SeanetReader::conv(const std::string& name, const ConvShape& s, bool elu) {
  const std::vector<float> bias = read_(name + ".bias", {s.out});
  Conv conv{.stride = s.stride,
            .dilation = s.dilation,
            .elu = elu,
            .history = (s.kernel - 1) * s.dilation + 1 - s.stride,
            .input_width = round_up(s.in, kPanelColumns),
            .width = round_up(s.out, kPanelColumns)};
  conv.matrix = matrix(
      name + ".weight", {s.out, s.in, s.kernel}, {.columns = s.out, .channels = s.in, .taps = s.kernel},
      [=](size_t n, size_t k, size_t t) { return (n * s.in + k) * s.kernel + t; }, bias);
  conv.input_type = row_type(conv.matrix);
  return conv;
}

// Output row s t + j is W[j] x[t] + W[s + j] x[t - 1]; each of the s rows is padded to whole panels.
Conv SeanetReader::transposed(const std::string& name, size_t in, size_t out, size_t stride) {
  const std::vector<float> bias = read_(name + ".bias", {out});
  const size_t width = round_up(out, kPanelColumns);
  Conv conv{.up = stride, .elu = true, .history = 1, .input_width = round_up(in, kPanelColumns), .width = width};
  std::vector<float> biases(stride * width);
  for (size_t j = 0; j < stride; ++j) std::copy(bias.begin(), bias.end(), biases.begin() + j * width);
  const auto index = [=](size_t n, size_t k, size_t t) {
    const size_t phase = n / width, column = n % width;
    if (column >= out) return kNoElement;
    return (k * out + column) * 2 * stride + (t == 0 ? stride : 0) + phase;
  };
  conv.matrix = matrix(name + ".weight", {in, out, 2 * stride}, {.columns = stride * width, .channels = in, .taps = 2},
                       index, biases);
  conv.input_type = row_type(conv.matrix);
  return conv;
}

// Over one channel the taps are what stands side by side: a linear layer of `kernel` samples.
Conv SeanetReader::from_samples(const std::string& name, size_t out, size_t kernel) {
  const std::vector<float> bias = read_(name + ".bias", {out});
  Conv conv{.history = kernel - 1, .input_width = 1, .width = round_up(out, kPanelColumns)};
  conv.matrix = matrix(
      name + ".weight", {out, 1, kernel}, {.columns = out, .channels = kernel},
      [=](size_t n, size_t k, size_t) { return n * kernel + k; }, bias);
  return conv;
}

Conv SeanetReader::to_samples(const std::string& name, size_t in, size_t kernel) {
  const std::vector<float> weight = read_(name + ".weight", {1, in, kernel});
  const std::vector<float> bias = read_(name + ".bias", {1});
  Conv conv{.elu = true, .history = kernel - 1, .input_width = round_up(in, kPanelColumns), .width = 1};
  if (weight.empty() || bias.empty()) return conv;
  conv.dot.resize(kernel * conv.input_width);
  for (size_t t = 0; t < kernel; ++t)
    for (size_t k = 0; k < in; ++k) conv.dot[t * conv.input_width + k] = weight[k * kernel + t];
  conv.dot_bias = bias[0];
  return conv;
}

void SeanetReader::residual_blocks(const std::string& name, size_t& module, size_t width, const SeanetConfig& config,
                                   std::vector<SeanetLayer>& chain) {
  const size_t inner = width / config.compress;
  size_t dilation = 1;
  for (size_t j = 0; j < config.residual_layers; ++j, ++module, dilation *= config.dilation_base) {
    const std::string block = fmt::format("{}.{}.block", name, module);
    SeanetLayer layer{.module = module};
    layer.conv = conv(block + ".1.conv",
                      {.out = inner, .in = width, .kernel = config.residual_kernel, .dilation = dilation}, true);
    layer.second = conv(block + ".3.conv", {.out = width, .in = inner, .kernel = 1}, true);
    chain.push_back(std::move(layer));
  }
}

std::vector<SeanetLayer> SeanetReader::decoder(const std::string& name, const SeanetConfig& config) {
  std::vector<SeanetLayer> chain;
  size_t width = config.filters << config.ratios.size(), module = 0;
  const auto add = [&](Conv conv) {
    SeanetLayer layer{.module = module};
    layer.conv = std::move(conv);
    chain.push_back(std::move(layer));
    ++module;
  };
  add(conv(name + ".0.conv", {.out = width, .in = config.width, .kernel = config.kernel}, false));
  for (const size_t ratio : config.ratios) {
    ++module;  // the activation
    add(transposed(fmt::format("{}.{}.convtr", name, module), width, width / 2, ratio));
    width /= 2;
    residual_blocks(name, module, width, config, chain);
  }
  ++module;
  add(to_samples(fmt::format("{}.{}.conv", name, module), width, config.last_kernel));
  return chain;
}

std::vector<SeanetLayer> SeanetReader::encoder(const std::string& name, const SeanetConfig& config) {
  std::vector<SeanetLayer> chain;
  size_t width = config.filters, module = 0;
  const auto add = [&](Conv conv) {
    SeanetLayer layer{.module = module};
    layer.conv = std::move(conv);
    chain.push_back(std::move(layer));
    ++module;
  };
  const auto next = [&] { return fmt::format("{}.{}.conv", name, module); };
  add(from_samples(next(), width, config.kernel));
  for (auto ratio = config.ratios.rbegin(); ratio != config.ratios.rend(); ++ratio) {
    residual_blocks(name, module, width, config, chain);
    ++module;  // the activation
    add(conv(next(), {.out = 2 * width, .in = width, .kernel = 2 * *ratio, .stride = *ratio}, true));
    width *= 2;
  }
  ++module;
  add(conv(next(), {.out = config.width, .in = width, .kernel = config.last_kernel}, true));
  return chain;
}

}  // namespace syrinx::mimi
