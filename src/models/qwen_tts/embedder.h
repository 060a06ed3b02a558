// Makes the talker's input rows (spec qwen3-tts.md, sections 2.4, 2.5 and 3.2; the maker's Qwen3TTSTalkerResizeMLP):
// tokens of the text side through the text projection, fc2(silu(fc1(embedding))), plus rows of the codec side.  A row
// does not depend on those that are made with it.  Weights are shared; scratch is its own: one call at a time.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "models/qwen_tts/prompt.h"
#include "models/qwen_tts/weights.h"
#include "nn/runner.h"

namespace syrinx::qwen_tts {

class Embedder {
 public:
  static constexpr size_t kRows = 126;  // of a call

  // The runner is borrowed and must outlive this; its scratch grows here to what a call needs.
  Embedder(std::shared_ptr<const Weights> weights, nn::Runner& runner);

  // Tokens of the text side, at most kRows, each one of the model's: [ids, D], until the next call.  Allocates nothing.
  View<const float, 2> text_rows(std::span<const int32_t> ids);
  // Positions of the prompt from `first` on, as many as `to` [n, D] has rows, at most kRows.  Allocates nothing.
  void prompt_rows(const Prompt& prompt, size_t first, View<float, 2> to);
  // Adds the embeddings of a frame's codes [codebooks] to a row [D].
  void add_frame(std::span<const int32_t> codes, float* row);
  // The projected tts_pad, [D].
  const float* pad() const { return pad_.data(); }

 private:
  void add_codec(int32_t id, float* row) { add_row(weights_->codec_embedding, id, row); }
  void add_row(const nn::RowTable& table, int32_t id, float* row);

  std::shared_ptr<const Weights> weights_;
  nn::Runner& runner_;
  nn::Crew crew_;
  nn::Plane embedded_, inner_, projected_;  // [kRows, X], [kRows, X], [kRows, D]
  std::vector<float> row_, pad_;            // [D]
  std::vector<int32_t> ids_;
};

}  // namespace syrinx::qwen_tts
