// Admission of live streams by measured load: a stream is taken only where those that have a slot leave it enough of
// the team's time to be on time, so that nothing that is admitted makes the rest late.  Speech and recognition share
// one team, and so one measure.
//
// The load of an engine is what its live streams need at the pace of speech by the cost of its last steps
// (engine/schedule/stream_cost.h): a stream that has just been admitted counts whole, one that runs ahead of its
// listener counts as one at that pace, and one whose client has stopped taking audio does not count.  Batch work counts
// with the share that the scheduler keeps for it while there is any.  Where steps came late in the last seconds nothing
// is taken above half of the limit.  While an engine's streams are refused, those of another one leave it half of
// the limit, or one stream of it where that needs more; the first stream of each kind is exempt.  So neither kind shuts
// the other out.
//
// Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/step_counts.h"
#include "engine/schedule/stream_cost.h"
#include "server/host/slots.h"

namespace syrinx::server {

class LiveAdmission {
 public:
  static constexpr double kLongestWaitS = 60;

  // `limit`: share of the team's time for live streams; 0: all are admitted that find a slot.
  explicit LiveAdmission(double limit, const Clock& clock = system_clock()) : limit_(limit), clock_(clock) {}

  // An engine, before its first stream: what its streams hold, and its steps since the beginning.  `cost`: by the
  // warm-up.  The slots are borrowed.
  void add(const SlotPool& slots, std::function<StepFigures()> steps, const StreamCost& cost);

  void remove(const SlotPool& slots);  // whose engine goes

  struct Refusal {
    double load = 0;     // with the stream that is refused
    double own = 0;      // of that stream
    size_t streams = 0;  // live ones that hold slots
    double wait_s = 0;   // until there is room, if the others last as long as those before; 1 to kLongestWaitS
  };
  // Calls `take`, which takes one of these slots and says whether there was one, where a stream of that engine has
  // room.
  std::optional<Refusal> admit(const SlotPool& slots, const std::function<bool()>& take);
  bool has_room(const SlotPool& slots);

  struct Figures {
    double load = 0;
    uint64_t admitted = 0;
  };
  Figures figures(const SlotPool& slots);  // of that engine
  double limit() const { return limit_; }

 private:
  struct Engine {
    const SlotPool* slots;
    std::function<StepFigures()> steps;
    StreamCost cost;
    StepFigures noted = {};  // what the cost knows
    double noted_audio_s = 0;
    uint64_t admitted = 0;
    std::optional<int64_t> refused_ns = {};  // when a stream was refused last
    double refused_load = 0;                 // what it would have added
  };
  // The counts of all engines at some moment.
  struct Sample {
    int64_t at_ns = 0;
    uint64_t steps = 0, late = 0;
    int64_t other_ns = 0;
  };

  // By mutex_.
  void measure();
  Engine* find(const SlotPool& slots);
  std::optional<Refusal> refusal(const SlotPool& slots);
  double batch_share() const;
  bool is_late() const;
  double kept_from(const SlotPool& slots) const;
  double wait_s(double excess, double own, size_t streams) const;

  const double limit_;
  const Clock& clock_;
  std::mutex mutex_;
  std::vector<Engine> engines_;
  std::deque<Sample> samples_;  // of the last seconds, the newest last
};

}  // namespace syrinx::server
