#include "engine/families/qwen_tts/frame_pool.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace syrinx::qwen_tts {
namespace {

constexpr size_t kCutLayers = 4;    // of a job, where others may want the team: a few milliseconds of the published
constexpr size_t kCodecFrames = 4;  // of a stream in a pass of the codec, between which others may have the team
constexpr size_t kLiveRoundsABatch = 15;  // while streams that are listened to wait

}  // namespace

Result<std::unique_ptr<FramePool>> FramePool::make(std::shared_ptr<const Weights> weights,
                                                   std::shared_ptr<const CodecDecoderWeights> codec, nn::Runner& runner,
                                                   StepQueue& queue, size_t streams) {
  SYRINX_TRY(std::unique_ptr<FrameGenerator> generator, FrameGenerator::make(std::move(weights), runner, streams));
  return std::unique_ptr<FramePool>(new FramePool(std::move(generator), std::move(codec), runner, queue, streams));
}

FramePool::FramePool(std::unique_ptr<FrameGenerator> generator, std::shared_ptr<const CodecDecoderWeights> codec,
                     nn::Runner& runner, StepQueue& queue, size_t streams)
    : Rounds(queue, streams),
      generator_(std::move(generator)),
      codec_(std::move(codec), runner, streams, kCodecFrames),
      streams_(streams) {
  for (size_t n = streams; n-- > 0;) free_.push_back(n);
  for (auto* const requests : {&round_, &decoded_}) requests->reserve(streams);
  stepped_.reserve(streams);
  frames_.reserve(streams);
}

Result<FramePool::Lease> FramePool::lease() {
  const std::lock_guard lock(mutex_);
  if (free_.empty())
    return fail(Code::kUnavailable, "all {} streams speak; ask again when one has ended", streams_.size());
  const size_t stream = free_.back();
  free_.pop_back();
  return Lease(*this, stream);
}

// With its memory, which may be large.
void FramePool::give_back(size_t stream) {
  set_speaks(streams_[stream], false);
  streams_[stream] = {};
  const std::lock_guard lock(mutex_);
  free_.push_back(stream);
}

Status FramePool::Lease::begin(Piece piece) {
  Stream& stream = pool_->streams_[stream_];
  const size_t codebooks = pool_->generator_->weights().config.codebooks;
  stream.ended = true;
  pool_->set_speaks(stream, false);
  const size_t positions = pool_->generator_->positions_for(piece.prompt, piece.settings);
  if (!stream.frames || stream.frames->positions() < positions) {
    stream.frames.reset();
    SYRINX_TRY(FrameStream made, pool_->generator_->make_stream(positions));
    stream.frames.emplace(std::move(made));
  }
  auto prefix = pool_->prefixes_.find(piece.prompt);
  stream.keeps_prefix = prefix == nullptr;
  SYRINX_TRY_VOID(pool_->generator_->begin(*stream.frames, std::move(piece.prompt), piece.settings, std::move(prefix)));
  if (!stream.codec) stream.codec.emplace(pool_->codec_.make_state());
  if (piece.codec == nullptr) {
    CodecDecoder::reset(*stream.codec);
  } else {
    copy(*piece.codec, *stream.codec);
  }
  stream.spoken.clear();
  stream.spoken.reserve(piece.kept_frames * codebooks);
  stream.kept_frames = piece.kept_frames;
  stream.decoded_frames = 0;
  stream.codes.resize(kMaxChunk * codebooks);
  stream.pending = 0;
  stream.guard.begin(codebooks, piece.expected_frames);
  stream.ended = stream.faulty = false;
  stream.reason = FinishReason::kSpoken;
  return {};
}

Result<FramePool::Made> FramePool::Lease::next(size_t chunk, std::vector<float>& samples, int64_t due_ns) {
  SYRINX_CHECK(chunk >= 1 && chunk <= kMaxChunk, "a chunk of {} frames", chunk);
  SYRINX_CHECK(!needs_text(), "a frame of a stream whose text has not come");
  return serve(chunk, true, samples, due_ns);
}

void FramePool::Lease::end_text(size_t max_frames, size_t expected_frames) {
  pool_->generator_->end_text(*stream().frames, max_frames);
  stream().guard.expect(expected_frames);
}

std::span<const int32_t> FramePool::Lease::spoken_codes() const {
  const Stream& stream = this->stream();
  return stream.decoded_frames <= stream.kept_frames ? stream.spoken : std::span<const int32_t>();
}

CodecDecoderState FramePool::Lease::sound() const {
  CodecDecoderState made = pool_->make_codec_state();
  copy(*stream().codec, made);
  return made;
}

void FramePool::copy(const CodecDecoderState& from, CodecDecoderState& to) {
  to.transformer.copy_from(from.transformer);
  std::copy(from.histories.begin(), from.histories.end(), to.histories.begin());
  to.not_finite = from.not_finite;
}

bool FramePool::Lease::spoken_little() const {
  const SpeechGuard& guard = stream().guard;
  return stream().ended && stream().reason != FinishReason::kSpoken && guard.held() > 0 && guard.spoken_little();
}

Result<FramePool::Made> FramePool::Lease::serve(size_t chunk, bool makes, std::vector<float>& samples, int64_t due_ns) {
  Stream& stream = this->stream();
  if (stream.ended) return Made{.ended = true, .reason = stream.reason, .faulty = stream.faulty};
  pool_->keep_prefix(stream);
  FrameRequest request;
  request.stream = &stream;
  request.chunk = chunk;
  request.makes = makes;
  request.samples = &samples;
  request.due_ns = due_ns;
  request.asked_ns = pool_->queue().clock().now_ns();
  request.deadline_ns = gapless_until_ns(due_ns, request.asked_ns);
  request.is_wanted = &is_wanted_;
  pool_->serve(request);
  waited_ns_ += request.waited_ns;
  if (!request.is_made) return fail(Code::kCancelled, "the speech was cancelled");
  const size_t held = stream.guard.held();
  if (!stream.ended) return Made{.held = held};
  const bool is_cut = stream.reason != FinishReason::kSpoken;
  if (is_cut) samples.resize(samples.size() - held * frame_samples());
  return Made{.ended = true, .reason = stream.reason, .faulty = stream.faulty};
}

void FramePool::alone(const std::function<void(const nn::BetweenJobs& between)>& work, int64_t due_ns) {
  const int64_t deadline_ns = gapless_until_ns(due_ns, queue().clock().now_ns());
  StepQueue::Turn turn(queue(), due_ns);
  turn.set_deadline(deadline_ns);
  work([&turn] { turn.give_way(); });
}

// Live streams, which stand before those of batch work; these have each sixteenth round while both wait.  Of several
// prompts one is read in a round, so that those who speak, and the first of those who begin, do not wait for all of
// them: the one of which least has been read, so that a short one does not wait for the end of a long one.
void FramePool::choose(std::vector<Request*>& waiting, std::vector<Request*>& round) {
  const auto batch =
      std::find_if(waiting.begin(), waiting.end(), [](const Request* request) { return request->due_ns == kNeverDue; });
  const bool has_live = batch != waiting.begin(), has_batch = batch != waiting.end();
  const bool takes_batch = has_batch && (!has_live || live_rounds_ >= kLiveRoundsABatch);
  live_rounds_ = takes_batch ? 0 : live_rounds_ + 1;
  const auto from = takes_batch ? batch : waiting.begin(), to = takes_batch ? waiting.end() : batch;
  const auto frames = [](const Request* request) -> const FrameStream& {
    return *static_cast<const FrameRequest*>(request)->stream->frames;
  };
  const Request* newcomer = nullptr;
  for (auto at = from; at != to; ++at)
    if (frames(*at).reads_prompt() &&
        (newcomer == nullptr || frames(*at).prompt_read() < frames(newcomer).prompt_read()))
      newcomer = *at;
  auto stays = from;
  for (auto at = from; at != to; ++at) {
    if (frames(*at).reads_prompt() && *at != newcomer)
      *stays++ = *at;
    else
      round.push_back(*at);
  }
  waiting.erase(stays, to);
}

void FramePool::make(std::span<Request* const> round, StepQueue::Turn& turn) {
  round_.clear();
  newcomer_ = nullptr;
  const int64_t began_ns = queue().clock().now_ns();
  for (Request* const each : round) {
    auto* const request = static_cast<FrameRequest*>(each);
    request->waited_ns += began_ns - request->asked_ns;
    if (request->is_left()) continue;
    round_.push_back(request);
    if (request->stream->frames->reads_prompt()) newcomer_ = request;
  }
  if (round_.empty()) return turn.make_nothing();
  nn::PassCut cut{.between = {}, .layers = kCutLayers};
  if (queue().scheduler().is_shared()) cut.between = [&turn] { turn.give_way(); };
  const int64_t before_ns = turn.waited_ns();
  make_frames(cut, turn);
  decode_chunks(cut, turn);
  int64_t deadline_ns = kNeverDue;
  for (FrameRequest* const request : round_) {
    request->waited_ns += turn.waited_ns() - before_ns;
    request->stays = request->stream->frames->reads_prompt();
    request->asked_ns = queue().clock().now_ns();
    request->is_made = !request->stays;
    if (request->is_made) deadline_ns = std::min(deadline_ns, request->deadline_ns);
    set_speaks(*request->stream,
               request->is_made && request->makes && !request->stream->ended && request->due_ns != kNeverDue);
  }
  turn.set_deadline(deadline_ns);  // of those whose frame it made; a long prompt is late once
}

void FramePool::make_frames(const nn::PassCut& cut, const StepQueue::Turn& turn) {
  stepped_.clear();
  for (const FrameRequest* const request : round_)
    if (request != newcomer_ && request->makes) stepped_.push_back(&*request->stream->frames);
  FrameGenerator::PromptSlice slice;
  size_t read_before = 0;
  if (newcomer_ != nullptr) {
    slice = {.stream = &*newcomer_->stream->frames, .rows = slice_rows()};
    read_before = slice.stream->prompt_read();
  } else if (stepped_.empty()) {
    return;
  }
  const int64_t began_ns = queue().clock().now_ns(), waited_ns = turn.waited_ns();
  generator_->step(stepped_, slice, cut);
  for (const FrameRequest* const request : round_)
    if (makes_frame(*request)) keep_frame(*request->stream);
  note_times(slice, slice.stream != nullptr ? slice.stream->prompt_read() - read_before : 0,
             queue().clock().now_ns() - began_ns - (turn.waited_ns() - waited_ns));
}

// Positions of the newcomer's prompt for this round.
size_t FramePool::slice_rows() const {
  if (speakers_.load(std::memory_order_relaxed) == 0) return Talker::kPassRows;
  PromptShare::Others others{.streams = stepped_.size()};
  for (const FrameRequest* const request : round_) {
    if (request == newcomer_) continue;
    others.due_ns = std::min(others.due_ns, request->due_ns);
    const size_t pending = request->stream->pending + (request->makes ? 1 : 0);
    if (completes_chunk(*request, pending)) others.decoded += pending;
  }
  return share_.rows(others, queue().clock().now_ns());
}

void FramePool::note_times(const FrameGenerator::PromptSlice& slice, size_t rows, int64_t took_ns) {
  const bool is_new = slice.stream != nullptr && !slice.stream->reads_prompt();
  int64_t prompt_ns = 0;
  if (slice.stream != nullptr)
    prompt_ns = std::max<int64_t>(took_ns - (stepped_.empty() && !is_new ? 0 : share_.step_ns()), 0);
  const bool is_live = round_.front()->due_ns != kNeverDue;
  if (slice.stream != nullptr)
    share_.note_slice(rows, stepped_.size() + (is_new ? 1 : 0), took_ns);
  else if (is_live)
    share_.note_step(took_ns);
  times_.prompts_ns += prompt_ns;
  times_.frames_ns += took_ns - prompt_ns;
  times_.frames += stepped_.size() + (is_new ? 1 : 0);
  ++times_.rounds;
  times_.prompt_rows += rows;
  if (!stepped_.empty()) times_.longest_slice = std::max(times_.longest_slice, rows);
}

void FramePool::set_speaks(Stream& stream, bool speaks) {
  if (std::exchange(stream.speaks, speaks) == speaks) return;
  speaks ? speakers_.fetch_add(1, std::memory_order_relaxed) : speakers_.fetch_sub(1, std::memory_order_relaxed);
}

// By the stream's own thread behind its first frame, so that neither a round nor the first sound waits for the copy.
void FramePool::keep_prefix(Stream& stream) {
  if (stream.frames->reads_prompt() || !std::exchange(stream.keeps_prefix, false)) return;
  if (prefixes_.find(stream.frames->prompt()) != nullptr) return;
  prefixes_.keep(generator_->prefix_of(*stream.frames, PromptPrefixes::kMaxBytes));
}

void FramePool::keep_frame(Stream& stream) {
  const FrameStream& made = *stream.frames;
  if (made.end() != End::kNone) {
    stream.ended = true;
    if (made.end() == End::kLength) stream.reason = FinishReason::kLength;
    stream.faulty = made.end() == End::kFault;
    return;
  }
  const std::span<const int32_t> codes = made.codes();
  std::copy(codes.begin(), codes.end(),
            stream.codes.begin() + static_cast<std::ptrdiff_t>(stream.pending * codes.size()));
  stream.ends[stream.pending] = made.end_probability();
  ++stream.pending;
}

// In the round behind whose step it is asked.
bool FramePool::makes_frame(const FrameRequest& request) {
  return request.makes && !request.stream->frames->reads_prompt();
}

bool FramePool::completes_chunk(const FrameRequest& request, size_t pending) {
  return pending > 0 && (pending >= std::min(request.chunk, kMaxChunk) || request.stream->ended);
}

void FramePool::decode_chunks(const nn::PassCut& cut, const StepQueue::Turn& turn) {
  decoded_.clear();
  size_t most = 0;
  for (FrameRequest* const request : round_) {
    if (!completes_chunk(*request, request->stream->pending)) continue;
    decoded_.push_back(request);
    most = std::max(most, request->stream->pending);
  }
  if (decoded_.empty()) return;
  const int64_t began_ns = queue().clock().now_ns(), waited_ns = turn.waited_ns();
  const size_t length = codec_.config().frame_samples();
  size_t decoded = 0;
  for (FrameRequest* const request : decoded_)
    request->samples->resize(request->samples->size() + request->stream->pending * length);
  for (size_t from = 0; from < most; from += kCodecFrames) {
    if (from > 0 && cut.between) cut.between();
    decode_pass(from);
  }
  for (FrameRequest* const request : decoded_) {
    Stream& stream = *request->stream;
    decoded += stream.pending;
    note_sound(stream, *request->samples, length);
    if (stream.codec->faulty()) stream.ended = stream.faulty = true;
    stream.pending = 0;
  }
  const int64_t took_ns = queue().clock().now_ns() - began_ns - (turn.waited_ns() - waited_ns);
  share_.note_decode(decoded, took_ns);
  times_.decoded += decoded;
  times_.codec_ns += took_ns;
}

// The frames of each stream from `from` on, as far as a pass goes.
void FramePool::decode_pass(size_t from) {
  const size_t codebooks = generator_->weights().config.codebooks, length = codec_.config().frame_samples();
  frames_.clear();
  for (FrameRequest* const request : decoded_) {
    Stream& stream = *request->stream;
    if (stream.pending <= from) continue;
    const size_t count = std::min(stream.pending - from, kCodecFrames);
    float* const samples = request->samples->data() + request->samples->size() - (stream.pending - from) * length;
    frames_.push_back({.state = &*stream.codec,
                       .codes = {stream.codes.data() + from * codebooks, {count, codebooks}},
                       .samples = {samples, count * length}});
  }
  codec_.decode(frames_);
}

// Frames behind the one at which the guard ends the piece are dropped, wherever its chunk ends, and with them the end
// that the model has found there.
void FramePool::note_sound(Stream& stream, std::vector<float>& samples, size_t frame_samples) {
  const size_t first = samples.size() - stream.pending * frame_samples, codebooks = stream.frames->codes().size();
  for (size_t n = 0; n < stream.pending; ++n) {
    const size_t at = first + n * frame_samples;
    const auto codes = stream.codes.begin() + static_cast<std::ptrdiff_t>(n * codebooks);
    if (stream.decoded_frames++ < stream.kept_frames)
      stream.spoken.insert(stream.spoken.end(), codes, codes + static_cast<std::ptrdiff_t>(codebooks));
    stream.guard.note({.codes = {stream.codes.data() + n * codebooks, codebooks},
                       .end_probability = stream.ends[n],
                       .samples = {samples.data() + at, frame_samples}});
    if (!stream.guard.must_end()) continue;
    samples.resize(at + frame_samples);
    stream.ended = true;
    stream.faulty = false;  // of a frame behind this one
    stream.reason = stream.guard.finish_reason();
    return;
  }
}

}  // namespace syrinx::qwen_tts
