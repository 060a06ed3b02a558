// Streams of several threads that speak through one ChunkSpeaker: what they ask for at the same time is computed
// together, so that the weights are read once for all of them.
//
// A caller that finds nobody at work becomes the one who works: it computes a round of what waits, and hands over.  A
// round begins at most one chunk, whose text delays the others by the time of its pass, and then makes one frame of
// each stream that asks, and the first one of that chunk.  Of several chunks the one that is due first is begun, and
// none while a frame is due before it; batch work, which is never due, waits for all that is, but for kRoundsInARow
// rounds at most.  Whose frame a round has made asks for the next one a moment later, and so does who has got a stream
// or begun a chunk, for the first: for that long batch work begins no round behind one of anything else, but for those
// kRoundsInARow.  A chunk that is due later does.  No thread of its own, and with one stream no hand-over either.
//
// Any number of threads; each stream belongs to one at a time.
#pragma once

#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/due.h"
#include "base/result.h"
#include "base/step_counts.h"
#include "models/pocket_tts/chunk_speaker.h"

namespace syrinx::pocket {

class StreamPool {
 public:
  static constexpr int kRoundsInARow = 4;
  // A frame has been handed over, converted and asked for again by then, where its stream goes on at all.
  static constexpr std::chrono::milliseconds kNextFrame{5};

  // The runner is borrowed and must outlive this; nothing else may run on its team but through alone().  next_frame:
  // for how long batch work waits behind a round of what is due for those whom that has served.  By the clock, which
  // must outlive this, work is due.
  StreamPool(const std::shared_ptr<const FlowLmWeights>& flow, const std::shared_ptr<const mimi::DecoderWeights>& codec,
             const FlowSchedule& schedule, nn::Runner& runner, size_t streams,
             std::chrono::nanoseconds next_frame = kNextFrame, const Clock& clock = system_clock());

  // One of the pool's streams, given back when the lease ends.  The pool must outlive it.
  class Lease {
   public:
    Lease(Lease&& other) noexcept
        : pool_(std::exchange(other.pool_, nullptr)),
          stream_(other.stream_),
          waited_ms_(other.waited_ms_),
          is_wanted_(std::move(other.is_wanted_)) {}
    Lease& operator=(Lease&&) = delete;
    ~Lease() {
      if (pool_ != nullptr) pool_->give_back(stream_);
    }

    size_t latent() const { return pool_->speaker_.latent(); }
    size_t frame_samples() const { return pool_->speaker_.frame_samples(); }
    // As ChunkSpeaker's; each waits until it has been done.  `due_ns`: when the listener runs out of sound.
    // With samples the chunk's first frame is made in the same round, so that a first sound waits for one round of the
    // others and not for two; true where there is one.
    Result<bool> begin(std::shared_ptr<const FlowLmState> voice, std::span<const int32_t> ids, float eos_threshold,
                       size_t frames_after, int64_t due_ns = kDueAtOnce, std::span<const float> noise = {},
                       std::span<float> samples = {});
    bool next(std::span<const float> noise, std::span<float> samples, int64_t due_ns = kDueAtOnce);
    // Whether somebody still listens: asked behind each round that the calls above wait for, and when their own begins,
    // by any of the pool's threads; must neither wait nor throw.  Once it says no begin() fails with kCancelled, next()
    // gives false, and nothing is computed for them.  Between the calls.
    void ask_first(std::function<bool()> is_wanted) { is_wanted_ = std::move(is_wanted); }
    // How long the calls above have waited, all together, while the team worked for others: what is computed together,
    // frames of one round, counts as everybody's own.
    double waited_ms() const { return waited_ms_; }
    // Between the calls above.
    const SpeechEnd& end() const { return pool_->speaker_.end(stream_); }
    bool faulty() const { return pool_->speaker_.faulty(stream_); }

   private:
    friend class StreamPool;
    Lease(StreamPool& pool, size_t stream) : pool_(&pool), stream_(stream) {}
    StreamPool* pool_;
    size_t stream_;
    double waited_ms_ = 0;
    std::function<bool()> is_wanted_;
  };
  // A stream that speaks with the pool's schedule, at once; or with one of its own, which waits for a round.
  // kUnavailable when every stream is taken.
  Result<Lease> lease();
  Result<Lease> lease(const FlowSchedule& schedule);

  // Runs other work on the team, between two rounds.  What it throws is thrown here, wherever it ran.
  void alone(const std::function<void()>& work, int64_t due_ns = kNeverDue);

  // How many have asked for a frame or for other work and wait for its turn.  Any thread.
  size_t waiting() {
    const std::lock_guard lock(mutex_);
    return waiting_.size();
  }
  // The rounds with frames or with work that has a time, since the beginning.  Any thread.
  StepFigures steps() const { return steps_.read(); }

 private:
  struct Request {
    const std::function<void()>* work = nullptr;
    ChunkSpeaker::Frame frame{};  // behind the work where there is any; without samples: none
    int64_t due_ns = kDueAtOnce;
    std::exception_ptr thrown = nullptr;  // by the work, for its owner
    const std::function<bool()>* is_wanted = nullptr;
    bool done = false;
    int64_t deadline_ns = kNeverDue;
    Stopwatch asked = Stopwatch();
    double waited_ms = 0;  // while the team worked for others

    bool has_frame() const { return !frame.samples.empty(); }
    void make_nothing() {
      frame.samples = {};
      due_ns = deadline_ns = kNeverDue;
    }
    bool is_left() const { return is_wanted != nullptr && *is_wanted && !(*is_wanted)(); }
  };
  void serve(Request& request);
  bool gives_way(const Request& request) const;
  Request* choose_work();
  void work_round(std::unique_lock<std::mutex>& lock);
  void count_round(int64_t began_ns);
  void give_back(size_t stream);

  using Time = std::chrono::steady_clock::time_point;

  ChunkSpeaker speaker_;
  const std::chrono::nanoseconds next_frame_;
  const Clock& clock_;
  StepCounts steps_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool busy_ = false;              // somebody works
  std::vector<Request*> waiting_;  // in the order of asking
  int passed_ = 0;                 // rounds that batch work has waited for
  Time frames_until_ = Time();     // when whom the last round served that was due will have asked for a frame
  std::vector<size_t> free_;       // streams
  std::vector<Request*> round_;    // of the one who works
  std::vector<ChunkSpeaker::Frame> frames_;
};

}  // namespace syrinx::pocket
