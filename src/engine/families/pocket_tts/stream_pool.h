// Streams of several threads that speak through one ChunkSpeaker: the frames that they ask for at the same time are one
// step, so that the weights are read once for all of them (schedule/rounds.h says who computes it).  Beginning a chunk
// is a step of its own, and the chunk's first frame is part of the round that follows.  Streams that are never due, of
// batch work, have rounds of their own: they keep the scheduler's share, and live streams do not wait for their frames.
//
// Any number of threads; each stream belongs to one at a time.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "base/due.h"
#include "base/result.h"
#include "base/step_counts.h"
#include "engine/schedule/rounds.h"
#include "models/pocket_tts/chunk_speaker.h"

namespace syrinx::pocket {

class StreamPool final : public Rounds {
 public:
  // The runner, whose team serves the turns of the queue, and the queue are borrowed.
  StreamPool(const std::shared_ptr<const FlowLmWeights>& flow, const std::shared_ptr<const mimi::DecoderWeights>& codec,
             const FlowSchedule& schedule, nn::Runner& runner, StepQueue& queue, size_t streams);

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

    size_t latent() const { return pool_->speaker_.latent(); }
    size_t frame_samples() const { return pool_->speaker_.frame_samples(); }
    // As ChunkSpeaker's; each waits until it has been done.  `due_ns`: when the listener runs out of sound.
    // With samples the chunk's first frame is made too, in a round that nothing of the pool comes before: a first sound
    // waits for one round of the others and not for two.  True where there is one.
    Result<bool> begin(std::shared_ptr<const FlowLmState> voice, std::span<const int32_t> ids, float eos_threshold,
                       size_t frames_after, int64_t due_ns = kDueAtOnce, std::span<const float> noise = {},
                       std::span<float> samples = {});
    bool next(std::span<const float> noise, std::span<float> samples, int64_t due_ns = kDueAtOnce);
    // Whether the stream is still listened to: asked while the calls above wait, and when their turn comes, by any of
    // the pool's threads; must neither wait nor throw.  Once it says no begin() fails with kCancelled, next() gives
    // false, and nothing is computed for them.  Between the calls.
    void ask_first(std::function<bool()> is_wanted) { is_wanted_ = std::move(is_wanted); }
    // How long the calls above have waited, all together, while the team worked for others: what is computed together,
    // frames of one round, counts as everybody's own.
    double waited_ms() const { return static_cast<double>(waited_ns_) * 1e-6; }
    // Between the calls above.
    const SpeechEnd& end() const { return pool_->speaker_.end(stream_); }
    bool faulty() const { return pool_->speaker_.faulty(stream_); }

   private:
    friend class StreamPool;
    Lease(StreamPool& pool, size_t stream) : pool_(&pool), stream_(stream), open_(pool.queue().scheduler()) {}
    StreamPool* pool_;
    size_t stream_;
    Scheduler::Open open_;
    int64_t waited_ns_ = 0;
    std::function<bool()> is_wanted_;
  };
  // A stream that speaks with the pool's schedule, at once; or with one of its own, which waits for a round.
  // kUnavailable when every stream is taken.
  Result<Lease> lease();
  Result<Lease> lease(const FlowSchedule& schedule);

  // Runs other work on the team, as a step of its own.
  void alone(const std::function<void()>& work, int64_t due_ns = kNeverDue);

  // How many have asked for a frame or for other work and wait for its turn.  Any thread.
  size_t waiting() const { return queue().waiting() + waiting_behind() + batch_.waiting_behind(); }
  // The steps of frames and of work that has a time, since the beginning.  Any thread.
  StepFigures steps() const { return queue().steps(); }

 private:
  class BatchRounds final : public Rounds {
   public:
    BatchRounds(StreamPool& pool, StepQueue& queue, size_t streams) : Rounds(queue, streams), pool_(pool) {}
    using Rounds::enter, Rounds::wait;

   private:
    void choose(std::vector<Request*>& waiting, std::vector<Request*>& round) override { pool_.choose(waiting, round); }
    void make(std::span<Request* const> round, StepQueue::Turn& turn) override { pool_.make(round, turn); }

    StreamPool& pool_;
  };
  struct FrameRequest : Request {
    ChunkSpeaker::Frame frame{};
    int64_t deadline_ns = kNeverDue, asked_ns = 0;
    int64_t waited_ns = 0;  // while the team worked for others
  };
  void prepare(const Lease& lease, std::span<const float> noise, std::span<float> samples, int64_t due_ns,
               FrameRequest& request) const;
  void enter_rounds(FrameRequest& request) { is_batch(request) ? batch_.enter(request) : enter(request); }
  void wait_for_round(FrameRequest& request) { is_batch(request) ? batch_.wait(request) : wait(request); }
  static bool is_batch(const FrameRequest& request) { return request.due_ns == kNeverDue; }
  void choose(std::vector<Request*>& waiting, std::vector<Request*>& round) override;
  void make(std::span<Request* const> round, StepQueue::Turn& turn) override;
  void give_back(size_t stream);

  BatchRounds batch_;
  ChunkSpeaker speaker_;
  std::mutex mutex_;
  std::vector<size_t> free_;  // streams
  // Scratch of the round that is made, in its turn.
  std::vector<FrameRequest*> round_;
  std::vector<ChunkSpeaker::Frame> frames_;
};

}  // namespace syrinx::pocket
