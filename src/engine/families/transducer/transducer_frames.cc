#include "engine/families/transducer/transducer_frames.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>

namespace syrinx {

View<const float, 2> encode_sound(const transducer::Model& model, std::span<const float> sound, SoundRoom& room,
                                  transducer::Encoder& encoder, nn::Runner& runner, const EncodeOptions& options) {
  const transducer::EncoderConfig& config = model.config().encoder;
  const size_t rows = model.features()->frames(sound.size());
  if (rows == 0) return {};
  room.mels.prepare(rows, model.config().features.mels, kernels::Storage::kF32);
  model.features()->compute(sound, room.mels.view(), runner.team(), room.features);
  if (options.between) options.between();
  if (config.prompt.count > 0) encoder.set_prompt(options.prompt.value_or(config.prompt.fallback));
  return encoder.encode(std::as_const(room.mels).view(), options.context.value_or(config.contexts.front()),
                        options.between);
}

double hear_silence(const transducer::Model& model, const WindowTools& tools, const Clock& clock) {
  StepQueue::Turn turn(tools.queue);
  int64_t worked_ns = 0, from_ns = clock.now_ns();
  const transducer::BetweenJobs between = [&] {
    worked_ns += clock.now_ns() - from_ns;
    turn.give_way();
    from_ns = clock.now_ns();
  };
  const std::vector<float> silence(kRecognitionRateHz / 10, 0.0f);
  const View<const float, 2> frames =
      encode_sound(model, silence, tools.room, tools.encoder, tools.runner, {.between = between});
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

std::optional<transducer::AttentionContext> WindowedFrames::Frames::context(const transducer::Config& config) const {
  if (!config.encoder.menu) return std::nullopt;
  return transducer::AttentionContext{.left = static_cast<ptrdiff_t>(left),
                                      .right = static_cast<ptrdiff_t>(right),
                                      .chunk = static_cast<ptrdiff_t>(chunk)};
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
  encode_.context = frames.context(model_->config());
  left_ = frames.left * frame_;
  chunk_ = frames.chunk * frame_;
  right_ = frames.right * frame_;
  // Touched once, so that no push waits for its pages.  A flush leaves all that it decoded to the next window, which
  // adds a whole one.
  sound_.assign(left_ + 2 * (chunk_ + right_), 0.0f);
  sound_.clear();
}

// The longest first, as tables grow.
void WindowedFrames::warm_up(const transducer::Model& model, const StreamWindow& window, const WindowTools& tools) {
  const Frames frames(model.config(), window);
  const size_t frame = model.config().features.hop * model.config().encoder.factor;
  const size_t first = frames.chunk + frames.right;
  StepQueue::Turn turn(tools.queue);
  const transducer::BetweenJobs between = [&turn] { turn.give_way(); };
  for (const size_t length : {frames.left + first, first}) {
    const std::vector<float> silence(length * frame, 0.0f);
    const View<const float, 2> all = encode_sound(model, silence, tools.room, tools.encoder, tools.runner,
                                                  {.context = frames.context(model.config()), .between = between});
    const View<const float, 2> some(all.data(), {std::min(kFramesAtOnce, all.extent(0)), all.extent(1)},
                                    {all.stride(0), 1});
    transducer::HeadState state(*model.decoder());
    std::vector<transducer::Emission> found;
    const transducer::HeadDecoder::Job job{&state, some, &found};
    tools.decoder.decode({&job, 1});
    between();
  }
}

void WindowedFrames::push(std::span<const float> samples, const Sink& sink) {
  while (!samples.empty()) {
    const size_t wanted = known_ + chunk_ + right_ - sound_.size();
    const size_t taken = std::min(wanted, samples.size());
    sound_.insert(sound_.end(), samples.begin(), samples.begin() + static_cast<ptrdiff_t>(taken));
    samples = samples.subspan(taken);
    if (taken == wanted) decode(chunk_, next_due_ns(chunk_s()), sink);
  }
}

void WindowedFrames::flush(const Sink& sink) {
  const size_t whole = (sound_.size() - known_) / frame_ * frame_;
  if (whole > 0) decode(whole, early_due_ns(chunk_s()), sink);
}

void WindowedFrames::finish(const Sink& sink) {
  if (sound_.size() > known_) decode(sound_.size() - known_, early_due_ns(chunk_s()), sink);
}

// Before a push less than a chunk and what follows it waits; a second more may come, or all of it may be asked for.
size_t WindowedFrames::most_frames() const {
  return (chunk_ + std::max<size_t>(right_, kRecognitionRateHz)) / frame_ + 2;
}

// Frames of the next `chunk` samples.  A window is as long as all three parts together: where less is behind the chunk,
// at the end of the sound, more is before it.  So it is, as in the maker's loop, of models whose mask counts chunks
// from the window's beginning: there the last window's chunks lie otherwise than those of the windows before.
void WindowedFrames::decode(size_t chunk, int64_t due_ns, const Sink& sink) {
  const size_t beyond = sound_.size() - std::min(sound_.size(), left_ + chunk_ + right_);
  const size_t gone = (beyond + frame_ - 1) / frame_ * frame_;
  sound_.erase(sound_.begin(), sound_.begin() + static_cast<ptrdiff_t>(gone));
  known_ -= gone;
  std::optional<StepQueue::Turn> own;
  if (tools_.line != nullptr) own.emplace(*tools_.line, due_ns);
  StepQueue::Turn turn(tools_.queue, due_ns, {}, tools_.line != nullptr ? &tools_.line->scheduler() : nullptr);
  // As urgent as the first stream that waits for the tools.
  const auto give_way = [&] { turn.give_way(tools_.line->scheduler().sooner(due_ns)); };
  EncodeOptions options = encode_;
  if (tools_.line != nullptr) options.between = std::cref(give_way);  // which allocates nothing
  const View<const float, 2> all = encode_sound(*model_, sound_, tools_.room, tools_.encoder, tools_.runner, options);
  const size_t first = known_ / frame_, end = std::min((known_ + chunk + frame_ - 1) / frame_, all.extent(0));
  known_ += chunk;
  for (size_t at = first; at < end; at += kFramesAtOnce) {
    const size_t count = std::min(kFramesAtOnce, end - at);
    const View<const float, 2> frames(all.row(at), {count, all.extent(1)}, {all.stride(0), 1});
    const transducer::HeadDecoder::Job job{&track_.state, frames, &track_.found};
    tools_.decoder.decode({&job, 1});
    sink(frames);
    if (options.between && at + kFramesAtOnce < end) options.between();
  }
}

bool ChunkedFrames::fits(const transducer::Config& config) {
  return !config.features.per_feature && check_streaming(config.encoder, config.encoder.contexts.front()).has_value();
}

// The state's memory is touched here, so that the first chunks do not wait for its pages.
ChunkedFrames::ChunkedFrames(const transducer::Model& model, ChunkPool& pool, LabelTrack& track,
                             std::optional<size_t> prompt)
    : config_(model.config().encoder),
      pool_(pool),
      track_(track),
      features_(model.features()),
      state_(config_, pool.context(), transducer::StreamMode::kExact),
      frame_(model.config().features.hop * config_.factor),
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

// What has come as if the sound ended here, on a copy of the state.  A chunk's first frame has one frame of features
// where the stream begins, the others have `factor`.
void ChunkedFrames::flush(const Sink& sink) {
  const size_t factor = config_.factor;
  const size_t whole = state_.heard() + (state_.started() ? filled_ / factor : (filled_ + factor - 1) / factor);
  if (whole <= given_) return;
  transducer::EncoderState ended(config_, pool_.context(), state_.mode());
  ended.copy_from(state_);
  give(ended, true, whole, early_due_ns(chunk_s()), sink);
}

void ChunkedFrames::finish(const Sink& sink) {
  for (size_t rows = features_.finish(room()); rows > 0; rows = features_.finish(room())) {
    filled_ += rows;
    if (filled_ == wanted()) step(false, sink);
  }
  step(true, sink);
}

// Those of a chunk that is not full, those of a second, and those that the blocks hold back for sound to come.
size_t ChunkedFrames::most_frames() const {
  const size_t second = kRecognitionRateHz / frame_ + 2;
  const bool holds = config_.style == transducer::ContextStyle::kRegular;
  return pool_.chunk_frames() + second + (holds ? config_.layers * (pool_.chunk_frames() - 1) : 0);
}

void ChunkedFrames::step(bool last, const Sink& sink) {
  give(state_, last, std::numeric_limits<size_t>::max(), next_due_ns(chunk_s()), sink);
  filled_ = 0;
}

// The stream's frames that the chunk brings, up to `end`, without those that have been given.  Behind the last chunk
// come those that waited for sound.
void ChunkedFrames::give(transducer::EncoderState& state, bool last, size_t end, int64_t due_ns, const Sink& sink) {
  size_t filled = filled_;
  do {
    const size_t before = state.frames();
    ChunkPool::Chunk chunk{.encoder = &state,
                           .mels = {mels_.f32(), {filled, mels_.channels()}, {mels_.stride(), 1}},
                           .last = last,
                           .first = given_ - std::min(given_, before),
                           .end = end - std::min(end, before),
                           .at_once = kFramesAtOnce,
                           .head = &track_.state,
                           .found = &track_.found,
                           .frames = frames_.view(),
                           .sink = &sink,
                           .due_ns = due_ns};
    pool_.hear(chunk);
    given_ = std::max(given_, std::min(end, state.frames()));
    filled = 0;
  } while (last && !state.finished());
}

}  // namespace syrinx
