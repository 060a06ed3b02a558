#include "models/whisper/window_decoder.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include "kernels/vector_math.h"
#include "models/whisper/align.h"
#include "models/whisper/words.h"
#include "text/compression_ratio.h"

namespace syrinx::whisper {
namespace {

constexpr size_t kMaxLoopTokens = 32;
constexpr ptrdiff_t kLeastSpeech = 4;  // text tokens: "You." is what noise is heard as

// Where no file names the alignment heads, the maker takes all in the second half of the layers.
std::vector<AlignmentHead> alignment_heads(const Config& config) {
  if (!config.alignment_heads.empty()) return config.alignment_heads;
  std::vector<AlignmentHead> heads;
  for (size_t layer = config.decoder_layers / 2; layer < config.decoder_layers; ++layer)
    for (size_t head = 0; head < config.decoder_heads; ++head) heads.push_back({layer, head});
  return heads;
}

// The sum of exp(scale (x - greatest)) over all values; leaves the terms in `terms`.
double exponentials(std::span<const float> values, float greatest, float scale, std::span<float> terms) {
  for (size_t i = 0; i < values.size(); ++i) terms[i] = scale * (values[i] - greatest);
  kernels::exp_array(terms, terms);
  double sum = 0;
  for (const float term : terms) sum += term;
  return sum;
}

// The id at which the running sum of the terms passes `part` of `sum`.
size_t pick(std::span<const float> terms, double sum, double part) {
  double run = 0;
  size_t last = 0;
  for (size_t i = 0; i < terms.size(); ++i) {
    if (terms[i] <= 0) continue;
    last = i;
    run += terms[i];
    if (run > part * sum) break;
  }
  return last;
}

std::string_view strip_spaces(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\n')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\n')) text.remove_suffix(1);
  return text;
}

float compression_ratio(const text::ByteBpe& bpe, std::span<const int32_t> ids) {
  return static_cast<float>(text::compression_ratio(strip_spaces(bpe.decode(ids))));
}

bool is_silent(const DecodedWindow& window, const DecodeSettings& settings) {
  return window.mean_log_probability < settings.log_probability_threshold &&
         window.no_speech > settings.no_speech_threshold;
}

bool is_nearly_probable(const DecodedWindow& window, const DecodeSettings& settings) {
  return window.mean_log_probability >= settings.speech_log_probability_threshold &&
         window.compression_ratio <= settings.compression_ratio_threshold;
}

}  // namespace

bool has_failed(const DecodedWindow& window, const DecodeSettings& settings) {
  const bool improbable = window.mean_log_probability < settings.log_probability_threshold;
  return !is_silent(window, settings) &&
         (improbable || window.compression_ratio > settings.compression_ratio_threshold);
}

bool ends_in_loop(std::span<const int32_t> ids) {
  for (size_t n = 1; n <= std::min(kMaxLoopTokens, ids.size() / 3); ++n) {
    const auto last = ids.last(2 * n);
    if (std::ranges::equal(last, ids.subspan(ids.size() - 3 * n, 2 * n))) return true;
  }
  return false;
}

Result<std::unique_ptr<WindowDecoder>> WindowDecoder::create(std::shared_ptr<const Model> model,
                                                             const text::ByteBpe& bpe, const Tokens& tokens,
                                                             ThreadTeam& team) {
  SYRINX_TRY(DecoderState state, DecoderState::make(*model, kUsualBestOf));
  return std::unique_ptr<WindowDecoder>(new WindowDecoder(std::move(model), bpe, tokens, team, std::move(state)));
}

WindowDecoder::WindowDecoder(std::shared_ptr<const Model> model, const text::ByteBpe& bpe, const Tokens& tokens,
                             ThreadTeam& team, DecoderState state)
    : model_(std::move(model)),
      bpe_(bpe),
      tokens_(tokens),
      timed_(make_rules(bpe, tokens, true)),
      untimed_(make_rules(bpe, tokens, false)),
      alignment_heads_(alignment_heads(model_->config())),
      team_(team),
      decoder_(std::make_unique<Decoder>(model_, team, state.hypotheses())),
      state_(std::move(state)),
      logits_(state_.hypotheses() * model_->config().vocabulary),
      exponentials_(model_->config().vocabulary) {
  candidates_.reserve(BeamSearch::kMaxBeam * BeamSearch::kMaxCandidates);
  inputs_.reserve(std::max(BeamSearch::kMaxBeam, kMaxBestOf));
}

void WindowDecoder::reserve(size_t hypotheses) {
  if (hypotheses <= state_.hypotheses()) return;
  // All memory first: where it is refused, the decoder stays as it was.
  logits_.reserve(hypotheses * model_->config().vocabulary);
  Result<DecoderState> state = DecoderState::make(*model_, hypotheses);
  SYRINX_CHECK(state.has_value(), "{}", state.error().message);
  auto decoder = std::make_unique<Decoder>(model_, team_, hypotheses);
  decoder->set_between(between_);
  logits_.resize(hypotheses * model_->config().vocabulary);
  state_ = *std::move(state);
  decoder_ = std::move(decoder);
}

size_t WindowDecoder::max_tokens(const DecodeSettings& settings) const {
  return std::min(settings.max_tokens, model_->config().text_positions / 2);
}

const Language& WindowDecoder::detect_language(const AudioState& audio, float* probability) {
  SYRINX_CHECK(tokens_.multilingual);
  state_.reset(0);
  const std::span<const float> logits = decoder_->prefill(0, std::span(&tokens_.start_of_transcript, 1), audio, state_);
  std::vector<float> values;
  for (const Language& language : tokens_.languages) values.push_back(logits[static_cast<size_t>(language.token)]);
  const auto best = static_cast<size_t>(std::ranges::max_element(values) - values.begin());
  if (probability != nullptr) *probability = static_cast<float>(std::exp(values[best] - log_sum_exp(values)));
  return tokens_.languages[best];
}

// The prompt into hypothesis 0, and the logits behind it into the first row; gives the probability of no speech.
float WindowDecoder::read_prompt(const AudioState& audio, const WindowPrompt& prompt) {
  std::vector<int32_t> before;
  if (!prompt.previous.empty()) before.push_back(tokens_.start_of_previous);
  before.insert(before.end(), prompt.previous.begin(), prompt.previous.end());
  const std::vector<int32_t> own = tokens_.prompt(prompt.language, prompt.translate, prompt.timestamps);
  before.push_back(own.front());
  state_.reset(0);
  std::span<const float> logits = decoder_->prefill(0, before, audio, state_);
  const double no_speech = logits[static_cast<size_t>(tokens_.no_speech)] - log_sum_exp(logits);
  give_way();
  if (own.size() > 1) logits = decoder_->prefill(0, std::span(own).subspan(1), audio, state_);
  std::ranges::copy(logits, logits_.begin());
  give_way();
  return static_cast<float>(std::exp(no_speech));
}

void WindowDecoder::extend(Sequence& sequence, std::span<float> logits, const Rules& rules, float temperature,
                           Rng& rng) {
  apply_rules(rules, tokens_, sequence.ids, logits);
  auto next = static_cast<size_t>(std::ranges::max_element(logits) - logits.begin());
  const float greatest = logits[next];
  if (temperature > 0) {
    const double sum = exponentials(logits, greatest, 1 / temperature, exponentials_);
    next = pick(exponentials_, sum, static_cast<double>(rng.uniform()));
  }
  const double sum = exponentials(logits, greatest, 1, exponentials_);
  const double log_probability = logits[next] - greatest - std::log(sum);
  sequence.sum += log_probability;
  if (static_cast<int32_t>(next) == tokens_.end_of_text) {
    sequence.ended = true;
    return;
  }
  sequence.ids.push_back(static_cast<int32_t>(next));
  sequence.log_probabilities.push_back(static_cast<float>(log_probability));
}

bool WindowDecoder::repeats_itself(const Sequence& sequence, const DecodeSettings& settings) const {
  std::array<int32_t, 3 * kMaxLoopTokens> tail = {};  // as much of the text as a loop can take, at the array's end
  size_t count = 0;
  for (auto id = sequence.ids.rbegin(); id != sequence.ids.rend() && count < tail.size(); ++id)
    if (tokens_.is_text(*id)) tail[tail.size() - ++count] = *id;
  return ends_in_loop(std::span(tail).last(count)) &&
         compression_ratio(bpe_, sequence.ids) > settings.compression_ratio_threshold;
}

DecodedWindow WindowDecoder::finish(const Sequence& sequence, float no_speech, float temperature) const {
  DecodedWindow window;
  window.tokens = sequence.ids;
  window.log_probabilities = sequence.log_probabilities;
  window.mean_log_probability = static_cast<float>(sequence.sum / static_cast<double>(sequence.ids.size() + 1));
  window.no_speech = no_speech;
  window.temperature = temperature;
  window.compression_ratio = compression_ratio(bpe_, sequence.ids);
  return window;
}

DecodedWindow WindowDecoder::decode_at(float temperature, const AudioState& audio, const WindowPrompt& prompt,
                                       const DecodeSettings& settings, uint64_t stream) {
  const size_t vocabulary = model_->config().vocabulary, most = max_tokens(settings);
  const Rules& rules = prompt.timestamps ? timed_ : untimed_;
  const float no_speech = read_prompt(audio, prompt);
  std::vector<Sequence> sequences(temperature > 0 ? settings.best_of : 1);
  for (Sequence& sequence : sequences) sequence.reserve(most);
  for (size_t h = 1; h < sequences.size(); ++h) {
    state_.copy(0, h);
    std::ranges::copy(logits_of(0), logits_of(h).begin());
    give_way();
  }
  Rng rng(settings.seed, stream);
  for (size_t step = 0; step < most; ++step) {
    inputs_.clear();
    for (size_t h = 0; h < sequences.size(); ++h) {
      Sequence& sequence = sequences[h];
      if (sequence.ended) continue;
      extend(sequence, logits_of(h), rules, temperature, rng);
      if (!sequence.ended && settings.stop_loops) sequence.ended = repeats_itself(sequence, settings);
      if (!sequence.ended && state_.room(h) > 0) inputs_.push_back({h, sequence.ids.back(), &audio});
    }
    if (inputs_.empty() || step + 1 == most) break;
    if (inputs_.size() > 1) give_way();  // behind a draw from each
    const View<const float, 2> logits = decoder_->step(inputs_, state_);
    for (size_t i = 0; i < inputs_.size(); ++i)
      std::ranges::copy(std::span(logits.row(i), vocabulary), logits_of(inputs_[i].hypothesis).begin());
    give_way();
  }
  return finish(best_of(sequences, settings.length_penalty), no_speech, temperature);
}

// The likeliest tokens behind each sequence of the search; members share the sequences.  `logits` are the last step's,
// null: what the prompt has left.
void WindowDecoder::find_candidates(const Rules& rules, const View<const float, 2>* logits) {
  const std::span<const Sequence> live = beam_.live();
  const size_t count = beam_.candidates();
  candidates_.resize(live.size() * count);
  team_.run([&](int member) {
    const Range own = split_range(live.size(), member, team_.size());
    for (size_t i = own.begin; i < own.end; ++i) {
      const std::span<float> row = logits_of(i);
      if (logits != nullptr) std::ranges::copy(std::span(logits->row(i), row.size()), row.begin());
      apply_rules(rules, tokens_, live[i].ids, row);
      whisper::find_candidates(row, std::span(candidates_).subspan(i * count, count));
    }
  });
}

// By a beam.  A text that repeats itself ends as a greedy one does: when the likeliest sequence does so.
DecodedWindow WindowDecoder::search(const AudioState& audio, const WindowPrompt& prompt,
                                    const DecodeSettings& settings) {
  const Rules& rules = prompt.timestamps ? timed_ : untimed_;
  const size_t most = max_tokens(settings);
  const float no_speech = read_prompt(audio, prompt);
  const size_t read = state_.position(0);
  beam_.begin({.beam = settings.beam,
               .patience = settings.patience,
               .max_tokens = model_->config().text_positions / 2,  // the same for each, so that one makes room for all
               .end_of_text = tokens_.end_of_text});
  caches_.begin(settings.beam);
  find_candidates(rules, nullptr);
  for (size_t step = 1; beam_.extend(candidates_) && step < most && state_.room(caches_.of(0)) > 0; ++step) {
    if (settings.stop_loops && repeats_itself(beam_.live().front(), settings)) break;
    caches_.follow(beam_, read, [&](size_t from, size_t to, size_t same) { state_.copy(from, to, same); });
    give_way();
    inputs_.clear();
    for (size_t i = 0; i < beam_.live().size(); ++i)
      inputs_.push_back({caches_.of(i), beam_.live()[i].ids.back(), &audio});
    const View<const float, 2> logits = decoder_->step(inputs_, state_);
    give_way();
    find_candidates(rules, &logits);
  }
  return finish(beam_.result(settings.length_penalty), no_speech, 0);
}

// A beam finds a text for silence that is probable enough to be kept ("You"), where the greedy one is not: what may be
// silence is none only if both say so.
DecodedWindow WindowDecoder::decode(const AudioState& audio, const WindowPrompt& prompt, const DecodeSettings& settings,
                                    uint64_t stream) {
  SYRINX_CHECK(!settings.temperatures.empty() && settings.best_of >= 1);
  reserve(std::max(settings.beam, settings.best_of));
  DecodedWindow window;
  std::optional<DecodedWindow> first;  // of speech, where it says nothing or is improbable by little
  for (size_t i = 0; i < settings.temperatures.size(); ++i) {
    const float temperature = settings.temperatures[i];
    const uint64_t draws = stream * settings.temperatures.size() + i;
    const bool is_search = temperature == 0 && settings.beam > 0;
    window = is_search ? search(audio, prompt, settings) : decode_at(temperature, audio, prompt, settings, draws);
    if (is_search && !settings.is_speech && window.no_speech > settings.no_speech_threshold) {
      DecodedWindow greedy = decode_at(temperature, audio, prompt, settings, draws);
      if (is_silent(greedy, settings)) window = std::move(greedy);
    }
    const auto said = std::ranges::count_if(window.tokens, [&](int32_t id) { return tokens_.is_text(id); });
    const bool is_missed = settings.is_speech && (said == 0 || is_silent(window, settings));
    if (!is_missed && !has_failed(window, settings)) return window;
    if (i > 0 || !settings.is_speech) continue;
    const bool is_near = said >= kLeastSpeech && is_nearly_probable(window, settings);
    window.is_speech = is_missed && is_near;
    if (window.is_speech) return window;
    if (is_missed || is_near) first = window;
  }
  return first ? *std::move(first) : window;
}

std::vector<Word> WindowDecoder::time_words(const AudioState& audio, const WindowPrompt& prompt,
                                            std::span<const int32_t> text_ids, size_t frames) {
  const size_t positions = std::min(audio.positions, frames / kFramesPerTime);
  std::vector<Word> words =
      split_words(bpe_, text_ids, prompt.language != nullptr ? prompt.language->code : std::string_view("en"));
  if (words.empty() || positions == 0) return {};
  std::vector<int32_t> ids = tokens_.prompt(prompt.language, prompt.translate, false);
  const size_t first = ids.size() - 1;  // the row that tells the first text token: that no times are wanted
  ids.insert(ids.end(), text_ids.begin(), text_ids.end());
  ids.push_back(tokens_.end_of_text);
  state_.reset(0);
  decoder_->align(0, ids, audio, alignment_heads_, static_cast<size_t>(tokens_.end_of_text), state_, weights_,
                  log_probabilities_);
  give_way();
  const std::vector<float> matrix =
      alignment_matrix(weights_, alignment_heads_.size(), ids.size(), audio.positions, positions, between_);
  give_way();
  const size_t rows = text_ids.size() + 1;
  std::vector<float> cost(rows * positions);
  for (size_t i = 0; i < cost.size(); ++i) cost[i] = -matrix[first * positions + i];
  const std::vector<size_t> starts = entries(warp(cost, rows, positions), rows);
  size_t begin = 0;
  for (Word& word : words) {
    const size_t end = begin + word.tokens.size();
    word.start_s = static_cast<double>(starts[begin]) * kSecondsPerTime;
    word.end_s = static_cast<double>(starts[end]) * kSecondsPerTime;
    double sum = 0;
    for (size_t i = begin; i < end; ++i) {
      const double probability = std::exp(static_cast<double>(log_probabilities_[first + i]));
      word.token_times.push_back({.start_s = static_cast<double>(starts[i]) * kSecondsPerTime,
                                  .end_s = static_cast<double>(starts[i + 1]) * kSecondsPerTime,
                                  .probability = static_cast<float>(probability)});
      sum += probability;
    }
    word.probability = static_cast<float>(sum / static_cast<double>(end - begin));
    begin = end;
  }
  return words;
}

}  // namespace syrinx::whisper
