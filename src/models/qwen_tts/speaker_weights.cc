#include "models/qwen_tts/speaker_weights.h"

#include <span>
#include <utility>

#include <fmt/format.h>

namespace syrinx::qwen_tts {
namespace {

using kernels::OwnedMatrix;

class Loader {
 public:
  explicit Loader(nn::WeightReader& reader) : reader_(reader) {}

  // A tensor [out, in, taps] and its bias.
  OwnedMatrix matrix(const std::string& name, size_t out, size_t in, size_t taps = 1) {
    const auto packed = [&] {
      const std::vector<float> weight = values(name + ".weight", {out, in, taps});
      const std::vector<float> bias = values(name + ".bias", {out});
      if (weight.empty() || bias.empty()) return OwnedMatrix();
      return kernels::pack_f32(
          {.columns = out, .channels = in, .taps = taps},
          [&](size_t n, size_t k, size_t t) { return weight[(n * in + k) * taps + t]; }, bias);
    };
    return get(name, name, {.columns = out, .channels = in, .taps = taps}, packed);
  }
  SpeakerConv conv(const std::string& name, size_t out, size_t in, size_t taps = 1, size_t dilation = 1) {
    return {.matrix = matrix(name + ".conv", out, in, taps), .dilation = dilation};
  }

  // Inputs [first, first + count) of a tensor [out, in, 1]; with its bias or none.
  OwnedMatrix some_inputs(const std::string& name, size_t out, size_t in, size_t first, size_t count, bool with_bias) {
    const auto packed = [&] {
      const std::vector<float> weight = values(name + ".weight", {out, in, 1});
      const std::vector<float> bias = with_bias ? values(name + ".bias", {out}) : std::vector<float>(out);
      if (weight.empty() || bias.empty()) return OwnedMatrix();
      return kernels::pack_f32(
          {.columns = out, .channels = count}, [&](size_t n, size_t k, size_t) { return weight[n * in + first + k]; },
          bias);
    };
    return get(fmt::format("{}#{}", name, first), name, {.columns = out, .channels = count}, packed);
  }

  SpeakerBlock block(size_t number, const SpeakerEncoderConfig& c) {
    const std::string name = fmt::format("blocks.{}.", number);
    const size_t width = c.channels[number], chunk = width / c.res2net_scale;
    SpeakerBlock block{.enter = conv(name + "tdnn1", width, c.channels[number - 1]),
                       .chunks = {},
                       .leave = {},
                       .squeeze = {},
                       .excite = {}};
    for (size_t i = 0; i + 1 < c.res2net_scale; ++i)
      block.chunks.push_back(conv(fmt::format("{}res2net_block.blocks.{}", name, i), chunk, chunk, c.kernels[number],
                                  c.dilations[number]));
    block.leave = conv(name + "tdnn2", width, width);
    block.squeeze = matrix(name + "se_block.conv1", c.se_channels, width);
    block.excite = matrix(name + "se_block.conv2", width, c.se_channels);
    return block;
  }

 private:
  static std::string full(const std::string& name) { return "speaker_encoder." + name; }
  std::vector<float> values(const std::string& name, const std::vector<size_t>& dims) {
    return reader_.values(full(name), dims);
  }
  template <class Make>
  OwnedMatrix get(const std::string& key, const std::string& name, const kernels::MatrixShape& shape,
                  const Make& make) {
    for (const char* const part : {".weight", ".bias"}) reader_.know(full(name + part));
    return reader_.store().get(full(key), shape, {PanelType::kF32}, make);
  }

  nn::WeightReader& reader_;
};

}  // namespace

Result<SpeakerWeights> SpeakerWeights::load(nn::TensorSource source, const std::string& file,
                                            const SpeakerEncoderConfig& config, kernels::MatrixStore* store) {
  SYRINX_TRY(SpeakerFeatures features, SpeakerFeatures::create(config.mels, config.sample_rate));
  nn::WeightReader reader(std::move(source), store);
  Loader loader(reader);
  const size_t all = config.channels.back(), last = config.channels.size() - 1;
  SpeakerWeights weights{.config = config,
                         .features = std::move(features),
                         .first = {},
                         .blocks = {},
                         .aggregate = {},
                         .attention = {},
                         .attention_of_statistics = {},
                         .scores = {},
                         .out = {},
                         .packed = nullptr};
  weights.first = loader.conv("blocks.0", config.channels[0], config.mels, config.kernels[0], config.dilations[0]);
  for (size_t i = 1; i < last; ++i) weights.blocks.push_back(loader.block(i, config));
  weights.aggregate = loader.conv("mfa", all, all, config.kernels[last], config.dilations[last]);
  weights.attention = loader.some_inputs("asp.tdnn.conv", config.attention_channels, 3 * all, 0, all, false);
  weights.attention_of_statistics =
      loader.some_inputs("asp.tdnn.conv", config.attention_channels, 3 * all, all, 2 * all, true);
  weights.scores = loader.matrix("asp.conv", all, config.attention_channels);
  weights.out = loader.matrix("fc", config.width, 2 * all);
  if (!reader.faults().empty())
    return fail(Code::kDataLoss,
                "'{}' does not hold the speaker encoder that its configuration describes: {}; download it again", file,
                reader.faults().text());
  if (store != nullptr) weights.packed = store->file();
  return weights;
}

}  // namespace syrinx::qwen_tts
