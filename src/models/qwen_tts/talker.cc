#include "models/qwen_tts/talker.h"

#include <algorithm>

#include "base/check.h"
#include "nn/linear.h"
#include "nn/rows.h"

namespace syrinx::qwen_tts {

Talker::Talker(std::shared_ptr<const Weights> weights, nn::Runner& runner, size_t streams)
    : weights_(std::move(weights)),
      runner_(runner),
      crew_(runner.team()),
      decoder_(weights_->talker, runner, {.rows = kPassRows, .streams = streams}) {
  SYRINX_CHECK(streams >= 1 && streams <= kMaxStreams, "{} streams", streams);
  const Config& config = weights_->config;
  norm_.prepare(streams, config.talker.width, runner_.team().size());
  hidden_.prepare(streams, config.talker.width, kernels::Storage::kF32);
  logits_.prepare(streams, config.vocabulary, kernels::Storage::kF32);
  nn::reserve_linear(runner_, weights_->codec_head.view, streams);
  rows_.reserve(streams);
}

size_t Talker::most_positions() const { return std::min(nn::kMaxPositions, weights_->config.talker.context); }

Result<nn::KvCache> Talker::make_cache(size_t positions) const {
  const size_t most = most_positions();
  if (positions > most)
    return fail(Code::kLimitExceeded, "a stream of {} positions, the limit of this model is {}", positions, most);
  const nn::DecoderConfig& shape = weights_->talker.shape;
  return nn::KvCache::make({.type = shape.cache,
                            .layers = shape.layers,
                            .key_heads = shape.key_heads,
                            .head_size = shape.head_size,
                            .capacity = positions});
}

Talker::Read Talker::read(std::span<const Stream> streams, bool wanted, const nn::PassCut& cut) {
  SYRINX_CHECK(!streams.empty() && streams.size() <= logits_.rows(), "{} streams, made for {}", streams.size(),
               logits_.rows());
  rows_.clear();
  size_t rows = 0;
  for (const Stream& stream : streams) {
    rows_.push_back({.cache = stream.cache, .first = rows, .count = stream.rows});
    rows += stream.rows;
  }
  decoder_.begin(weights_->talker, rows_, wanted ? nn::Decoder::Output::kLastRows : nn::Decoder::Output::kNone);
  const View<float, 2> hidden = nn::rows_of(hidden_, streams.size()), logits = nn::rows_of(logits_, streams.size());
  const nn::RowNorm::Work norm{.kind = nn::Norm::kRms,
                               .weights = &weights_->talker_norm,
                               .epsilon = weights_->config.talker.epsilon,
                               .x = decoder_.output(streams.size())};
  nn::run_pass(
      runner_, crew_, decoder_, weights_->config.talker.layers, cut, [](nn::Crew::Seat&) {},
      [&](nn::Crew::Seat& seat) {
        if (!wanted) return;
        norm_.stage(seat, norm);
        seat.stage([&](const nn::Part& part) {
          const View<const float, 2> normed = norm_.rows(part, norm);
          if (part.rank == 0) nn::copy_rows(normed, hidden);
          nn::stream_linear_part(runner_, part, weights_->codec_head.view, normed, {}, logits);
        });
      });
  return {.hidden = hidden, .logits = logits};
}

}  // namespace syrinx::qwen_tts
