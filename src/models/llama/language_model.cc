#include "models/llama/language_model.h"

#include <algorithm>

#include "nn/linear.h"
#include "nn/rows.h"

namespace syrinx::llama {

LanguageModel::LanguageModel(std::shared_ptr<const Weights> weights, nn::Runner& runner, size_t streams)
    : weights_(std::move(weights)),
      runner_(runner),
      crew_(runner.team()),
      decoder_(*weights_, runner, {.rows = kPassRows, .streams = streams}) {
  SYRINX_CHECK(streams >= 1 && streams <= kMaxStreams, "{} streams", streams);
  norm_.prepare(streams, weights_->config.width, runner_.team().size());
  logits_.prepare(streams, weights_->config.vocabulary, kernels::Storage::kF32);
  nn::reserve_linear(runner_, weights_->head.view, streams);
  rows_.reserve(streams);
}

Result<nn::KvCache> LanguageModel::make_cache(size_t positions) const {
  const size_t most = std::min(nn::kMaxPositions, weights_->config.context);
  if (positions > most)
    return fail(Code::kLimitExceeded, "a conversation of {} tokens, the limit of this model is {}", positions, most);
  const nn::DecoderConfig& shape = weights_->shape;
  return nn::KvCache::make({.type = shape.cache,
                            .layers = shape.layers,
                            .key_heads = shape.key_heads,
                            .head_size = shape.head_size,
                            .capacity = positions});
}

View<float, 2> LanguageModel::read(std::span<const Tokens> streams, bool wanted, const PassCut& cut) {
  SYRINX_CHECK(!streams.empty() && streams.size() <= logits_.rows(), "{} streams, made for {}", streams.size(),
               logits_.rows());
  rows_.clear();
  size_t rows = 0;
  for (const Tokens& stream : streams) {
    rows_.push_back({.cache = stream.cache, .first = rows, .count = stream.ids.size()});
    rows += stream.ids.size();
  }
  const View<float, 2> x = decoder_.input(rows);
  for (size_t n = 0; n < streams.size(); ++n)
    for (size_t i = 0; i < streams[n].ids.size(); ++i) {
      const auto id = static_cast<size_t>(streams[n].ids[i]);
      SYRINX_CHECK(id < weights_->config.vocabulary, "token {} of {}", streams[n].ids[i], weights_->config.vocabulary);
      weights_->embedding.copy_row(id, x.row(rows_[n].first + i));
    }
  decoder_.begin(*weights_, rows_, wanted ? nn::Decoder::Output::kLastRows : nn::Decoder::Output::kNone);
  const View<float, 2> logits = nn::rows_of(logits_, streams.size());
  const nn::RowNorm::Work norm{.kind = nn::Norm::kRms,
                               .weights = &weights_->norm,
                               .epsilon = weights_->config.epsilon,
                               .x = decoder_.output(streams.size())};
  nn::run_pass(
      runner_, crew_, decoder_, weights_->config.layers, cut, [](nn::Crew::Seat&) {},
      [&](nn::Crew::Seat& seat) {
        if (!wanted) return;
        norm_.stage(seat, norm);
        seat.stage([&](const nn::Part& part) {
          nn::stream_linear_part(runner_, part, weights_->head.view, norm_.rows(part, norm), {}, logits);
        });
      });
  return logits;
}

Status LanguageModel::prompt(std::span<const int32_t> ids, nn::KvCache& cache) {
  if (ids.size() > cache.room())
    return fail(Code::kLimitExceeded, "{} tokens more after position {} of a conversation that has room for {}",
                ids.size(), cache.position, cache.position + cache.room());
  for (const int32_t id : ids)
    if (id < 0 || static_cast<size_t>(id) >= weights_->config.vocabulary)
      return fail(Code::kInvalidArgument, "token {} of a model that knows {}; its tokenizer is another model's", id,
                  weights_->config.vocabulary);
  for (size_t first = 0; first < ids.size(); first += kPassRows) {
    const Tokens tokens{.ids = ids.subspan(first, std::min(kPassRows, ids.size() - first)), .cache = &cache};
    read({&tokens, 1}, false);
  }
  return {};
}

}  // namespace syrinx::llama
