// The sound of a session or a stream that a recogniser is to hear: how much of it waits, when it came, and how long it
// had waited once it was heard; for the metrics, and for the engine, which gives turns by when sound came.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "engine/recognition/recogniser.h"
#include "server/host/slot_job.h"

namespace syrinx::server {

class WaitingSound {
 public:
  // The longest wait of so much sound is one observation: about a chunk of a model, whatever pieces it comes in.
  static constexpr size_t kObservedSamples = kRecognitionRateHz;

  // The objects in `reports` and the clock must outlive it.
  WaitingSound(std::string model, const JobReports& reports, const Clock& clock);
  ~WaitingSound() { clear(); }
  WaitingSound(const WaitingSound&) = delete;
  WaitingSound& operator=(const WaitingSound&) = delete;

  // Any thread.  Samples at kRecognitionRateHz.
  void add(size_t samples) { count(static_cast<int64_t>(samples)); }           // they have come
  void take_off(size_t samples) { count(-static_cast<int64_t>(samples)); }     // they have been heard, or will not be
  void clear() { take_off(samples()); }                                        // nothing more is added meanwhile
  size_t samples() const { return waiting_.load(std::memory_order_relaxed); }  // that wait

  // As the stream's own, which waits for its turn and works in it; one thread.  `came_ns`: when the last of the sound
  // came, or what ends it.  What waits is not changed.
  Status push(RecognitionStream& stream, std::span<const float> sound, int64_t came_ns,
              std::vector<RecognitionEvent>& events);
  Status finish(RecognitionStream& stream, int64_t came_ns, std::vector<RecognitionEvent>& events);

 private:
  void count(int64_t samples);
  void note_wait(int64_t came_ns);
  void observe();

  const std::string model_;
  const JobReports reports_;
  const Clock& clock_;
  std::atomic<size_t> waiting_{0};
  size_t heard_ = 0;      // since the last observation, of the thread that pushes, as what follows
  double longest_s_ = 0;  // that any of it waited
};

}  // namespace syrinx::server
