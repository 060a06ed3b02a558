// Counters, gauges and histograms in Prometheus's text format.  Any thread; never in a step of a model, whose figures
// are taken from where they are counted when the page is written (base/step_counts.h).
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/step_counts.h"

namespace syrinx::server {

// Labels have few values: routes as they are written in the router, names of models, codes.  Never what a user sent.
using Labels = std::initializer_list<std::pair<const char*, std::string_view>>;

class Metrics {
 public:
  enum class Kind { kCounter, kGauge, kHistogram };
  struct Family {
    const char* name;
    Kind kind;
    const char* help;
    std::vector<double> bounds = {};  // of a histogram's buckets, in seconds
  };
  Metrics();

  // The family must be one of metrics.cc's table, and of that kind.
  void add(std::string_view family, Labels labels, double by = 1);
  void set(std::string_view family, Labels labels, double value);
  void observe(std::string_view family, Labels labels, double seconds);
  // Totals of a counter, or a histogram of steps, that is kept elsewhere.
  void set_total(std::string_view family, Labels labels, double total);
  void set_steps(std::string_view family, Labels labels, const StepFigures& steps);
  // A counter or a histogram that is to be seen before it counts: one that appears with its first event has no rate.
  void begin(std::string_view family, Labels labels);

  std::string text() const;

 private:
  struct Series {
    double value = 0;               // of a histogram the sum
    std::vector<uint64_t> buckets;  // with +Inf last
  };
  struct State {
    const Family* family;
    std::map<std::string, Series> series;  // by what stands between the braces
  };
  State& state(std::string_view family);
  Series& series(std::string_view family, Kind kind, Labels labels);

  mutable std::mutex mutex_;
  std::vector<State> states_;
};

}  // namespace syrinx::server
