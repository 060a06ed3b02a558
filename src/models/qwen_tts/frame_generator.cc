#include "models/qwen_tts/frame_generator.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "kernels/argmax.h"
#include "kernels/block_exponentials.h"

namespace syrinx::qwen_tts {
namespace {

constexpr size_t kMinFrames = 2;  // the maker's min_new_tokens: no end before so many

nn::SamplerSettings sampler_settings(const DrawSettings& draws, float penalty) {
  return {.temperature = draws.samples ? draws.temperature : 0.0f,
          .top_k = draws.top_k,
          .top_p = draws.top_p,
          .penalty = penalty};
}

Status check_draws(const DrawSettings& draws) {
  if (!std::isfinite(draws.temperature) || draws.temperature < 0)
    return fail(Code::kInvalidArgument, "a temperature of {}; it must be 0 or more", draws.temperature);
  if (!(draws.top_p > 0 && draws.top_p <= 1))
    return fail(Code::kInvalidArgument, "a top_p of {}; it must be above 0 and at most 1", draws.top_p);
  return {};
}

Status check_settings(const SpeechSettings& settings) {
  SYRINX_TRY_VOID(check_draws(settings.draws.talker));
  SYRINX_TRY_VOID(check_draws(settings.draws.predictor));
  if (!std::isfinite(settings.draws.penalty) || settings.draws.penalty <= 0)
    return fail(Code::kInvalidArgument, "a penalty of {}; it must be above 0, and 1 changes nothing",
                settings.draws.penalty);
  return {};
}

Status check_prompt(const Prompt& prompt, size_t width) {
  if (prompt.positions.empty()) return fail(Code::kInvalidArgument, "a prompt without positions");
  const bool has_voice = std::ranges::any_of(
      prompt.positions, [](const PromptPosition& one) { return one.codec == PromptPosition::kVoice; });
  if ((has_voice || !prompt.voice.empty()) && prompt.voice.size() != width)
    return fail(Code::kInvalidArgument, "a prompt whose voice has {} numbers; it must have {}", prompt.voice.size(),
                width);
  return {};
}

// A row that comes alone is rounded otherwise (nn/decoder.h): no slice is one row, so that bits do not depend on
// slices.
size_t slice_rows(size_t left, size_t most) {
  const size_t count = std::min(left, std::max<size_t>(most, 2));
  if (left - count != 1) return count;
  return count > 2 ? count - 1 : left;
}

}  // namespace

// Two positions at least are left: one row alone is rounded otherwise.
size_t PromptPrefix::positions_of(const Prompt& prompt) {
  const size_t count = std::min(prompt.shared, prompt.positions.size() - std::min<size_t>(prompt.positions.size(), 2));
  return count < kLeastPositions ? 0 : count;
}

bool PromptPrefix::begins(const Prompt& prompt) const {
  return !positions.empty() && positions_of(prompt) == positions.size() &&
         std::equal(positions.begin(), positions.end(), prompt.positions.begin()) && voice == prompt.voice &&
         codes == prompt.codes;
}

Result<std::unique_ptr<FrameGenerator>> FrameGenerator::make(std::shared_ptr<const Weights> weights, nn::Runner& runner,
                                                             size_t streams) {
  SYRINX_TRY(std::unique_ptr<CodePredictor> predictor, CodePredictor::make(weights, runner, streams));
  return std::unique_ptr<FrameGenerator>(new FrameGenerator(std::move(weights), runner, streams, std::move(predictor)));
}

FrameGenerator::FrameGenerator(std::shared_ptr<const Weights> weights, nn::Runner& runner, size_t streams,
                               std::unique_ptr<CodePredictor> predictor)
    : weights_(std::move(weights)),
      most_streams_(streams),
      embedder_(weights_, runner),
      talker_(weights_, runner, streams),
      predictor_(std::move(predictor)),
      sampler_(weights_->config.vocabulary),
      sums_(kernels::exponential_blocks(weights_->config.codes())),
      maxima_(kernels::exponential_blocks(weights_->config.codes())) {
  ready_.reserve(streams);
  rows_.reserve(streams);
  frames_.reserve(streams);
}

size_t FrameGenerator::positions_for(const Prompt& prompt, const SpeechSettings& settings) const {
  const size_t most = talker_.most_positions(), frames = std::min(settings.draws.max_frames, most);
  return std::min(prompt.positions.size() + std::max<size_t>(frames, 1) - 1, most);
}

Result<FrameStream> FrameGenerator::make_stream(size_t positions) const {
  const Config& config = weights_->config;
  FrameStream stream;
  SYRINX_TRY(stream.cache_, talker_.make_cache(positions));
  stream.hidden_.resize(config.talker.width);
  stream.logits_.resize(config.vocabulary);
  stream.codes_.resize(config.codebooks);
  stream.seen_.reserve(config.codes());
  stream.is_seen_.resize(config.codes());
  stream.ahead_.prepare(FrameStream::kAheadRows, config.talker.width, kernels::Storage::kF32);
  return stream;
}

Status FrameGenerator::begin(FrameStream& stream, Prompt prompt, const SpeechSettings& settings,
                             std::shared_ptr<const PromptPrefix> prefix) const {
  SYRINX_TRY_VOID(check_prompt(prompt, weights_->config.talker.width));
  SYRINX_TRY_VOID(check_settings(settings));
  if (prompt.positions.size() > stream.cache_.capacity)
    return fail(Code::kLimitExceeded, "a prompt of {} positions in a stream that has room for {}; give a shorter text",
                prompt.positions.size(), stream.cache_.capacity);
  SYRINX_CHECK(settings.forced.size() % weights_->config.codebooks == 0, "{} forced codes", settings.forced.size());
  SYRINX_CHECK(prefix == nullptr || prefix->begins(prompt), "a prefix of another prompt");
  stream.state_ = FrameStream::State::kPrompt;
  stream.end_ = End::kNone;
  stream.end_probability_ = 0;
  stream.is_full_ = false;
  stream.cache_.reset();
  if (prefix != nullptr) {
    const nn::KvCache* const cache = &prefix->cache;
    stream.cache_.begin_behind({std::move(prefix), cache});
  }
  stream.prompt_ = std::move(prompt);
  stream.settings_ = settings;
  stream.read_ = stream.cache_.shared();
  stream.frames_ = 0;
  stream.seen_.clear();
  std::fill(stream.is_seen_.begin(), stream.is_seen_.end(), uint8_t{0});
  stream.ahead_from_ = stream.ahead_count_ = 0;
  return {};
}

void FrameGenerator::add_text(FrameStream& stream, std::span<const int32_t> tokens) const {
  SYRINX_CHECK(!stream.prompt_.ends, "text behind the end of a text");
  stream.prompt_.trailing.insert(stream.prompt_.trailing.end(), tokens.begin(), tokens.end());
}

void FrameGenerator::end_text(FrameStream& stream, size_t max_frames) const {
  add_text(stream, {&weights_->config.text.eos, 1});
  stream.prompt_.ends = true;
  stream.settings_.draws.max_frames = max_frames;
}

std::shared_ptr<const PromptPrefix> FrameGenerator::prefix_of(const FrameStream& stream, size_t max_bytes) const {
  const Prompt& prompt = stream.prompt_;
  const size_t count = PromptPrefix::positions_of(prompt);
  if (count == 0 || stream.cache_.shared() > 0 || stream.read_ < count) return nullptr;
  if (stream.cache_.bytes() / stream.cache_.capacity * count > max_bytes) return nullptr;
  return std::make_shared<const PromptPrefix>(PromptPrefix{
      .positions = {prompt.positions.begin(), prompt.positions.begin() + static_cast<std::ptrdiff_t>(count)},
      .voice = prompt.voice,
      .codes = prompt.codes,
      .cache = stream.cache_.beginning(count)});
}

bool FrameGenerator::read_prompt(FrameStream& stream, const nn::PassCut& cut) {
  SYRINX_CHECK(stream.state_ == FrameStream::State::kPrompt, "a stream that has read its prompt");
  read({}, {.stream = &stream}, cut);
  return stream.state_ == FrameStream::State::kFirst;
}

void FrameGenerator::keep(const Talker::Read& read, size_t row, FrameStream& stream) const {
  std::copy_n(read.hidden.row(row), stream.hidden_.size(), stream.hidden_.data());
  std::copy_n(read.logits.row(row), stream.logits_.size(), stream.logits_.data());
  note("hidden", {stream.hidden_.data(), {1, stream.hidden_.size()}});
  note("logits", {stream.logits_.data(), {1, stream.logits_.size()}});
}

void FrameGenerator::step(std::span<FrameStream* const> streams, const PromptSlice& slice, const nn::PassCut& cut) {
  const bool reads = slice.stream != nullptr;
  SYRINX_CHECK(streams.size() + (reads ? 1 : 0) <= most_streams_, "{} streams, made for {}", streams.size(),
               most_streams_);
  SYRINX_CHECK(!reads || slice.stream->state_ == FrameStream::State::kPrompt, "a stream that has read its prompt");
  for (FrameStream* const stream : streams) {
    SYRINX_CHECK(stream->end_ == End::kNone && stream->state_ >= FrameStream::State::kFirst,
                 "a step of a stream that has ended or has still to read its prompt");
    SYRINX_CHECK(!stream->needs_text(), "a step of a stream whose text has not come");
    note_limit(*stream);
  }
  read(streams, slice, cut);
  ready_.clear();
  frames_.clear();
  for (FrameStream* const stream : streams) begin_frame(*stream);
  if (reads && slice.stream->state_ == FrameStream::State::kFirst) {
    note_limit(*slice.stream);
    begin_frame(*slice.stream);
  }
  predictor_->predict(frames_, cut);
  for (FrameStream* const stream : ready_) {
    if (std::ranges::any_of(stream->codes_, [](int32_t code) { return code < 0; })) {
      stream->end_ = End::kFault;
      continue;
    }
    stream->state_ = FrameStream::State::kNext;
    ++stream->frames_;
  }
}

void FrameGenerator::note_limit(FrameStream& stream) {
  const bool is_done = stream.frames_ >= stream.settings_.draws.max_frames;
  stream.is_full_ =
      !is_done && stream.state_ == FrameStream::State::kNext && stream.cache_.position >= stream.cache_.capacity;
  if (is_done || stream.is_full_) stream.end_ = End::kLength;
}

void FrameGenerator::begin_frame(FrameStream& stream) {
  if (stream.end_ == End::kNone) draw_first(stream);
  if (stream.end_ != End::kNone) return;
  const SpeechSettings& settings = stream.settings_;
  ready_.push_back(&stream);
  frames_.push_back(
      {.hidden = stream.hidden_.data(),
       .codes = stream.codes_,
       .settings = sampler_settings(settings.draws.predictor, 1.0f),
       .place = {.seed = settings.seed, .stream = settings.number, .frame = static_cast<uint32_t>(stream.frames_)},
       .forced = forced(stream)});
}

// The talker's pass over the last frames of those that have made one, and the slice.
void FrameGenerator::read(std::span<FrameStream* const> streams, const PromptSlice& slice, const nn::PassCut& cut) {
  ready_.clear();
  rows_.clear();
  for (FrameStream* const stream : streams) {
    if (stream->end_ != End::kNone || stream->state_ != FrameStream::State::kNext) continue;
    ready_.push_back(stream);
    rows_.push_back({.cache = &stream->cache_, .rows = 1});
  }
  size_t left = 0, count = 0;
  if (slice.stream != nullptr) {
    left = slice.stream->prompt_.positions.size() - slice.stream->read_;
    count = slice_rows(left, std::min(slice.rows, Talker::kPassRows - ready_.size()));
    rows_.push_back({.cache = &slice.stream->cache_, .rows = count});
  }
  if (rows_.empty()) return;
  put_rows(slice, count);
  const bool is_last = count > 0 && count == left;
  const Talker::Read found = talker_.read(rows_, is_last || !ready_.empty(), cut);
  for (size_t n = 0; n < ready_.size(); ++n) keep(found, n, *ready_[n]);
  if (slice.stream == nullptr) return;
  slice.stream->read_ += count;
  if (!is_last) return;
  keep(found, ready_.size(), *slice.stream);
  slice.stream->state_ = FrameStream::State::kFirst;
}

// The rows of the pass: those of ready_, and `count` of the slice.
void FrameGenerator::put_rows(const PromptSlice& slice, size_t count) {
  const size_t frames = ready_.size();
  const View<float, 2> rows = talker_.input(frames + count);
  for (size_t n = 0; n < frames; ++n) put_next(*ready_[n], rows.row(n));
  if (frames > 0) note("next", {rows.data(), {frames, rows.extent(1)}, {rows.stride(0), 1}});
  if (count == 0) return;
  const View<float, 2> positions(rows.row(frames), {count, rows.extent(1)}, {rows.stride(0), 1});
  embedder_.prompt_rows(slice.stream->prompt_, slice.stream->read_, positions);
  note("prompt", positions);
}

void FrameGenerator::put_next(FrameStream& stream, float* row) {
  std::fill_n(row, stream.hidden_.size(), 0.0f);
  embedder_.add_frame(stream.codes_, row);
  const float* const text = next_text(stream);
  for (size_t i = 0; i < stream.hidden_.size(); ++i) row[i] += text[i];
}

// The row of the text beside the last frame.
const float* FrameGenerator::next_text(FrameStream& stream) {
  const size_t frame = stream.frames_ - 1;
  const std::span<const int32_t> trailing = stream.prompt_.trailing;
  if (frame >= trailing.size()) return embedder_.pad();
  if (frame >= stream.ahead_from_ + stream.ahead_count_) {
    stream.ahead_from_ = frame;
    stream.ahead_count_ = std::min(FrameStream::kAheadRows, trailing.size() - frame);
    const View<const float, 2> rows = embedder_.text_rows(trailing.subspan(frame, stream.ahead_count_));
    for (size_t n = 0; n < stream.ahead_count_; ++n)
      std::copy_n(rows.row(n), stream.hidden_.size(), stream.ahead_.f32(n));
  }
  return stream.ahead_.f32(frame - stream.ahead_from_);
}

std::span<const int32_t> FrameGenerator::forced(const FrameStream& stream) const {
  const size_t codebooks = weights_->config.codebooks, first = stream.frames_ * codebooks;
  return first < stream.settings_.forced.size() ? stream.settings_.forced.subspan(first, codebooks)
                                                : std::span<const int32_t>();
}

// The end is among the logits of the tokens that are no codes, which else are never drawn.
void FrameGenerator::suppress(const FrameStream& stream, std::span<float> logits) const {
  constexpr float kNever = -std::numeric_limits<float>::infinity();
  const auto eos = static_cast<size_t>(weights_->config.codec.eos);
  const float kept = stream.frames_ < kMinFrames ? kNever : logits[eos];
  std::fill(logits.begin() + static_cast<std::ptrdiff_t>(weights_->config.codes()), logits.end(), kNever);
  logits[eos] = kept;
}

// 0 where a logit is not finite, of which the draw tells.
float FrameGenerator::end_probability(std::span<const float> logits) {
  const std::span<const float> codes = logits.first(weights_->config.codes());
  const float end = logits[static_cast<size_t>(weights_->config.codec.eos)];
  const float peak = kernels::argmax(codes).value;
  if (!std::isfinite(peak) || !std::isfinite(end)) return 0;
  kernels::block_exponentials(codes, peak, 1.0f, sums_, maxima_);
  const double others = std::accumulate(sums_.begin(), sums_.end(), 0.0);
  return static_cast<float>(1 / (1 + others * std::exp(static_cast<double>(peak) - end)));
}

// The penalty is the sampler's: it leaves minus infinity as it is.
void FrameGenerator::draw_first(FrameStream& stream) {
  const std::span<float> logits = stream.logits_;
  const SpeechSettings& settings = stream.settings_;
  stream.end_probability_ = end_probability(logits);
  suppress(stream, logits);
  const nn::DrawPlace place{
      .seed = settings.seed, .stream = settings.number, .frame = static_cast<uint32_t>(stream.frames_), .codebook = 0};
  int32_t code =
      sampler_.draw(logits, sampler_settings(settings.draws.talker, settings.draws.penalty), stream.seen_, place);
  note("scores", {logits.data(), {1, logits.size()}});
  if (code == nn::Sampler::kNone) {
    stream.end_ = End::kFault;
    return;
  }
  if (const std::span<const int32_t> given = forced(stream); !given.empty()) code = given.front();
  if (code == weights_->config.codec.eos) {
    stream.end_ = End::kSpoken;
    return;
  }
  const auto index = static_cast<size_t>(code);
  SYRINX_CHECK(code >= 0 && index < stream.is_seen_.size(), "code {} of {}", code, stream.is_seen_.size());
  stream.codes_[0] = code;
  if (stream.is_seen_[index] == 0) stream.seen_.push_back(code);
  stream.is_seen_[index] = 1;
}

}  // namespace syrinx::qwen_tts
