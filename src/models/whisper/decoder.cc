#include "models/whisper/decoder.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "kernels/softmax.h"
#include "kernels/vector_math.h"
#include "nn/linear.h"
#include "nn/rows.h"

namespace syrinx::whisper {

namespace {

// Rows of one pass of a prompt: whole blocks of the matrix products, and scratch that does not grow with prompts.
constexpr size_t kPassRows = 126;
// Rows of logits that align() takes at once.
constexpr size_t kAlignRows = 8;
// Multiplications of a job where others may have the team between jobs: a few milliseconds of two threads.
constexpr size_t kJobProducts = 250'000'000, kJobProductsF32 = 150'000'000;

// In several sums, which the compiler keeps in a vector.
float dot(const float* a, const float* b, size_t count) {
  constexpr size_t kSums = 16;
  float sums[kSums] = {};
  size_t i = 0;
  for (; i + kSums <= count; i += kSums)
    for (size_t j = 0; j < kSums; ++j) sums[j] += a[i + j] * b[i + j];
  float total = 0;
  for (const float sum : sums) total += sum;
  for (; i < count; ++i) total += a[i] * b[i];
  return total;
}

// logits[at] - log of the sum of the first `count` exponentials; the logits are overwritten.
float log_probability(std::span<float> all, size_t count, size_t at) {
  const std::span<float> logits = all.first(count);
  const float most = *std::max_element(logits.begin(), logits.end()), value = all[at];
  for (float& logit : logits) logit -= most;
  kernels::exp_array(logits, logits);
  double sum = 0;
  for (const float part : logits) sum += part;
  return static_cast<float>(static_cast<double>(value) - most - std::log(sum));
}

}  // namespace

Status DecoderState::check(const Model& model, size_t hypotheses) {
  const nn::DecoderConfig& c = model.weights().decoder.shape;
  if (hypotheses == 0 || hypotheses > kMaxHypotheses)
    return fail(Code::kLimitExceeded, "{} hypotheses at once, a decoder takes 1 to {}", hypotheses, kMaxHypotheses);
  const size_t positions = model.config().text_positions;
  const size_t bytes = 2 * hypotheses * c.layers * positions * c.key_width() * dtype_size(c.cache);
  if (bytes > nn::kMaxCacheBytes)
    return fail(Code::kLimitExceeded, "{} hypotheses need {} bytes, the limit is {}; ask for fewer", hypotheses, bytes,
                nn::kMaxCacheBytes);
  return {};
}

Result<DecoderState> DecoderState::make(const Model& model, size_t hypotheses) {
  SYRINX_TRY_VOID(check(model, hypotheses));
  const nn::DecoderConfig& c = model.weights().decoder.shape;
  const size_t positions = model.config().text_positions;
  DecoderState state;
  for (size_t i = 0; i < hypotheses; ++i) {
    SYRINX_TRY(nn::KvCache cache, nn::KvCache::make({.type = c.cache,
                                                     .layers = c.layers,
                                                     .key_heads = c.key_heads,
                                                     .head_size = c.head_size,
                                                     .capacity = positions}));
    state.caches_.push_back(std::move(cache));
  }
  return state;
}

void DecoderState::copy(size_t from, size_t to, size_t same) {
  SYRINX_CHECK(from < hypotheses() && to < hypotheses(), "hypothesis {} to {} of {}", from, to, hypotheses());
  caches_[to].copy_from(caches_[from], same);
}

Decoder::Decoder(std::shared_ptr<const Model> model, ThreadTeam& team, size_t max_hypotheses)
    : model_(std::move(model)),
      runner_(team),
      crew_(team),
      decoder_(model_->weights().decoder, runner_,
               {.rows = kPassRows,
                .streams = max_hypotheses,
                .positions = model_->config().text_positions,
                .cross_positions = model_->config().audio_positions}),
      max_step_rows_(max_hypotheses) {
  SYRINX_CHECK(max_hypotheses >= 1 && max_hypotheses <= kMaxHypotheses, "{} hypotheses", max_hypotheses);
  const Weights& w = model_->weights();
  const Config& c = w.config;
  logits_.prepare(std::max(max_hypotheses, kAlignRows), c.vocabulary, kernels::Storage::kF32);
  normed_.prepare(logits_.rows(), c.width, kernels::Storage::kF32);
  streams_.reserve(max_hypotheses);
  nn::reserve_linear(runner_, w.output.view, logits_.rows());
  const size_t kept = c.audio_positions * w.decoder.shape.head_size;  // keep_weights()
  for (int member = 0; member < team.size(); ++member) runner_.scratch(member, kept * sizeof(float));
}

void Decoder::embed(size_t row, int32_t token, size_t position) {
  const Weights& w = model_->weights();
  SYRINX_CHECK(token >= 0 && static_cast<size_t>(token) < w.config.vocabulary && position < w.config.text_positions,
               "token {} at position {}", token, position);
  float* const to = decoder_.input(row + 1).row(row);
  w.embedding.copy_row(static_cast<size_t>(token), to);
  const float* const at = w.decoder_positions.data() + position * w.config.width;
  for (size_t i = 0; i < w.config.width; ++i) to[i] += at[i];
}

View<const float, 2> Decoder::step(std::span<const DecoderInput> inputs, DecoderState& state) {
  SYRINX_CHECK(!inputs.empty() && inputs.size() <= max_step_rows_, "{} hypotheses in a step of {}", inputs.size(),
               max_step_rows_);
  streams_.clear();
  for (size_t i = 0; i < inputs.size(); ++i) {
    const DecoderInput& input = inputs[i];
    SYRINX_CHECK(input.hypothesis < state.hypotheses() && input.audio != nullptr, "hypothesis {} of {}",
                 input.hypothesis, state.hypotheses());
    embed(i, input.token, state.position(input.hypothesis));
    streams_.push_back({.cache = &state.cache(input.hypothesis), .first = i, .cross = input.audio});
  }
  run(streams_);
  return logits(0, inputs.size());
}

// One pass; its rows are left in the decoder's output.
void Decoder::run(std::span<const nn::Decoder::Rows> streams) {
  decoder_.begin(model_->weights().decoder, streams, nn::Decoder::Output::kRows);
  runner_.team().run([&](int member) {
    nn::Crew::Seat seat = crew_.everyone(member);
    decoder_.work(seat);
  });
  decoder_.end();
}

// Jobs that a pass becomes whose rows look at so many positions: one where nothing is cut.
size_t Decoder::parts_of_pass(size_t rows, size_t positions) const {
  if (!between_) return 1;
  const nn::DecoderConfig& c = model_->weights().decoder.shape;
  const size_t products = c.layers * (6 * c.width * c.width + 2 * c.width * c.hidden + 2 * c.width * positions);
  const size_t usual = model_->precision() == Precision::kF32 ? kJobProductsF32 : kJobProducts;
  const size_t most = job_products_ > 0 ? job_products_ : usual;
  const size_t at_most = std::max(most / products, kAlignRows);
  return (rows + at_most - 1) / at_most;
}

// then(first) is called behind each pass of rows_ tokens from that one on.  Parts of a pass are nearly equal, so that
// no row is alone that was not, for which some products have other roundings, and begin where align() takes logits.
template <class Then>
void Decoder::prefill_passes(size_t hypothesis, std::span<const int32_t> tokens, const AudioState& audio,
                             DecoderState& state, const Then& then) {
  for (size_t first = 0; first < tokens.size(); first += kPassRows) {
    const size_t rows = std::min(kPassRows, tokens.size() - first), parts = parts_of_pass(rows, audio.positions);
    size_t begin = 0;
    for (size_t i = 1; i <= parts; ++i) {
      const size_t near = (rows * i / parts + kAlignRows / 2) / kAlignRows * kAlignRows;
      const size_t end = i == parts ? rows : near;
      if (begin == end || end + 1 == rows) continue;
      prefill_pass(hypothesis, tokens.subspan(first + begin, end - begin), audio, state);
      give_way();
      then(first + begin);
      begin = end;
    }
  }
}

void Decoder::prefill_pass(size_t hypothesis, std::span<const int32_t> tokens, const AudioState& audio,
                           DecoderState& state) {
  for (size_t i = 0; i < tokens.size(); ++i) embed(i, tokens[i], state.position(hypothesis) + i);
  rows_ = tokens.size();
  const nn::Decoder::Rows stream{.cache = &state.cache(hypothesis), .count = rows_, .cross = &audio};
  run({&stream, 1});
}

std::span<const float> Decoder::prefill(size_t hypothesis, std::span<const int32_t> tokens, const AudioState& audio,
                                        DecoderState& state) {
  SYRINX_CHECK(!tokens.empty() && hypothesis < state.hypotheses() && tokens.size() <= state.room(hypothesis) &&
                   audio.positions > 0,
               "{} tokens for hypothesis {}", tokens.size(), hypothesis);
  prefill_passes(hypothesis, tokens, audio, state, [](size_t) {});
  return {logits(rows_ - 1, 1).row(0), model_->config().vocabulary};
}

void Decoder::align(size_t hypothesis, std::span<const int32_t> tokens, const AudioState& audio,
                    std::span<const AlignmentHead> heads, size_t text_tokens, DecoderState& state,
                    std::vector<float>& weights, std::vector<float>& log_probabilities) {
  const size_t vocabulary = model_->config().vocabulary;
  SYRINX_CHECK(!tokens.empty() && hypothesis < state.hypotheses() && tokens.size() <= state.room(hypothesis) &&
                   audio.positions > 0 && text_tokens >= 1 && text_tokens <= vocabulary,
               "{} tokens for hypothesis {}, {} of text", tokens.size(), hypothesis, text_tokens);
  weights.resize(heads.size() * tokens.size() * audio.positions);
  log_probabilities.resize(tokens.size() - 1);
  decoder_.observe_cross([this](const nn::Decoder::CrossSeen& seen) { keep_weights(seen); });
  kept_ = {.heads = heads, .weights = weights.data(), .head_stride = tokens.size() * audio.positions};
  prefill_passes(hypothesis, tokens, audio, state, [&](size_t first) {
    kept_.weights += rows_ * audio.positions;
    for (size_t row = 0; row < rows_ && first + row < log_probabilities.size(); row += kAlignRows) {
      const size_t count = std::min({kAlignRows, rows_ - row, log_probabilities.size() - first - row});
      logits(row, count);
      runner_.split(count, [&](size_t begin, size_t end) {
        for (size_t i = begin; i < end; ++i) {
          const size_t at = first + row + i;
          log_probabilities[at] =
              log_probability({logits_.f32(i), vocabulary}, text_tokens, static_cast<size_t>(tokens[at + 1]));
        }
      });
      give_way();
    }
  });
  decoder_.observe_cross({});
}

// The last norm and the output of some rows of the pass.
View<const float, 2> Decoder::logits(size_t first, size_t count) {
  const Weights& w = model_->weights();
  const View<const float, 2> x = decoder_.output(first + count);
  const View<float, 2> normed = nn::rows_of(normed_, count), to = nn::rows_of(logits_, count);
  kernels::layer_norm({x.row(first), {count, x.extent(1)}, {x.stride(0), 1}}, w.decoder_norm.affine(),
                      w.decoder.shape.epsilon, normed);
  runner_.team().run([&](int member) {
    const nn::Part part{.member = member, .rank = member, .size = runner_.team().size()};
    nn::stream_linear_part(runner_, part, w.output.view, normed, {}, to);
  });
  return to;
}

// Keeps the weights of a head that align() asked for.
void Decoder::keep_weights(const nn::Decoder::CrossSeen& seen) {
  for (size_t i = 0; i < kept_.heads.size(); ++i) {
    if (kept_.heads[i].layer != seen.layer || kept_.heads[i].head != seen.head) continue;
    const nn::CrossCache& audio = *seen.cross;
    const size_t size = audio.head_size, positions = audio.positions;
    auto* const keys = reinterpret_cast<float*>(runner_.scratch(seen.member, positions * size * sizeof(float)).data());
    const View<float, 2> widened(keys, {positions, size});
    if (audio.type == DType::kF32) {
      nn::copy_rows(audio.head_keys<float>(seen.layer, seen.head), widened);
    } else {
      nn::copy_rows(audio.head_keys<uint16_t>(seen.layer, seen.head), widened);
    }
    for (size_t n = 0; n < seen.queries.extent(0); ++n) {
      float* const row = kept_.weights + i * kept_.head_stride + n * positions;
      for (size_t p = 0; p < positions; ++p) row[p] = dot(seen.queries.row(n), keys + p * size, size);
      const View<float, 2> view(row, {1, positions});
      kernels::softmax(view, 1.0f / std::sqrt(static_cast<float>(size)), view);
    }
  }
}

}  // namespace syrinx::whisper
