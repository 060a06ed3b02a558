#include "nn/decoder_weights.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/rotary.h"

namespace syrinx::nn {

void DecoderWeights::set_frequencies() {
  theta.resize(shape.rotary == Rotary::kNone ? 0 : shape.head_size / 2);
  if (!theta.empty()) kernels::rotary_frequencies(shape.period, theta);
}

void interleave_halves(std::span<float> values, size_t head_size, size_t channels) {
  SYRINX_CHECK(head_size % 2 == 0 && values.size() % (head_size * channels) == 0, "{} values in heads of {} x {}",
               values.size(), head_size, channels);
  std::vector<float> head(head_size * channels);
  for (size_t first = 0; first < values.size(); first += head.size()) {
    std::copy_n(values.data() + first, head.size(), head.data());
    for (size_t i = 0; i < head_size; ++i) {
      const size_t from = i / 2 + i % 2 * (head_size / 2);
      std::copy_n(head.data() + from * channels, channels, values.data() + first + i * channels);
    }
  }
}

std::vector<float> interleave_panels(std::span<const float> gate, std::span<const float> value, size_t channels) {
  SYRINX_CHECK(gate.size() == value.size() && gate.size() % channels == 0, "{} gates, {} values", gate.size(),
               value.size());
  const size_t hidden = gate.size() / channels;
  std::vector<float> rows(2 * round_up(hidden, kPanelColumns) * channels);
  for (size_t first = 0; first < hidden; first += kPanelColumns) {
    const size_t count = std::min(kPanelColumns, hidden - first) * channels;
    std::copy_n(gate.data() + first * channels, count, rows.data() + 2 * first * channels);
    std::copy_n(value.data() + first * channels, count, rows.data() + (2 * first + kPanelColumns) * channels);
  }
  return rows;
}

}  // namespace syrinx::nn
