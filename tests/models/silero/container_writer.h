// Writes the container of models/silero/container.h: for tests and the fuzz target, as the real file is no part of the
// repository.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "models/silero/container.h"
#include "tensor/dtype.h"

namespace syrinx::silero {

struct WrittenContainer {
  std::vector<std::byte> bytes;
  std::vector<size_t> fields;   // where each number or text of the header and of the records begins
  std::vector<size_t> records;  // where each record begins
};

// A value that f16 holds exactly, about a normal one times `scale`: ten bits behind the leading one.
inline float f16_value(Rng& rng, float scale) {
  int exponent = 0;
  const float mantissa = std::frexp(rng.normal() * scale, &exponent);
  return exponent < -12 ? 0.0f : std::ldexp(std::round(std::ldexp(mantissa, 11)), exponent - 11);
}

// Seeded weights that keep the size of the activations from layer to layer.
inline Tensors random_tensors(uint64_t seed) {
  Rng rng(seed);
  const auto fill = [&rng](std::vector<float>& values, size_t count, float scale, bool half) {
    values.resize(count);
    for (float& value : values) value = half ? f16_value(rng, scale) : rng.normal() * scale;
  };
  Tensors t;
  fill(t.basis, 2 * kBins * kBasisSamples, 0.1f, true);
  for (size_t i = 0; i < kEncoderLayers; ++i) {
    const size_t inputs = kEncoder[i].inputs * kEncoderTaps;
    fill(t.encoder[i].weight, kEncoder[i].outputs * inputs, 1.4f / std::sqrt(static_cast<float>(inputs)), true);
    fill(t.encoder[i].bias, kEncoder[i].outputs, 0.1f, false);
  }
  fill(t.input_weight, 4 * kHidden * kHidden, 0.2f, false);
  fill(t.recurrent_weight, 4 * kHidden * kHidden, 0.1f, false);
  fill(t.input_bias, 4 * kHidden, 0.1f, false);
  fill(t.recurrent_bias, 4 * kHidden, 0.1f, false);
  fill(t.output_weight, kHidden, 0.4f, true);
  fill(t.output_bias, 1, 0.1f, false);
  return t;
}

class ContainerWriter {
 public:
  void number(uint32_t value) {
    written_.fields.push_back(written_.bytes.size());
    append(&value, sizeof value);
  }
  void text(std::string_view text) {
    written_.fields.push_back(written_.bytes.size());
    append(text.data(), text.size());
  }
  void tensor(std::string_view name, std::vector<uint32_t> dims, bool half, const std::vector<float>& values) {
    written_.records.push_back(written_.bytes.size());
    const std::string full = "_model." + std::string(name);
    number(static_cast<uint32_t>(dims.size()));
    number(static_cast<uint32_t>(full.size()));
    number(half ? 1 : 0);
    for (size_t i = dims.size(); i-- > 0;) number(dims[i]);
    text(full);
    written_.fields.push_back(written_.bytes.size());
    if (!half) return append(values.data(), values.size() * sizeof(float));
    for (const float value : values) {
      const uint16_t bits = f16_bits(value);
      append(&bits, sizeof bits);
    }
  }
  WrittenContainer take() { return std::move(written_); }

 private:
  // The value must be zero or a normal number in f16.
  static uint16_t f16_bits(float value) {
    uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    if ((bits & 0x7FFFFFFFu) == 0) return 0;
    return static_cast<uint16_t>((bits >> 16 & 0x8000u) | (((bits >> 23 & 0xFFu) - 112) << 10) | (bits >> 13 & 0x3FFu));
  }
  void append(const void* data, size_t size) {
    const auto* const begin = static_cast<const std::byte*>(data);
    written_.bytes.insert(written_.bytes.end(), begin, begin + size);
  }

  WrittenContainer written_;
};

inline WrittenContainer write_container(const Tensors& t) {
  ContainerWriter w;
  w.number(0x67676d6c);
  w.number(10);
  w.text("silero-16k");
  for (const uint32_t value : {6u, 2u, 0u, 512u, 64u, 4u}) w.number(value);
  for (const EncoderShape& layer : kEncoder) {
    w.number(static_cast<uint32_t>(layer.inputs));
    w.number(static_cast<uint32_t>(layer.outputs));
    w.number(3);
  }
  for (const uint32_t value : {128u, 128u, 128u, 1u}) w.number(value);
  for (uint32_t i = 0; i < kEncoderLayers; ++i) {
    const std::string layer = "encoder." + std::to_string(i) + ".reparam_conv.";
    const auto inputs = static_cast<uint32_t>(kEncoder[i].inputs), outputs = static_cast<uint32_t>(kEncoder[i].outputs);
    w.tensor(layer + "weight", {outputs, inputs, 3}, true, t.encoder[i].weight);
    w.tensor(layer + "bias", {outputs}, false, t.encoder[i].bias);
  }
  w.tensor("decoder.rnn.weight_ih", {512, 128}, false, t.input_weight);
  w.tensor("decoder.rnn.weight_hh", {512, 128}, false, t.recurrent_weight);
  w.tensor("decoder.rnn.bias_ih", {512}, false, t.input_bias);
  w.tensor("decoder.rnn.bias_hh", {512}, false, t.recurrent_bias);
  w.tensor("decoder.decoder.2.weight", {128}, true, t.output_weight);
  w.tensor("decoder.decoder.2.bias", {}, false, t.output_bias);
  w.tensor("stft.forward_basis_buffer", {258, 1, 256}, true, t.basis);
  return w.take();
}

}  // namespace syrinx::silero
