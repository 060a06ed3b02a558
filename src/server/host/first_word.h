// How long somebody who speaks waits for the first words of a turn or a stream: from when the first of them began until
// it is told, for the metrics.  One thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "engine/recognition/recogniser.h"
#include "server/host/slot_job.h"

namespace syrinx::server {

class FirstWord {
 public:
  // The objects in `reports` and the clock must outlive it.
  FirstWord(std::string model, const JobReports& reports, const Clock& clock)
      : model_(std::move(model)), reports_(reports), clock_(clock) {}

  void begin_turn() { is_told_ = false; }  // its first words are to come
  void begin_stream() { samples_ = 0; }    // from here on the recogniser's times count
  // Sound at kRecognitionRateHz that the recogniser is given, and when the last of it came.
  void hear(size_t samples, int64_t came_ns) {
    if (samples == 0) return;
    if (samples_ == 0) first_came_ns_ = came_ns;
    last_came_ns_ = came_ns;
    samples_ += samples;
  }
  // Words that begin there in the stream.  Sound that has come at the pace of speech had them so long before its last
  // sample; none of what came all at once had come before its beginning.  The seconds, of the first ones.
  std::optional<double> tell(double begin_s) {
    if (std::exchange(is_told_, true)) return std::nullopt;
    const double since_s = static_cast<double>(samples_) / kRecognitionRateHz - begin_s;
    const int64_t said_ns = std::max(first_came_ns_, last_came_ns_ - static_cast<int64_t>(since_s * 1e9));
    const double waited_s = std::max(static_cast<double>(clock_.now_ns() - said_ns) * 1e-9, 0.0);
    reports_.metrics.observe("syrinx_time_to_first_word_seconds", {{"model", model_}}, waited_s);
    return waited_s;
  }

 private:
  const std::string model_;
  const JobReports reports_;
  const Clock& clock_;
  bool is_told_ = false;
  uint64_t samples_ = 0;  // of the stream
  int64_t first_came_ns_ = 0, last_came_ns_ = 0;
};

}  // namespace syrinx::server
