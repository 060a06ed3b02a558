// Frames behind a rest in which nothing was computed, and why they are slow: each has its time by stage, page faults
// and time that the hypervisor took, and beside it a plain read of memory that no model uses.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/result.h"
#include "base/thread_team.h"
#include "bench/suite/rounds.h"

namespace syrinx::bench {

struct QwenFrameTimes {
  double talker_ms = 0, predictor_ms = 0, codec_ms = 0;
  double sum() const { return talker_ms + predictor_ms + codec_ms; }
};

// Between the rest and its frame: nothing, 30 ms of arithmetic without memory on all threads, or the pages of the
// weights are read (tensor/kept_pages.h); or they are read every 2 s of the rest.
enum class RestEnd : uint8_t { kPlain, kCoresBusy, kPagesRead, kPagesKept };
const char* rest_end_name(RestEnd end);

struct QwenRest {
  RestEnd end = RestEnd::kPlain;
  double end_ms = 0;
  QwenFrameTimes frame;
  int64_t minor_faults = 0, major_faults = 0;  // of the frame, in all threads
  double stolen_ms = 0;                        // of all cores, in steps of 10 ms; 0 where no hypervisor tells
  double read_ms = 0, read_again_ms = 0;       // kRestReadBytes behind the frame, which nothing has read since the rest
  Times next;                                  // the frames that follow
};
constexpr size_t kRestReadBytes = size_t{256} << 20, kRestNextFrames = 5;

// The next frame of a stream that runs; nothing once it has ended.
using NextFrame = std::function<Result<std::optional<QwenFrameTimes>>()>;

// So many rests, in these ways in turns; fewer where the stream ends.  kCancelled after a signal.
Result<std::vector<QwenRest>> measure_rests(ThreadTeam& team, size_t rests, double seconds, const NextFrame& frame);

}  // namespace syrinx::bench
