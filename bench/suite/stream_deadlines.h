// Streams at the pace of speech: each chunk comes at its own time and must be heard before the next one has come.
#pragma once

#include <cstddef>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/thread_team.h"
#include "bench/suite/rounds.h"
#include "models/transducer/greedy.h"
#include "models/transducer/model.h"

namespace syrinx::bench {

struct DeadlineTrial {
  size_t streams = 0;
  Times ms = {};            // from the arrival of a chunk's last sample until its labels are known
  size_t misses = 0;        // of them longer than a chunk
  double step_chunks = 0;   // chunks that a step took, mean
  double labels_per_s = 0;  // of sound
};

// Shared by the streams.  ChunkedFrames::fits() and check_streaming() hold; all is borrowed.
struct DeadlineWork {
  const transducer::Model& model;
  transducer::AttentionContext context;
  transducer::GreedyOptions options = {};
  ThreadTeam& team;
  double seconds = 1;  // of each stream
  // Runs what it is given on a thread of its own; throws std::system_error where the system makes no more of them.
  std::function<std::thread(std::function<void()>)> make_thread = [](std::function<void()> body) {
    return std::thread(std::move(body));
  };
};

// So many streams, each with a thread, whose chunks come one stream after the other within a chunk's time; their
// attention is full from the start.  kCancelled; kUnavailable where there are not so many threads.
Result<DeadlineTrial> run_streams(const DeadlineWork& work, size_t streams);

// Doubles the streams until one of them misses a deadline, then halves the gap: the last trial but those that failed is
// the greatest number that had no miss.  All trials, in order; at most `most` streams.
Result<std::vector<DeadlineTrial>> find_streams(const DeadlineWork& work, size_t most);

}  // namespace syrinx::bench
