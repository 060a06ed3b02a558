// Chunks of streams of several threads through one cache-aware transducer: those that wait at the same time share a
// step, encoder and decoder, so that the weights are read once for all of them (spec transducer-asr.md, sections 5.6
// and 8.3).
//
// The order is that of schedule/rounds.h; a step takes the chunks that are due first, as many as it holds.  A stream
// gets the labels that it gets alone, to the last bit of their confidences; values that are not finite stay in the
// stream that has them.
//
// Any number of threads; a stream belongs to one at a time.  Allocates nothing after the constructor but what the
// labels lack, as long as no more threads wait at once than it was made for.  What is thrown in a step reaches all
// whose chunks are in it, and their streams are not to be used any more; the others go on.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "base/due.h"
#include "engine/schedule/rounds.h"
#include "models/transducer/head_decoder.h"
#include "models/transducer/model.h"
#include "models/transducer/stream_encoder.h"
#include "nn/runner.h"

namespace syrinx {

class ChunkPool final : public Rounds {
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

  // Made for so many streams at once.  The runner, whose team serves the turns of the queue, and the queue are
  // borrowed. check_streaming() holds for the context.
  ChunkPool(const transducer::Model& model, nn::Runner& runner, StepQueue& queue, transducer::AttentionContext context,
            const transducer::GreedyOptions& options, size_t streams);

  transducer::AttentionContext context() const { return encoder_.context(); }
  size_t chunk_frames() const { return chunk_frames_; }
  size_t step_streams() const { return encoder_.max_streams(); }  // that a step takes

  // Waits until all its frames have been computed and decoded, which is one step.
  void hear(Chunk& chunk);

  // Runs steps of every size that differs, first, further and last chunks, so that all has been touched once.
  void warm_up(const transducer::Model& model);

  // Steps and chunks since the beginning.  Any thread.
  uint64_t steps() const { return steps_.load(std::memory_order_relaxed); }
  uint64_t chunks() const { return chunks_.load(std::memory_order_relaxed); }

 private:
  struct ChunkRequest : Request {
    explicit ChunkRequest(Chunk& own) : chunk(&own) { due_ns = own.due_ns; }
    Chunk* chunk;
  };
  void choose(std::vector<Request*>& waiting, std::vector<Request*>& round) override;
  void make(std::span<Request* const> round, StepQueue::Turn& turn) override;
  void step();
  bool decode_some();

  const size_t chunk_frames_;
  transducer::StreamEncoder encoder_;
  transducer::HeadDecoder decoder_;
  std::vector<ChunkRequest*> round_;  // of the step that runs
  std::vector<transducer::StreamEncoder::Input> inputs_;
  std::vector<transducer::StreamEncoder::Output> outputs_;
  std::vector<transducer::HeadDecoder::Job> jobs_;
  std::vector<ChunkRequest*> decoded_;  // whose they are
  std::atomic<uint64_t> steps_{0}, chunks_{0};
};

}  // namespace syrinx
