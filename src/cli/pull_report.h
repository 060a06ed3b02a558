// Shows a pull: a bar with bytes, rate and time left on a terminal, plain lines elsewhere, or one JSON object a line.
// Lines go to standard output unless another stream is given, the bar to standard error.  One thread.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

#include "base/clock.h"
#include "store/model_store.h"

namespace syrinx::cli {

enum class PullStyle { kBar, kLines, kJson };

class PullReport {
 public:
  explicit PullReport(PullStyle style, const Clock& clock = system_clock(), std::FILE* lines = stdout);
  ~PullReport();  // takes the bar away
  void show(const PullEvent& event);

 private:
  void show_progress(const PullEvent& event);
  void line(const std::string& text);
  void clear_bar();

  PullStyle style_;
  const Clock& clock_;
  std::FILE* const lines_;
  bool bar_shown_ = false;
  std::string what_;  // the present source's share
  int64_t started_ns_ = 0;
  int64_t shown_ns_ = 0;
  uint64_t started_bytes_ = 0;  // what was there when the source began: it does not count for the rate
  bool started_ = false;
};

// "812 B", "1.2 kB", "92.4 MB", "3.20 GB".
std::string size_text(uint64_t bytes);
// "4 s", "2:05 min", "1:02:03 h".
std::string time_text(double seconds);
// "[####------]  40 %  37.0 / 92.4 MB  12.3 MB/s  4 s left", fitted to `columns`.
std::string bar_text(uint64_t done_bytes, uint64_t total_bytes, double bytes_per_second, int columns);
// One JSON object, without a newline.
std::string event_json(const PullEvent& event);

}  // namespace syrinx::cli
