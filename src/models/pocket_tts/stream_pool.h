// Streams of several threads that speak through one ChunkSpeaker: what they ask for at the same time is computed
// together, so that the weights are read once for all of them.
//
// A caller that finds nobody at work becomes the one who works: it takes every request that waits, computes one round
// of them, and hands over.  A round begins at most one chunk, whose text delays the others by the time of its pass, and
// then makes one frame of each stream that asks.  No thread of its own, and with one stream no hand-over either.
//
// Any number of threads; each stream belongs to one at a time.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "models/pocket_tts/chunk_speaker.h"

namespace syrinx::pocket {

class StreamPool {
 public:
  // The runner is borrowed and must outlive this; nothing else may run on its team but through alone().
  StreamPool(const std::shared_ptr<const FlowLmWeights>& flow, const std::shared_ptr<const mimi::DecoderWeights>& codec,
             const FlowSchedule& schedule, nn::Runner& runner, size_t streams);

  // One of the pool's streams, given back when the lease ends.  The pool must outlive it.
  class Lease {
   public:
    Lease(Lease&& other) noexcept
        : pool_(std::exchange(other.pool_, nullptr)), stream_(other.stream_), waited_ms_(other.waited_ms_) {}
    Lease& operator=(Lease&&) = delete;
    ~Lease() {
      if (pool_ != nullptr) pool_->give_back(stream_);
    }

    size_t latent() const { return pool_->speaker_.latent(); }
    size_t frame_samples() const { return pool_->speaker_.frame_samples(); }
    // As ChunkSpeaker's; each waits until it has been done.
    Status begin(std::shared_ptr<const FlowLmState> voice, std::span<const int32_t> ids, float eos_threshold,
                 size_t frames_after);
    bool next(std::span<const float> noise, std::span<float> samples);
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
  };
  // A stream that speaks with a schedule of its own.  kUnavailable when every stream is taken.
  Result<Lease> lease(const FlowSchedule& schedule);

  // Runs other work on the team, between two rounds.  What it throws is thrown here, wherever it ran.
  void alone(const std::function<void()>& work) { alone_after(work); }

 private:
  struct Request {
    const std::function<void()>* work = nullptr;  // or a frame:
    ChunkSpeaker::Frame frame{};
    std::exception_ptr thrown = nullptr;  // by the work, for its owner
    bool done = false;
    Stopwatch asked = Stopwatch();
    double waited_ms = 0;  // while the team worked for others
  };
  double alone_after(const std::function<void()>& work);  // milliseconds that it waited
  void serve(Request& request);
  void work_round(std::unique_lock<std::mutex>& lock);
  void give_back(size_t stream);

  ChunkSpeaker speaker_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool busy_ = false;              // somebody works
  std::vector<Request*> waiting_;  // in the order of asking
  std::vector<size_t> free_;       // streams
  std::vector<Request*> round_;    // of the one who works
  std::vector<ChunkSpeaker::Frame> frames_;
};

}  // namespace syrinx::pocket
