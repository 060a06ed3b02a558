#include "models/qwen_tts/embedder.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/activation.h"
#include "nn/linear.h"
#include "nn/rows.h"

namespace syrinx::qwen_tts {

Embedder::Embedder(std::shared_ptr<const Weights> weights, nn::Runner& runner)
    : weights_(std::move(weights)), runner_(runner), crew_(runner.team()), row_(weights_->config.talker.width) {
  const Config& config = weights_->config;
  for (nn::Plane* const plane : {&embedded_, &inner_}) plane->prepare(kRows, config.text_width, kernels::Storage::kF32);
  projected_.prepare(kRows, config.talker.width, kernels::Storage::kF32);
  for (const kernels::OwnedMatrix* const matrix : {&weights_->text_fc1, &weights_->text_fc2})
    nn::reserve_linear(runner_, matrix->view, kRows);
  ids_.reserve(kRows);
  const View<const float, 2> pad = text_rows({&config.text.pad, 1});
  pad_.assign(pad.row(0), pad.row(0) + pad.extent(1));
}

View<const float, 2> Embedder::text_rows(std::span<const int32_t> ids) {
  SYRINX_CHECK(ids.size() <= kRows, "{} tokens at once, at most {}", ids.size(), kRows);
  const View<float, 2> embedded = nn::rows_of(embedded_, ids.size()), inner = nn::rows_of(inner_, ids.size()),
                       projected = nn::rows_of(projected_, ids.size());
  if (ids.empty()) return projected;
  for (size_t n = 0; n < ids.size(); ++n) {
    SYRINX_CHECK(ids[n] >= 0 && static_cast<size_t>(ids[n]) < weights_->config.text_vocabulary, "token {}", ids[n]);
    weights_->text_embedding.copy_row(static_cast<size_t>(ids[n]), embedded.row(n));
  }
  runner_.team().run([&](int member) {
    nn::Crew::Seat seat = crew_.everyone(member);
    seat.stage([&](const nn::Part& part) {
      const nn::Share own = nn::stream_linear_part(runner_, part, weights_->text_fc1.view, embedded, {}, inner);
      for (size_t n = own.rows.begin; n < own.rows.end; ++n) {
        const std::span<float> columns(inner.row(n) + own.columns.begin, own.columns.end - own.columns.begin);
        kernels::silu(columns, columns);
      }
    });
    seat.stage([&](const nn::Part& part) {
      nn::stream_linear_part(runner_, part, weights_->text_fc2.view, inner, {}, projected);
    });
  });
  return projected;
}

void Embedder::prompt_rows(const Prompt& prompt, size_t first, View<float, 2> to) {
  const std::span<const PromptPosition> positions = std::span(prompt.positions).subspan(first, to.extent(0));
  const int32_t pad = weights_->config.text.pad;
  ids_.clear();
  for (const PromptPosition& position : positions)
    if (position.text != PromptPosition::kNone && position.text != pad) ids_.push_back(position.text);
  const View<const float, 2> texts = text_rows(ids_);
  const size_t codebooks = weights_->config.codebooks;
  size_t next = 0;
  for (size_t n = 0; n < positions.size(); ++n) {
    const PromptPosition& position = positions[n];
    float* const row = to.row(n);
    if (position.text == PromptPosition::kNone)
      std::fill_n(row, row_.size(), 0.0f);
    else
      std::copy_n(position.text == pad ? pad_.data() : texts.row(next++), row_.size(), row);
    if (position.codec == PromptPosition::kVoice)
      for (size_t i = 0; i < row_.size(); ++i) row[i] += prompt.voice[i];
    else if (position.codec != PromptPosition::kNone)
      add_codec(position.codec, row);
    if (position.frame != PromptPosition::kNone)
      add_frame(std::span(prompt.codes).subspan(static_cast<size_t>(position.frame) * codebooks, codebooks), row);
  }
}

void Embedder::add_frame(std::span<const int32_t> codes, float* row) {
  SYRINX_CHECK(codes.size() == weights_->config.codebooks, "a frame of {} codes", codes.size());
  add_codec(codes[0], row);
  for (size_t g = 0; g + 1 < codes.size(); ++g) add_row(weights_->code_embeddings[g], codes[g + 1], row);
}

void Embedder::add_row(const nn::RowTable& table, int32_t id, float* row) {
  SYRINX_CHECK(id >= 0 && static_cast<size_t>(id) < table.rows(), "row {} of {}", id, table.rows());
  table.copy_row(static_cast<size_t>(id), row_.data());
  for (size_t i = 0; i < row_.size(); ++i) row[i] += row_[i];
}

}  // namespace syrinx::qwen_tts
