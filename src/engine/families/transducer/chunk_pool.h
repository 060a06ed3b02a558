// Chunks of streams of several threads through one cache-aware transducer: those that wait at the same time share a
// step, encoder and decoder, so that the weights are read once for all of them (spec transducer-asr.md, sections 5.6
// and 8.3).
//
// A caller that finds nobody at work becomes the one who works: it takes the chunks that are due first, as many as a
// step holds, and hands over to the one whose chunk is due next, who then stands in the turns' line already.  No thread
// of its own, no delay to gather more, and with one stream no hand-over.  A stream gets the labels that it gets alone,
// to the last bit of their confidences; values that are not finite stay in the stream that has them.
//
// Any number of threads; a stream belongs to one at a time.  Allocates nothing after the constructor but what the
// labels lack, as long as no more threads wait at once than it was made for.  What is thrown in a step reaches all
// whose chunks are in it, and their streams are not to be used any more; the others go on.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <mutex>
#include <span>
#include <vector>

#include "base/due.h"
#include "engine/schedule/turns.h"
#include "models/transducer/head_decoder.h"
#include "models/transducer/model.h"
#include "models/transducer/stream_encoder.h"
#include "nn/runner.h"

namespace syrinx {

class ChunkPool {
 public:
  // Frames of a step, at most, unless a single chunk has more: beyond them a frame costs its own arithmetic, so a
  // longer step would keep the oldest chunk waiting and save nothing.
  static constexpr size_t kStepFrames = 32;

  // Sees frames [n, d] of a chunk whose labels have just been found.
  using Sink = std::function<void(View<const float, 2> frames)>;

  // One chunk of a stream, and where what is heard in it goes.
  struct Chunk {
    transducer::EncoderState* encoder = nullptr;  // made for the pool's context, kExact
    View<const float, 2> mels;                    // as StreamEncoder::Input's
    bool last = false;                            // the stream ends behind it
    // Of the chunk's frames these are wanted, and so many of them are decoded at once, at least 1.
    size_t first = 0, end = std::numeric_limits<size_t>::max(), at_once = std::numeric_limits<size_t>::max();
    transducer::HeadState* head = nullptr;
    std::vector<transducer::Emission>* found = nullptr;  // labels are appended
    View<float, 2> frames;                               // those wanted: chunk_frames() rows, padded with zeros to 32
    // Called behind each `at_once` of them and before those that follow, so it may change the head and the labels; by
    // the thread that does the work, while the caller waits.  What it throws is the caller's alone.
    const Sink* sink = nullptr;

    int64_t due_ns = kDueAtOnce;  // of those that wait, the ones that are due first go first

    size_t rows = 0, decoded = 0;  // frames that it has, and those whose labels are known
  };

  // Made for so many streams at once.  The runner, whose team serves whoever has the turn, and the turns are borrowed.
  // check_streaming() holds for the context.
  ChunkPool(const transducer::Model& model, nn::Runner& runner, Turns& turns, transducer::AttentionContext context,
            const transducer::GreedyOptions& options, size_t streams);

  transducer::AttentionContext context() const { return encoder_.context(); }
  size_t chunk_frames() const { return chunk_frames_; }
  size_t step_streams() const { return encoder_.max_streams(); }  // that a step takes

  // Waits until all its frames have been computed and decoded, which is one step.
  void hear(Chunk& chunk);

  // Runs steps of every size that differs, first, further and last chunks, so that all has been touched once.
  void warm_up(const transducer::Model& model);

  // How many wait for a step; steps and chunks since the beginning.  Any thread.
  size_t waiting() {
    const std::lock_guard lock(mutex_);
    return waiting_.size();
  }
  // The same without the one that is to work, which stands in the turns' line itself.
  size_t waiting_behind() {
    const std::lock_guard lock(mutex_);
    return static_cast<size_t>(
        std::count_if(waiting_.begin(), waiting_.end(), [](auto* each) { return !each->leads; }));
  }
  uint64_t steps() const { return steps_.load(std::memory_order_relaxed); }
  uint64_t chunks() const { return chunks_.load(std::memory_order_relaxed); }

 private:
  struct Request {
    Chunk* chunk = nullptr;
    bool done = false, leads = false;
    std::exception_ptr thrown = {};
    std::condition_variable changed = {};
    Turns::Place place = {};  // in the turns' line, once it leads
  };
  void lead(std::unique_lock<std::mutex>& lock, Request& own);
  int64_t deadline_of_round() const;
  void hand_over(Turns::Turn& turn, Request& own);
  void try_step();
  void step();
  bool decode_some();

  Turns& turns_;
  const size_t chunk_frames_;
  transducer::StreamEncoder encoder_;
  transducer::HeadDecoder decoder_;
  std::mutex mutex_;
  bool led_ = false;               // somebody works, or has been told to
  std::vector<Request*> waiting_;  // in the order in which they are due
  std::vector<Request*> round_;    // of the one who works
  std::vector<transducer::StreamEncoder::Input> inputs_;
  std::vector<transducer::StreamEncoder::Output> outputs_;
  std::vector<transducer::HeadDecoder::Job> jobs_;
  std::vector<Request*> decoded_;  // whose they are
  std::atomic<uint64_t> steps_{0}, chunks_{0};
};

}  // namespace syrinx
