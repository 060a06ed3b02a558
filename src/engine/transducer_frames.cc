#include "engine/transducer_frames.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace syrinx {

View<const float, 2> encode_sound(const transducer::Model& model, std::span<const float> sound, nn::Plane& mels,
                                  transducer::Encoder& encoder, nn::Runner& runner, const EncodeOptions& options) {
  const transducer::EncoderConfig& config = model.config().encoder;
  const size_t rows = model.features()->frames(sound.size());
  if (rows == 0) return {};
  mels.prepare(rows, model.config().features.mels, kernels::Storage::kF32);
  model.features()->compute(sound, mels.view(), runner.team());
  if (options.between) options.between();
  if (config.prompt.count > 0) encoder.set_prompt(options.prompt.value_or(config.prompt.fallback));
  return encoder.encode(std::as_const(mels).view(), options.context.value_or(config.contexts.front()), options.between);
}

double hear_silence(const transducer::Model& model, nn::Plane& mels, const WindowTools& tools, const Clock& clock) {
  Turns::Turn turn(tools.turns);
  int64_t worked_ns = 0, from_ns = clock.now_ns();
  const transducer::BetweenJobs between = [&] {
    worked_ns += clock.now_ns() - from_ns;
    turn.give_way();
    from_ns = clock.now_ns();
  };
  const std::vector<float> silence(kRecognitionRateHz / 10, 0.0f);
  const View<const float, 2> frames =
      encode_sound(model, silence, mels, tools.encoder, tools.runner, {.between = between});
  transducer::HeadState state(*model.decoder());
  std::vector<transducer::Emission> found;
  const transducer::HeadDecoder::Job job{&state, frames, &found};
  tools.decoder.decode({&job, 1});
  worked_ns += clock.now_ns() - from_ns;
  return static_cast<double>(worked_ns) * 1e-6 * tools.runner.team().size();
}

WindowedFrames::Frames::Frames(const transducer::Config& config, const StreamWindow& window) {
  const auto whole = [&](double seconds) { return static_cast<size_t>(std::lround(seconds / config.frame_s())); };
  left = whole(window.left_s);
  chunk = std::max<size_t>(1, whole(window.chunk_s));
  right = whole(window.right_s);
}

StreamWindow WindowedFrames::usual(const transducer::Config& config) {
  if (!config.encoder.menu) return {};
  const transducer::AttentionContext context = config.encoder.menu->usual();
  const auto seconds = [&](ptrdiff_t frames) { return static_cast<double>(frames) * config.frame_s(); };
  return {.left_s = seconds(context.left), .chunk_s = seconds(context.chunk), .right_s = seconds(context.right)};
}

Status WindowedFrames::check(const transducer::Config& config, const StreamWindow& window) {
  const double all_s = window.left_s + window.chunk_s + window.right_s;
  if (window.left_s >= 0 && window.chunk_s > 0 && window.right_s >= 0 && all_s <= StreamWindow::kMaxS) {
    if (!config.encoder.menu) return {};
    const transducer::WindowMenu& menu = *config.encoder.menu;
    const Frames frames(config, window);
    const auto has = [](const std::vector<size_t>& sizes, size_t size) {
      return std::find(sizes.begin(), sizes.end(), size) != sizes.end();
    };
    if (has(menu.left, frames.left) && has(menu.chunk, frames.chunk) && has(menu.right, frames.right)) return {};
    return fail(Code::kInvalidArgument,
                "windows of {} frames with {} before and {} behind them; this model was trained with {}, {} before and "
                "{} behind, of {} s each",
                frames.chunk, frames.left, frames.right, fmt::join(menu.chunk, "/"), fmt::join(menu.left, "/"),
                fmt::join(menu.right, "/"), config.frame_s());
  }
  return fail(
      Code::kInvalidArgument,
      "a window of {} s, with {} s before and {} s behind it; it needs more than 0 s, the others 0 or more, and "
      "all at most {} s",
      window.chunk_s, window.left_s, window.right_s, StreamWindow::kMaxS);
}

WindowedFrames::WindowedFrames(std::shared_ptr<const transducer::Model> model, const StreamWindow& window,
                               const WindowTools& tools, LabelTrack& track, std::optional<size_t> prompt)
    : model_(std::move(model)),
      tools_(tools),
      track_(track),
      frame_(model_->config().features.hop * model_->config().encoder.factor) {
  const Frames frames(model_->config(), window);
  encode_.prompt = prompt;
  if (model_->config().encoder.menu)
    encode_.context = transducer::AttentionContext{.left = static_cast<ptrdiff_t>(frames.left),
                                                   .right = static_cast<ptrdiff_t>(frames.right),
                                                   .chunk = static_cast<ptrdiff_t>(frames.chunk)};
  left_ = frames.left * frame_;
  chunk_ = frames.chunk * frame_;
  right_ = frames.right * frame_;
  sound_.reserve(left_ + 2 * chunk_ + right_);
}

void WindowedFrames::push(std::span<const float> samples, const Sink& sink) {
  while (!samples.empty()) {
    const size_t wanted = known_ + chunk_ + right_ - sound_.size();
    const size_t taken = std::min(wanted, samples.size());
    sound_.insert(sound_.end(), samples.begin(), samples.begin() + static_cast<ptrdiff_t>(taken));
    samples = samples.subspan(taken);
    if (taken == wanted) decode(chunk_, sink);
  }
}

void WindowedFrames::flush(const Sink& sink) {
  const size_t whole = (sound_.size() - known_) / frame_ * frame_;
  if (whole > 0) decode(whole, sink);
}

void WindowedFrames::finish(const Sink& sink) {
  if (sound_.size() > known_) decode(sound_.size() - known_, sink);
}

// Frames of the next `chunk` samples; then what lies more than `left_` before them is forgotten.
void WindowedFrames::decode(size_t chunk, const Sink& sink) {
  const Turns::Turn turn(tools_.turns, Turns::Class::kFirst);
  const View<const float, 2> all = encode_sound(*model_, sound_, mels_, tools_.encoder, tools_.runner, encode_);
  const size_t first = known_ / frame_, end = std::min((known_ + chunk + frame_ - 1) / frame_, all.extent(0));
  known_ += chunk;
  for (size_t at = first; at < end; at += kFramesAtOnce) {
    const size_t count = std::min(kFramesAtOnce, end - at);
    const View<const float, 2> frames(all.row(at), {count, all.extent(1)}, {all.stride(0), 1});
    const transducer::HeadDecoder::Job job{&track_.state, frames, &track_.found};
    tools_.decoder.decode({&job, 1});
    sink(frames);
  }
  if (known_ <= left_) return;
  sound_.erase(sound_.begin(), sound_.begin() + static_cast<ptrdiff_t>(known_ - left_));
  known_ = left_;
}

bool ChunkedFrames::fits(const transducer::Model& model) {
  const transducer::EncoderConfig& config = model.config().encoder;
  return !model.config().features.per_feature && check_streaming(config, config.contexts.front()).has_value();
}

// The state's memory is touched here, so that the first chunks do not wait for its pages.
ChunkedFrames::ChunkedFrames(const transducer::Model& model, ChunkPool& pool, LabelTrack& track,
                             std::optional<size_t> prompt)
    : config_(model.config().encoder),
      pool_(pool),
      track_(track),
      features_(model.features()),
      state_(config_, pool.context(), transducer::StreamMode::kExact),
      first_mels_(first_chunk_mels(config_, pool.context())),
      chunk_mels_(chunk_mels(config_, pool.context())) {
  state_.reset();
  if (prompt) state_.set_prompt(*prompt);
  mels_.prepare(std::max(first_mels_, chunk_mels_), config_.mels, kernels::Storage::kF32);
  frames_.prepare(pool.chunk_frames(), config_.width, kernels::Storage::kF32);
}

void ChunkedFrames::push(std::span<const float> samples, const Sink& sink) {
  // Behind a full chunk the features may hold rows of further ones, though all samples are taken.
  bool full = false;
  do {
    const transducer::FeatureStream::Taken taken = features_.push(samples, room());
    samples = samples.subspan(taken.samples);
    filled_ += taken.rows;
    full = filled_ == wanted();
    if (full) step(false, sink);
  } while (full || !samples.empty());
}

// The chunk as if the sound ended here, on a copy of the state.  A chunk's first frame has one frame of features where
// the stream begins, the others have `factor`.
void ChunkedFrames::flush(const Sink& sink) {
  const size_t factor = config_.factor;
  const size_t whole = state_.started() ? filled_ / factor : (filled_ + factor - 1) / factor;
  if (whole <= flushed_) return;
  transducer::EncoderState ended(config_, pool_.context(), state_.mode());
  ended.copy_from(state_);
  give(ended, true, whole, sink);
  flushed_ = whole;
}

void ChunkedFrames::finish(const Sink& sink) {
  for (size_t rows = features_.finish(room()); rows > 0; rows = features_.finish(room())) {
    filled_ += rows;
    if (filled_ == wanted()) step(false, sink);
  }
  step(true, sink);
}

void ChunkedFrames::step(bool last, const Sink& sink) {
  give(state_, last, std::numeric_limits<size_t>::max(), sink);
  filled_ = flushed_ = 0;
}

// Frames of the chunk up to `most`, without those that have been given.
void ChunkedFrames::give(transducer::EncoderState& state, bool last, size_t most, const Sink& sink) {
  ChunkPool::Chunk chunk{.encoder = &state,
                         .mels = {mels_.f32(), {filled_, mels_.channels()}, {mels_.stride(), 1}},
                         .last = last,
                         .first = flushed_,
                         .end = most,
                         .at_once = kFramesAtOnce,
                         .head = &track_.state,
                         .found = &track_.found,
                         .frames = frames_.view(),
                         .sink = &sink};
  pool_.hear(chunk);
}

}  // namespace syrinx
