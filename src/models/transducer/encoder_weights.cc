#include "models/transducer/encoder_weights.h"

#include <cmath>

namespace syrinx::transducer {
namespace {

constexpr float kEpsilon = 1e-5f;  // of batch norm

std::vector<float> optional_bias(WeightReader& reader, const std::string& name, size_t size, bool stored) {
  return stored ? reader.values(name + ".bias", {size}) : std::vector<float>(size);
}

void scale(std::vector<float>& values, float factor) {
  for (float& value : values) value *= factor;
}

// The second matrix of a feed-forward module, halved.
kernels::OwnedMatrix halved(WeightReader& reader, const std::string& name, const EncoderConfig& c) {
  reader.know(name + ".weight");
  if (c.use_bias) reader.know(name + ".bias");
  return reader.made(name, c.width, c.hidden, true, [&] {
    WeightReader::Made made{reader.values(name + ".weight", {c.width, c.hidden}),
                            optional_bias(reader, name, c.width, c.use_bias)};
    scale(made.rows, 0.5f);
    scale(made.bias, 0.5f);
    return made;
  });
}

// Queries, keys and values side by side; u stands in the bias of the queries.
kernels::OwnedMatrix read_qkv(WeightReader& reader, const std::string& name, const EncoderConfig& c,
                              const std::vector<float>& u) {
  for (const char* const part : {"q", "k", "v"}) {
    reader.know(name + "linear_" + part + ".weight");
    if (c.use_bias) reader.know(name + "linear_" + part + ".bias");
  }
  return reader.made(name + "linear_qkv", 3 * c.width, c.width, true, [&] {
    WeightReader::Made made;
    for (const char* const part : {"q", "k", "v"}) {
      const std::string full = name + "linear_" + part;
      const std::vector<float> rows = reader.values(full + ".weight", {c.width, c.width});
      const std::vector<float> bias = optional_bias(reader, full, c.width, c.use_bias);
      made.rows.insert(made.rows.end(), rows.begin(), rows.end());
      made.bias.insert(made.bias.end(), bias.begin(), bias.end());
    }
    if (made.bias.size() == 3 * c.width && u.size() == c.width)
      for (size_t i = 0; i < c.width; ++i) made.bias[i] += u[i];
    return made;
  });
}

// [d, 1, k] to [k, d], with what batch norm does afterwards: w g / sqrt(var + eps), (b - mean) g / sqrt(var + eps) +
// beta.
void read_depthwise(WeightReader& reader, const std::string& name, const EncoderConfig& c, EncoderLayer& layer) {
  const size_t d = c.width, taps = c.kernel;
  const std::vector<float> stored = reader.values(name + "depthwise_conv.weight", {d, 1, taps});
  layer.depthwise_bias = optional_bias(reader, name + "depthwise_conv", d, c.use_bias);
  const NormWeights norm = reader.norm(name + "batch_norm", d);
  std::vector<float> mean, variance;
  if (c.layer_norm) {
    layer.convolution_norm = norm;
  } else {
    mean = reader.values(name + "batch_norm.running_mean", {d});
    variance = reader.variances(name + "batch_norm.running_var", d);
    if (mean.empty() || variance.empty() || norm.gamma.empty() || norm.beta.empty()) return;
  }
  if (stored.empty() || layer.depthwise_bias.empty()) return;
  layer.depthwise.resize(taps * d);
  for (size_t i = 0; i < d; ++i) {
    const float factor = c.layer_norm ? 1.0f : norm.gamma[i] / std::sqrt(variance[i] + kEpsilon);
    for (size_t j = 0; j < taps; ++j) layer.depthwise[j * d + i] = stored[i * taps + j] * factor;
    if (!c.layer_norm) layer.depthwise_bias[i] = (layer.depthwise_bias[i] - mean[i]) * factor + norm.beta[i];
  }
}

EncoderLayer read_layer(WeightReader& reader, const EncoderConfig& c, size_t index) {
  const std::string name = fmt::format("encoder.layers.{}.", index), attention = name + "self_attn.";
  const size_t d = c.width;
  EncoderLayer layer;
  layer.norm_feed_forward1 = reader.norm(name + "norm_feed_forward1", d);
  layer.linear1 = reader.narrow(name + "feed_forward1.linear1", c.hidden, d, c.use_bias);
  layer.linear2 = halved(reader, name + "feed_forward1.linear2", c);
  layer.norm_attention = reader.norm(name + "norm_self_att", d);
  const std::vector<float> u = reader.values(attention + "pos_bias_u", {c.heads, c.head_size()});
  layer.v_minus_u = reader.values(attention + "pos_bias_v", {c.heads, c.head_size()});
  for (size_t i = 0; i < std::min(u.size(), layer.v_minus_u.size()); ++i) layer.v_minus_u[i] -= u[i];
  layer.qkv = read_qkv(reader, attention, c, u);
  layer.position = reader.exact(attention + "linear_pos", d, d, false);
  layer.out = reader.narrow(attention + "linear_out", d, d, c.use_bias);
  layer.norm_convolution = reader.norm(name + "norm_conv", d);
  layer.pointwise1 = reader.narrow(name + "conv.pointwise_conv1", 2 * d, d, c.use_bias);
  read_depthwise(reader, name + "conv.", c, layer);
  layer.pointwise2 = reader.narrow(name + "conv.pointwise_conv2", d, d, c.use_bias);
  layer.norm_feed_forward2 = reader.norm(name + "norm_feed_forward2", d);
  layer.linear3 = reader.narrow(name + "feed_forward2.linear1", c.hidden, d, c.use_bias);
  layer.linear4 = halved(reader, name + "feed_forward2.linear2", c);
  layer.norm_out = reader.norm(name + "norm_out", d);
  return layer;
}

// [C, 1, 3, 3] to [3, 3, padded C].
SubsamplingStage read_image_conv(WeightReader& reader, const std::string& name, const EncoderConfig& config) {
  const size_t channels = config.channels, padded = config.padded_channels();
  const std::vector<float> stored = reader.values(name + ".weight", {channels, 1, 3, 3});
  SubsamplingStage stage;
  stage.bias = reader.values(name + ".bias", {channels});
  stage.bias.resize(padded);
  stage.weight.resize(9 * padded);
  for (size_t c = 0; c < channels && !stored.empty(); ++c)
    for (size_t tap = 0; tap < 9; ++tap) stage.weight[tap * padded + c] = stored[c * 9 + tap];
  return stage;
}

// [C, C, 3, 3] as rows of [3, 3, padded C] numbers.
kernels::OwnedMatrix read_full_conv(WeightReader& reader, const std::string& name, const EncoderConfig& config) {
  const size_t channels = config.channels, padded = config.padded_channels();
  reader.know(name + ".weight");
  reader.know(name + ".bias");
  return reader.made(name, channels, 9 * padded, true, [&] {
    const std::vector<float> stored = reader.values(name + ".weight", {channels, channels, 3, 3});
    WeightReader::Made made{std::vector<float>(stored.empty() ? 0 : channels * 9 * padded),
                            reader.values(name + ".bias", {channels})};
    for (size_t n = 0; n < channels && !stored.empty(); ++n)
      for (size_t c = 0; c < channels; ++c)
        for (size_t tap = 0; tap < 9; ++tap)
          made.rows[(n * 9 + tap) * padded + c] = stored[(n * channels + c) * 9 + tap];
    return made;
  });
}

// The maker flattens [C, F] with channels outside, we have them inside and padded.
kernels::OwnedMatrix read_subsampled(WeightReader& reader, const EncoderConfig& c) {
  const std::string name = "encoder.pre_encode.out";
  const size_t columns = c.subsampled_mels(), padded = c.padded_channels(), inputs = columns * padded;
  reader.know(name + ".weight");
  reader.know(name + ".bias");
  return reader.made(name, c.width, inputs, true, [&] {
    const std::vector<float> stored = reader.values(name + ".weight", {c.width, c.channels * columns});
    WeightReader::Made made{std::vector<float>(stored.empty() ? 0 : c.width * inputs),
                            reader.values(name + ".bias", {c.width})};
    for (size_t n = 0; n < c.width && !stored.empty(); ++n)
      for (size_t channel = 0; channel < c.channels; ++channel)
        for (size_t f = 0; f < columns; ++f)
          made.rows[n * inputs + f * padded + channel] = stored[(n * c.channels + channel) * columns + f];
    if (c.xscaling) {
      const float root = std::sqrt(static_cast<float>(c.width));
      scale(made.rows, root);
      scale(made.bias, root);
    }
    return made;
  });
}

// The maker appends a row of nothing but one 1 to each frame: its product is a column of the first matrix.
PromptWeights read_prompt(WeightReader& reader, const EncoderConfig& c) {
  const std::string name = "prompt_kernel.0";
  const size_t d = c.width, h = c.prompt.hidden, count = c.prompt.count;
  const std::vector<float> stored = reader.values(name + ".weight", {h, d + count});
  const std::vector<float> bias = reader.values(name + ".bias", {h});
  PromptWeights w;
  w.first = reader.made(name, h, d, true, [&] {
    WeightReader::Made made;
    for (size_t n = 0; n < h && !stored.empty(); ++n)
      made.rows.insert(made.rows.end(), stored.begin() + static_cast<ptrdiff_t>(n * (d + count)),
                       stored.begin() + static_cast<ptrdiff_t>(n * (d + count) + d));
    return made;
  });
  w.second = reader.narrow("prompt_kernel.2", d, h, true);
  if (stored.empty() || bias.empty()) return w;
  w.languages.resize(count * h);
  for (size_t i = 0; i < count; ++i)
    for (size_t n = 0; n < h; ++n) w.languages[i * h + n] = stored[n * (d + count) + d + i] + bias[n];
  return w;
}

}  // namespace

EncoderWeights read_encoder(WeightReader& reader, const EncoderConfig& config) {
  EncoderWeights w;
  w.config = config;
  const std::string conv = "encoder.pre_encode.conv.";
  w.stages.push_back(read_image_conv(reader, conv + "0", config));
  for (size_t i = 1; i < config.stages(); ++i) {
    if (config.striding) {
      w.stages.push_back(
          {.weight = {}, .bias = {}, .pointwise = read_full_conv(reader, fmt::format("{}{}", conv, 2 * i), config)});
      continue;
    }
    SubsamplingStage stage = read_image_conv(reader, fmt::format("{}{}", conv, 3 * i - 1), config);
    stage.pointwise = reader.narrow(fmt::format("{}{}", conv, 3 * i), config.channels, config.channels, true);
    w.stages.push_back(std::move(stage));
  }
  w.subsampled = read_subsampled(reader, config);
  for (size_t i = 0; i < config.layers; ++i) w.layers.push_back(read_layer(reader, config, i));
  if (config.prompt.count > 0) w.prompt = read_prompt(reader, config);
  w.packed = reader.packed();
  return w;
}

}  // namespace syrinx::transducer
