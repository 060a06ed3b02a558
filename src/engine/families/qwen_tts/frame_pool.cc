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
  streams_[stream] = {};
  const std::lock_guard lock(mutex_);
  free_.push_back(stream);
}

Status FramePool::Lease::begin(Piece piece) {
  Stream& stream = pool_->streams_[stream_];
  const size_t codebooks = pool_->generator_->weights().config.codebooks;
  stream.ended = true;
  const size_t limit = piece.settings.draws.max_frames;
  const size_t positions = pool_->generator_->positions_for(piece.prompt, piece.settings);
  if (!stream.frames || stream.frames->positions() < positions) {
    stream.frames.reset();
    SYRINX_TRY(FrameStream made, pool_->generator_->make_stream(positions));
    stream.frames.emplace(std::move(made));
  }
  SYRINX_TRY_VOID(pool_->generator_->begin(*stream.frames, std::move(piece.prompt), piece.settings));
  if (!stream.codec) stream.codec.emplace(pool_->codec_.make_state());
  if (piece.codec == nullptr) {
    CodecDecoder::reset(*stream.codec);
  } else {
    stream.codec->transformer.copy_from(piece.codec->transformer);
    std::copy(piece.codec->histories.begin(), piece.codec->histories.end(), stream.codec->histories.begin());
    stream.codec->not_finite = piece.codec->not_finite;
  }
  stream.codes.resize(kMaxChunk * codebooks);
  stream.pending = 0;
  stream.guard.begin(limit);
  stream.ended = stream.limited = stream.faulty = false;
  return {};
}

Result<FramePool::Made> FramePool::Lease::next(size_t chunk, std::vector<float>& samples, int64_t due_ns) {
  SYRINX_CHECK(chunk >= 1 && chunk <= kMaxChunk, "a chunk of {} frames", chunk);
  Stream& stream = pool_->streams_[stream_];
  if (stream.ended) return Made{.ended = true, .limited = stream.limited, .faulty = stream.faulty};
  FrameRequest request;
  request.stream = &stream;
  request.chunk = chunk;
  request.samples = &samples;
  request.due_ns = due_ns;
  request.asked_ns = pool_->queue().clock().now_ns();
  request.deadline_ns = gapless_until_ns(due_ns, request.asked_ns);
  request.is_wanted = &is_wanted_;
  pool_->serve(request);
  waited_ns_ += request.waited_ns;
  if (!request.is_made) return fail(Code::kCancelled, "the speech was cancelled");
  return Made{.ended = stream.ended, .limited = stream.limited, .faulty = stream.faulty};
}

void FramePool::alone(const std::function<void(const nn::BetweenJobs& between)>& work, int64_t due_ns) {
  const int64_t deadline_ns = gapless_until_ns(due_ns, queue().clock().now_ns());
  StepQueue::Turn turn(queue(), due_ns);
  turn.set_deadline(deadline_ns);
  work([&turn] { turn.give_way(); });
}

// Live streams, which stand before those of batch work; these have each sixteenth round while both wait.  Of several
// prompts one is read in a round, so that those who speak, and the first of those who begin, do not wait for all of
// them.
void FramePool::choose(std::vector<Request*>& waiting, std::vector<Request*>& round) {
  const auto batch =
      std::find_if(waiting.begin(), waiting.end(), [](const Request* request) { return request->due_ns == kNeverDue; });
  const bool has_live = batch != waiting.begin(), has_batch = batch != waiting.end();
  const bool takes_batch = has_batch && (!has_live || live_rounds_ >= kLiveRoundsABatch);
  live_rounds_ = takes_batch ? 0 : live_rounds_ + 1;
  const auto from = takes_batch ? batch : waiting.begin(), to = takes_batch ? waiting.end() : batch;
  bool reads_prompt = false;
  auto stays = from;
  for (auto at = from; at != to; ++at) {
    const bool is_new = static_cast<const FrameRequest*>(*at)->stream->frames->reads_prompt();
    if (is_new && reads_prompt)
      *stays++ = *at;
    else
      round.push_back(*at);
    reads_prompt |= is_new;
  }
  waiting.erase(stays, to);
}

void FramePool::make(std::span<Request* const> round, StepQueue::Turn& turn) {
  round_.clear();
  int64_t deadline_ns = kNeverDue;
  const int64_t began_ns = queue().clock().now_ns();
  for (Request* const each : round) {
    auto* const request = static_cast<FrameRequest*>(each);
    request->waited_ns = began_ns - request->asked_ns;
    if (request->is_left()) continue;
    round_.push_back(request);
    deadline_ns = std::min(deadline_ns, request->deadline_ns);
  }
  turn.set_deadline(deadline_ns);
  if (round_.empty()) return turn.make_nothing();
  nn::PassCut cut{.between = {}, .layers = kCutLayers};
  if (queue().scheduler().is_shared()) cut.between = [&turn] { turn.give_way(); };
  const int64_t before_ns = turn.waited_ns();
  make_frames(cut);
  decode_chunks(cut);
  for (FrameRequest* const request : round_) {
    request->waited_ns += turn.waited_ns() - before_ns;
    request->is_made = true;
  }
}

void FramePool::make_frames(const nn::PassCut& cut) {
  const Clock& clock = queue().clock();
  const int64_t began_ns = clock.now_ns();
  stepped_.clear();
  for (const FrameRequest* const request : round_) {
    FrameStream& frames = *request->stream->frames;
    while (frames.reads_prompt() && !generator_->read_prompt(frames, cut)) continue;
    stepped_.push_back(&frames);
  }
  const int64_t read_ns = clock.now_ns();
  generator_->step(stepped_, cut);
  for (const FrameRequest* const request : round_) keep_frame(*request->stream);
  step_ns_ = clock.now_ns() - read_ns;
  times_.prompts_ns += read_ns - began_ns;
  times_.frames_ns += step_ns_;
  times_.frames += stepped_.size();
  ++times_.rounds;
}

void FramePool::keep_frame(Stream& stream) {
  const FrameStream& made = *stream.frames;
  if (made.end() != End::kNone) {
    stream.ended = true;
    stream.limited = made.end() == End::kLength;
    stream.faulty = made.end() == End::kFault;
    return;
  }
  const std::span<const int32_t> codes = made.codes();
  std::copy(codes.begin(), codes.end(),
            stream.codes.begin() + static_cast<std::ptrdiff_t>(stream.pending * codes.size()));
  ++stream.pending;
  stream.guard.note_codes(codes);
  if (stream.guard.must_end()) stream.ended = stream.limited = true;
}

void FramePool::decode_chunks(const nn::PassCut& cut) {
  decoded_.clear();
  size_t most = 0;
  for (FrameRequest* const request : round_) {
    const Stream& stream = *request->stream;
    if (stream.pending == 0 || (stream.pending < std::min(request->chunk, kMaxChunk) && !stream.ended)) continue;
    decoded_.push_back(request);
    most = std::max(most, stream.pending);
  }
  if (decoded_.empty()) return;
  const int64_t began_ns = queue().clock().now_ns();
  const size_t length = codec_.config().frame_samples();
  for (FrameRequest* const request : decoded_)
    request->samples->resize(request->samples->size() + request->stream->pending * length);
  for (size_t from = 0; from < most; from += kCodecFrames) {
    if (from > 0 && cut.between) cut.between();
    decode_pass(from);
  }
  for (FrameRequest* const request : decoded_) {
    Stream& stream = *request->stream;
    times_.decoded += stream.pending;
    note_sound(stream, *request->samples, request->samples->size() - stream.pending * length, length);
    if (stream.codec->faulty()) stream.ended = stream.faulty = true;
    stream.pending = 0;
  }
  times_.codec_ns += queue().clock().now_ns() - began_ns;
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

// Frames behind the one at which the guard ends the piece are dropped, wherever its chunk ends.
void FramePool::note_sound(Stream& stream, std::vector<float>& samples, size_t first, size_t frame_samples) {
  for (size_t at = first; at < samples.size(); at += frame_samples) {
    stream.guard.note_sound({samples.data() + at, frame_samples});
    if (!stream.guard.is_quiet()) continue;
    samples.resize(at + frame_samples);
    stream.ended = stream.limited = true;
  }
}

}  // namespace syrinx::qwen_tts
