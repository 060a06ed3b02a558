// Progress events of a pull, for a progress bar or a log.
#pragma once

#include <cstdint>
#include <string>

namespace syrinx {

// Events in order: for each model kPlan; then, unless all is there, for each model kSource, kProgress, kNotice as often
// as needed; kDone for each at the end.  kWaiting while another process holds a model.
struct PullEvent {
  enum class Kind { kWaiting, kChecking, kPlan, kSource, kProgress, kNotice, kDone };
  Kind kind = Kind::kNotice;
  std::string model;
  std::string text;            // kPlan: description; kSource: what is fetched and from where; kNotice: one line
  std::string licence;         // kPlan
  std::string folder;          // kPlan, kDone
  uint64_t total_bytes = 0;    // kPlan, kDone: the model; kProgress: this source's share
  uint64_t missing_bytes = 0;  // kPlan: to be fetched; 0 when everything is there
  uint64_t done_bytes = 0;     // kProgress
  uint64_t free_bytes = 0;     // kPlan
};

}  // namespace syrinx
