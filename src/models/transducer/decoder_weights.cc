#include "models/transducer/decoder_weights.h"

#include <algorithm>

#include "base/thread_team.h"
#include "nn/linear.h"

namespace syrinx::transducer {
namespace {

std::vector<float> sum_of(std::vector<float> a, const std::vector<float>& b) {
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) a[i] += b[i];
  return a;
}

std::string lstm_name(const char* what, size_t layer) {
  return fmt::format("decoder.prediction.dec_rnn.lstm.{}_l{}", what, layer);
}

Buffer<std::byte> bytes_of(const std::vector<float>& values) {
  Buffer<std::byte> bytes(values.size() * sizeof(float));
  std::copy(values.begin(), values.end(), reinterpret_cast<float*>(bytes.data()));
  return bytes;
}

// embed [V + 1, P] W_ih^T + both biases: [V + 1, 4P].
Buffer<std::byte> make_gate_table(std::span<const float> embedding, std::span<const float> weight,
                                  std::span<const float> bias, size_t width, ThreadTeam& team) {
  const size_t rows = embedding.size() / width, columns = 4 * width;
  const auto at = [&](size_t n, size_t k, size_t) { return weight[n * width + k]; };
  const kernels::OwnedMatrix matrix = kernels::pack_f32({.columns = columns, .channels = width}, at, bias);
  nn::Runner runner(team);
  nn::Plane in, out;
  in.prepare(rows, width, kernels::Storage::kF32);
  out.prepare(rows, columns, kernels::Storage::kF32);
  for (size_t n = 0; n < rows; ++n) std::copy_n(embedding.data() + n * width, width, in.f32(n));
  nn::linear(runner, matrix.view, in.view(), {}, out.view());
  Buffer<std::byte> table(rows * columns * sizeof(float));
  for (size_t n = 0; n < rows; ++n)
    std::copy_n(out.f32(n), columns, reinterpret_cast<float*>(table.data()) + n * columns);
  return table;
}

void read_prediction(WeightReader& reader, size_t max_table_bytes, DecoderWeights& w) {
  const size_t width = w.config.width, gates = 4 * width, rows = w.config.vocabulary + 1;
  w.gates_by_label = rows * gates * sizeof(float) <= max_table_bytes;
  w.labels.width = w.gates_by_label ? gates : width;
  const std::string embed = "decoder.prediction.embed.weight";
  const auto bias_of = [&](size_t layer) {
    return sum_of(reader.values(lstm_name("bias_ih", layer), {gates}),
                  reader.values(lstm_name("bias_hh", layer), {gates}));
  };
  const auto input_of = [&](size_t layer) { return reader.values(lstm_name("weight_ih", layer), {gates, width}); };
  reader.know(embed);
  w.labels.bytes =
      reader.bytes(w.gates_by_label ? "decoder.gates_by_label" : embed, rows * w.labels.width * sizeof(float), [&] {
        const std::vector<float> embedding = reader.values(embed, {rows, width});
        if (!w.gates_by_label) return bytes_of(embedding);
        const std::vector<float> weight = input_of(0), bias = bias_of(0);
        if (embedding.empty() || weight.empty() || bias.empty()) return Buffer<std::byte>();
        return make_gate_table(embedding, weight, bias, width, reader.team());
      });
  for (size_t layer = 0; layer < w.config.layers; ++layer) {
    for (const char* const what : {"weight_ih", "weight_hh", "bias_ih", "bias_hh"}) reader.know(lstm_name(what, layer));
    LstmLayer& lstm = w.layers.emplace_back();
    if (layer > 0 || !w.gates_by_label) {
      lstm.input = reader.made(lstm_name("weight_ih", layer), gates, width, true, [&] {
        return WeightReader::Made{input_of(layer), bias_of(layer)};
      });
    }
    lstm.recurrent = reader.made(lstm_name("weight_hh", layer), gates, width, true, [&] {
      return WeightReader::Made{reader.values(lstm_name("weight_hh", layer), {gates, width}), {}};
    });
  }
}

}  // namespace

DecoderWeights read_decoder(WeightReader& reader, const Config& config, size_t max_table_bytes) {
  DecoderWeights w;
  w.config = config.decoder;
  w.encoder_width = config.encoder.width;
  if (w.has_transducer()) {
    read_prediction(reader, max_table_bytes, w);
    w.joint_encoder = reader.narrow("joint.enc", w.config.joint, w.encoder_width, true);
    w.joint_prediction = reader.narrow("joint.pred", w.config.joint, w.config.width, true);
    // Its index counts the modules before it: the activation, and dropout where the configuration has it.
    const char* const output = reader.has("joint.joint_net.2.weight") ? "joint.joint_net.2" : "joint.joint_net.1";
    w.joint_output = reader.narrow(output, w.config.vocabulary + 1 + w.config.durations.size(), w.config.joint, true);
  }
  if (w.config.ctc) {
    const std::string head =
        reader.has("ctc_decoder.decoder_layers.0.weight") ? "ctc_decoder.decoder_layers.0" : "decoder.decoder_layers.0";
    w.ctc = reader.narrow(head, w.config.vocabulary + 1, w.encoder_width, true);
  }
  return w;
}

}  // namespace syrinx::transducer
