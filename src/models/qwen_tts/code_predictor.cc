#include "models/qwen_tts/code_predictor.h"

#include <algorithm>

#include "base/check.h"
#include "nn/linear.h"
#include "nn/rows.h"

namespace syrinx::qwen_tts {

Result<std::unique_ptr<CodePredictor>> CodePredictor::make(std::shared_ptr<const Weights> weights, nn::Runner& runner,
                                                           size_t streams) {
  SYRINX_CHECK(streams >= 1 && streams <= kMaxStreams, "{} streams", streams);
  const nn::DecoderConfig& shape = weights->predictor.shape;
  const size_t rows = shape.layers * shape.key_heads * weights->config.codebooks;
  const size_t bytes = 2 * rows * shape.head_size * dtype_size(shape.cache);  // keys and values of one
  if (bytes > nn::kMaxCacheBytes / streams)
    return fail(Code::kLimitExceeded,
                "the code predictor needs {} bytes for each of {} streams, the limit is {} for all; take fewer", bytes,
                streams, nn::kMaxCacheBytes);
  std::unique_ptr<CodePredictor> made(new CodePredictor(std::move(weights), runner, streams));
  for (size_t n = 0; n < streams; ++n) {
    SYRINX_TRY(nn::KvCache cache, nn::KvCache::make({.type = shape.cache,
                                                     .layers = shape.layers,
                                                     .key_heads = shape.key_heads,
                                                     .head_size = shape.head_size,
                                                     .capacity = made->weights_->config.codebooks}));
    made->caches_.push_back(std::move(cache));
  }
  return made;
}

CodePredictor::CodePredictor(std::shared_ptr<const Weights> weights, nn::Runner& runner, size_t streams)
    : weights_(std::move(weights)),
      runner_(runner),
      crew_(runner.team()),
      decoder_(weights_->predictor, runner,
               {.rows = 2 * streams, .streams = streams, .positions = weights_->config.codebooks}),
      sampler_(weights_->config.predictor_codes) {
  const Config& config = weights_->config;
  norm_.prepare(streams, config.predictor.width, runner_.team().size());
  inputs_.prepare(2 * streams, config.talker.width, kernels::Storage::kF32);
  hidden_.prepare(streams, config.predictor.width, kernels::Storage::kF32);
  logits_.prepare(streams, config.predictor_codes, kernels::Storage::kF32);
  if (weights_->predictor_projection) nn::reserve_linear(runner_, weights_->predictor_projection->view, 2 * streams);
  for (const kernels::OwnedMatrix& head : weights_->code_heads) nn::reserve_linear(runner_, head.view, streams);
  rows_.reserve(streams);
}

bool CodePredictor::predict(std::span<Frame> frames, const nn::PassCut& cut) {
  SYRINX_CHECK(frames.size() <= caches_.size(), "{} frames, made for {}", frames.size(), caches_.size());
  bool is_finite = true;
  for (size_t n = 0; n < frames.size(); ++n) caches_[n].reset();
  for (size_t pass = 0; pass + 1 < weights_->config.codebooks && !frames.empty(); ++pass) {
    put_inputs(frames, pass);
    run(frames.size(), pass, cut);
    is_finite = draw(frames, pass) && is_finite;
  }
  return is_finite;
}

// Embeddings are of the talker's width; a code that is none stands for the first one.
void CodePredictor::put_inputs(std::span<const Frame> frames, size_t pass) {
  const size_t count = pass == 0 ? 2 : 1;
  rows_.clear();
  const nn::RowTable& table = pass == 0 ? weights_->codec_embedding : weights_->code_embeddings[pass - 1];
  for (size_t n = 0; n < frames.size(); ++n) {
    const int32_t code = std::max(frames[n].codes[pass], 0);
    SYRINX_CHECK(static_cast<size_t>(code) < table.rows(), "code {} of {}", code, table.rows());
    if (pass == 0) std::copy_n(frames[n].hidden, weights_->config.talker.width, inputs_.f32(2 * n));
    table.copy_row(static_cast<size_t>(code), inputs_.f32(n * count + count - 1));
    rows_.push_back({.cache = &caches_[n], .first = n * count, .count = count});
  }
}

void CodePredictor::run(size_t frames, size_t pass, const nn::PassCut& cut) {
  const size_t rows = rows_.back().first + rows_.back().count;
  const View<const float, 2> inputs = nn::rows_of(inputs_, rows);
  const View<float, 2> x = decoder_.input(rows), hidden = nn::rows_of(hidden_, frames),
                       logits = nn::rows_of(logits_, frames);
  if (!weights_->predictor_projection) nn::copy_rows(inputs, x);
  decoder_.begin(weights_->predictor, rows_, nn::Decoder::Output::kLastRows);
  const nn::RowNorm::Work norm{.kind = nn::Norm::kRms,
                               .weights = &weights_->predictor_norm,
                               .epsilon = weights_->config.predictor.epsilon,
                               .x = decoder_.output(frames)};
  nn::run_pass(
      runner_, crew_, decoder_, weights_->config.predictor.layers, cut,
      [&](nn::Crew::Seat& seat) {
        if (!weights_->predictor_projection) return;
        seat.stage([&](const nn::Part& part) {
          nn::stream_linear_part(runner_, part, weights_->predictor_projection->view, inputs, {}, x);
        });
      },
      [&](nn::Crew::Seat& seat) {
        norm_.stage(seat, norm);
        seat.stage([&](const nn::Part& part) {
          const View<const float, 2> normed = norm_.rows(part, norm);
          if (part.rank == 0 && probe_) nn::copy_rows(normed, hidden);
          nn::stream_linear_part(runner_, part, weights_->code_heads[pass].view, normed, {}, logits);
        });
      });
  if (!probe_) return;
  probe_("hidden", pass, hidden);
  probe_("logits", pass, logits);
}

bool CodePredictor::draw(std::span<Frame> frames, size_t pass) {
  bool is_finite = true;
  for (size_t n = 0; n < frames.size(); ++n) {
    Frame& frame = frames[n];
    frame.place.codebook = static_cast<uint32_t>(pass + 1);
    const std::span<float> logits(logits_.f32(n), weights_->config.predictor_codes);
    int32_t code = sampler_.draw(logits, frame.settings, {}, frame.place);
    if (code == kFault) is_finite = false;
    if (!frame.forced.empty()) code = frame.forced[pass + 1];
    frame.codes[pass + 1] = code;
  }
  return is_finite;
}

}  // namespace syrinx::qwen_tts
