// Streams of several threads that speak through one FrameGenerator and one CodecDecoder: what they ask for at the same
// time is one round, in which the next frame of every stream is made, and the sound of those whose chunk is complete is
// decoded; so the weights are read once for all of them (schedule/rounds.h says who computes it).  Streams of batch
// work, which are never due, have a round of their own after some of the live ones.
//
// A prompt is read in slices, one in a round: while others speak as many of its positions as their frames have time for
// (prompt_share.h), in the pass that makes these; else as many as a pass takes.  Several newcomers take turns: the one
// that has read least goes first.  Of prompts that begin alike the beginning is read once (prompt_prefixes.h).
//
// A piece's text may go on while its frames are made: a stream that needs more of it makes none until it has come, and
// others go on.
//
// A stream's samples, and where SpeechGuard holds them back or ends the piece, depend neither on the chunks in which
// they are asked for nor on other streams.
//
// Any number of threads; each stream belongs to one at a time.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/due.h"
#include "base/result.h"
#include "base/step_counts.h"
#include "engine/families/qwen_tts/prompt_prefixes.h"
#include "engine/families/qwen_tts/prompt_share.h"
#include "engine/families/qwen_tts/speech_guard.h"
#include "engine/schedule/rounds.h"
#include "models/qwen_tts/codec_decoder.h"
#include "models/qwen_tts/frame_generator.h"
#include "nn/runner.h"

namespace syrinx::qwen_tts {

class FramePool final : public Rounds {
  struct Stream;

 public:
  static constexpr size_t kMaxChunk = 8;  // frames

  // The runner, whose team serves the turns of the queue, and the queue are borrowed.  Up to `streams` streams, 1 to
  // kMaxStreams.  Errors of FrameGenerator::make().
  static Result<std::unique_ptr<FramePool>> make(std::shared_ptr<const Weights> weights,
                                                 std::shared_ptr<const CodecDecoderWeights> codec, nn::Runner& runner,
                                                 StepQueue& queue, size_t streams);

  // A piece of text that is to be spoken.
  struct Piece {
    Prompt prompt;
    SpeechSettings settings;                   // with the limit of frames
    size_t expected_frames = 0;                // SpeechGuard::expected_frames()
    const CodecDecoderState* codec = nullptr;  // the sound goes on behind this one, borrowed; null: it begins
    size_t kept_frames = 0;                    // most frames whose codes are kept for spoken_codes()
  };
  // The result of next(), besides samples.
  struct Made {
    bool ended = false;  // nothing of the piece is left
    FinishReason reason = FinishReason::kSpoken;
    bool faulty = false;  // values were not numbers
    // So many of the last frames, 0 at the end, are not to be heard yet.
    size_t held = 0;
  };

  // One of the pool's streams, given back when the lease ends.  The pool must outlive it.
  class Lease {
   public:
    Lease(Lease&& other) noexcept
        : pool_(std::exchange(other.pool_, nullptr)),
          stream_(other.stream_),
          open_(std::move(other.open_)),
          waited_ns_(other.waited_ns_),
          is_wanted_(std::move(other.is_wanted_)) {}
    Lease& operator=(Lease&&) = delete;
    ~Lease() {
      if (pool_ != nullptr) pool_->give_back(stream_);
    }

    size_t frame_samples() const { return pool_->codec_.config().frame_samples(); }
    // The rest of the last piece is dropped; the next rounds read the prompt and make the first frame.
    // Errors of FrameGenerator::make_stream() and begin().
    Status begin(Piece piece);
    // Makes a frame and, if `chunk` frames (1 to kMaxChunk) wait to be decoded or the piece has ended, appends their
    // sound.  Frames that are held back stay in `samples` for the next call; those of a piece that is cut are taken off
    // it.  `due_ns`: when the listener runs out of sound.  kCancelled once the stream is not wanted any more.
    Result<Made> next(size_t chunk, std::vector<float>& samples, int64_t due_ns = kDueAtOnce);
    // The prompt's text goes on, and has not come: add_text() or end_text() before next().
    bool needs_text() const { return !stream().ended && stream().frames->needs_text(); }
    // More of a text that goes on, and its end, with the figures of all of it (SpeechGuard).
    void add_text(std::span<const int32_t> tokens) { pool_->generator_->add_text(*stream().frames, tokens); }
    void end_text(size_t max_frames, size_t expected_frames);
    // While text is awaited, so that prompts of others are read as if nobody spoke here.
    void rest() { pool_->set_speaks(stream(), false); }
    // As next(), of the frames that wait, without another one.
    Result<Made> decode(std::vector<float>& samples, int64_t due_ns = kDueAtOnce) {
      return serve(1, false, samples, due_ns);
    }
    // Codes [frames, codebooks] of a piece that has ended, if it had no more than kept_frames.
    std::span<const int32_t> spoken_codes() const;
    // A copy of the codec's state behind its last frame, for Piece::codec.
    CodecDecoderState sound() const;
    // It was cut while frames were held back, and so little of the text was heard that it may be begun anew.
    bool spoken_little() const;
    // Frames that wait to be decoded.
    size_t pending() const { return stream().pending; }
    // Whether the stream is still listened to: asked while next() waits, by any of the pool's threads; must neither
    // wait nor throw.  Between the calls.
    void ask_first(std::function<bool()> is_wanted) { is_wanted_ = std::move(is_wanted); }
    // How long the calls above have waited, all together, while the team worked for others.
    double waited_ms() const { return static_cast<double>(waited_ns_) * 1e-6; }

   private:
    friend class FramePool;
    Result<Made> serve(size_t chunk, bool makes, std::vector<float>& samples, int64_t due_ns);
    Stream& stream() const { return pool_->streams_[stream_]; }
    Lease(FramePool& pool, size_t stream) : pool_(&pool), stream_(stream), open_(pool.queue().scheduler()) {}
    FramePool* pool_;
    size_t stream_;
    Scheduler::Open open_;
    int64_t waited_ns_ = 0;
    std::function<bool()> is_wanted_;
  };
  // kUnavailable when every stream is taken.
  Result<Lease> lease();

  // Runs other work on the team, as a step of its own that gives way as often as `work` calls what it is given.
  void alone(const std::function<void(const nn::BetweenJobs& between)>& work, int64_t due_ns = kNeverDue);

  // A state for Piece::codec, of a stream that begins, and what it goes on behind: codes [1, codebooks] that the codec
  // has, samples [frame_samples]; in a turn of alone(), between two of its parts.
  CodecDecoderState make_codec_state() const { return codec_.make_state(); }
  void decode(CodecDecoderState& state, View<const int32_t, 2> codes, std::span<float> samples) {
    codec_.decode(state, codes, samples);
  }

  // A recorded voice [D] is no more: what is kept of its prompts goes, until a session that has it speaks on.  Any
  // thread.
  void forget_voice(std::span<const float> voice) { prefixes_.drop(voice); }

  // How many have asked for a frame or for other work and wait for its turn.  Any thread.
  size_t waiting() const { return queue().waiting() + waiting_behind(); }
  StepFigures steps() const { return queue().steps(); }
  // How long the stages of all rounds have taken, for `syrinx bench` and docs/journal.md; between rounds.
  struct Times {
    int64_t prompts_ns = 0, frames_ns = 0, codec_ns = 0;
    size_t rounds = 0, frames = 0, decoded = 0;
    size_t prompt_rows = 0;    // positions of prompts that were read
    size_t longest_slice = 0;  // positions of a prompt in a round that made frames for others
  };
  const Times& times() const { return times_; }

 private:
  struct Stream {
    std::optional<FrameStream> frames;
    std::optional<CodecDecoderState> codec;
    std::vector<int32_t> codes;              // [kMaxChunk, codebooks], of frames that wait to be decoded
    std::array<float, kMaxChunk> ends = {};  // probabilities of the end, beside them
    size_t pending = 0;
    SpeechGuard guard;
    std::vector<int32_t> spoken;  // [frames, codebooks], that were decoded, up to kept_frames of them
    size_t kept_frames = 0, decoded_frames = 0;
    bool ended = true, faulty = false;
    bool speaks = false;        // it is one of speakers_
    bool keeps_prefix = false;  // once its prompt is read
    FinishReason reason = FinishReason::kSpoken;
  };
  struct FrameRequest : Request {
    Stream* stream = nullptr;
    size_t chunk = 1;
    bool makes = true;  // a frame; else those that wait are decoded
    std::vector<float>* samples = nullptr;
    bool is_made = false;
    int64_t deadline_ns = kNeverDue, asked_ns = 0;
    int64_t waited_ns = 0;  // while the team worked for others
  };

  FramePool(std::unique_ptr<FrameGenerator> generator, std::shared_ptr<const CodecDecoderWeights> codec,
            nn::Runner& runner, StepQueue& queue, size_t streams);
  int64_t patience_ns() const override { return share_.step_ns() / 8; }
  void choose(std::vector<Request*>& waiting, std::vector<Request*>& round) override;
  void make(std::span<Request* const> round, StepQueue::Turn& turn) override;
  void make_frames(const nn::PassCut& cut, const StepQueue::Turn& turn);
  size_t slice_rows() const;
  void note_times(const FrameGenerator::PromptSlice& slice, size_t rows, int64_t took_ns);
  void set_speaks(Stream& stream, bool speaks);
  void keep_prefix(Stream& stream);
  void keep_frame(Stream& stream);
  static bool makes_frame(const FrameRequest& request);
  static bool completes_chunk(const FrameRequest& request, size_t pending);
  void decode_chunks(const nn::PassCut& cut, const StepQueue::Turn& turn);
  void decode_pass(size_t from);
  static void copy(const CodecDecoderState& from, CodecDecoderState& to);
  static void note_sound(Stream& stream, std::vector<float>& samples, size_t frame_samples);
  void give_back(size_t stream);

  const std::unique_ptr<FrameGenerator> generator_;
  CodecDecoder codec_;
  PromptPrefixes prefixes_;
  std::vector<Stream> streams_;
  std::mutex mutex_;
  std::vector<size_t> free_;
  size_t live_rounds_ = 0;  // since the last one of batch work
  PromptShare share_;
  std::atomic<size_t> speakers_{0};  // live streams amid a piece, behind its prompt
  Times times_;
  // Scratch of the round that is made, in its turn.
  std::vector<FrameRequest*> round_, decoded_;
  FrameRequest* newcomer_ = nullptr;  // of round_, whose prompt is read
  std::vector<FrameStream*> stepped_;
  std::vector<CodecDecoder::Frames> frames_;
};

}  // namespace syrinx::qwen_tts
