#include "engine/schedule/stream_cost.h"

#include <algorithm>
#include <cmath>

namespace syrinx {
namespace {

// With less spread of the numbers of streams, a line through the lengths of steps says nothing.
constexpr double kLeastVariance = 0.25;
// One more stream in a step costs at least this part of the average of those in it, whatever the line says.
constexpr double kLeastSlope = 0.25;

}  // namespace

void StreamCost::note(const StepFigures& more, double audio_s) {
  const double steps_s = static_cast<double>(more.took_ns) * 1e-9, rounds_s = std::min(more.rounds.took_s, steps_s);
  const double kept = std::exp(-std::max(steps_s / kWindowS, audio_s / kAudioWindowS));
  audio_s_ = audio_s_ * kept + audio_s;
  other_s_ = other_s_ * kept + steps_s - rounds_s;
  rounds_ = rounds_ * kept + static_cast<double>(more.rounds.rounds);
  members_ = members_ * kept + more.rounds.members;
  squares_ = squares_ * kept + more.rounds.squares;
  rounds_s_ = rounds_s_ * kept + rounds_s;
  rounds_members_s_ = rounds_members_s_ * kept + more.rounds.took_members_s;
  set_least();
}

void StreamCost::calibrate(double work_s, double audio_s) {
  other_s_ += work_s;
  audio_s_ += audio_s;
  set_least();
}

void StreamCost::set_least() {
  if (least_ == 0) least_ = kLeastPart * measured(1);
}

double StreamCost::load(double streams) const {
  return streams > 0 ? std::max(measured(streams), least_ * streams) : 0;
}

double StreamCost::measured(double streams) const {
  if (audio_s_ <= 0) return 0;
  const double one_by_one = streams * other_s_ / audio_s_;
  if (members_ <= 0 || rounds_ < 1) return one_by_one;        // the counts are read one after another
  return one_by_one + step_s(streams) * members_ / audio_s_;  // a step makes audio_s_ / members_ for each stream
}

// Length of a step that serves so many.
double StreamCost::step_s(double streams) const {
  const double mean = members_ / rounds_, mean_s = rounds_s_ / rounds_, each_s = mean_s / mean;
  const double variance = squares_ / rounds_ - mean * mean;
  double slope_s = each_s;
  if (variance >= kLeastVariance) {
    const double covariance = rounds_members_s_ / rounds_ - mean * mean_s;
    slope_s = std::clamp(covariance / variance, kLeastSlope * each_s, each_s);
  }
  return mean_s + slope_s * (streams - mean);
}

}  // namespace syrinx
