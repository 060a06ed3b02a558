// Counters, gauges and histograms in Prometheus's text format.  Any thread; never in a step of a model.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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
  Series& series(std::string_view family, Kind kind, Labels labels);

  mutable std::mutex mutex_;
  std::vector<State> states_;
};

}  // namespace syrinx::server
