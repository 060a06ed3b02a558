#include "server/host/live_admission.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace syrinx::server {
namespace {

// Time between two samples, and how many of them make up the last seconds.
constexpr int64_t kSampleNs = 250'000'000;
constexpr size_t kSamples = 12;
// A longer window, without any request meanwhile, says little about the present.
constexpr int64_t kLongestWindowNs = 8'000'000'000;
// A greater share of late steps is no hiccup of the machine; so few late steps are one.
constexpr double kLateShare = 0.02;
constexpr uint64_t kFewLate = 2;
// Below this part of the limit other load makes the steps late.
constexpr double kIdlePart = 0.5;
// A stream that was refused may be asked for again for so long.
constexpr int64_t kAskedAgainNs = 10'000'000'000;
// The scheduler keeps so much for batch work (engine/schedule/due_queue.h).
constexpr double kBatchShare = 1.0 / 16;

}  // namespace

void LiveAdmission::add(const SlotPool& slots, std::function<StepFigures()> steps, const StreamCost& cost) {
  const std::lock_guard lock(mutex_);
  Engine engine{.slots = &slots, .steps = std::move(steps), .cost = cost};
  engine.noted = engine.steps();
  engine.noted_audio_s = slots.audio_s();
  engines_.push_back(std::move(engine));
  samples_.clear();
}

void LiveAdmission::remove(const SlotPool& slots) {
  const std::lock_guard lock(mutex_);
  std::erase_if(engines_, [&](const Engine& engine) { return engine.slots == &slots; });
  samples_.clear();
}

LiveAdmission::Engine* LiveAdmission::find(const SlotPool& slots) {
  const auto found =
      std::find_if(engines_.begin(), engines_.end(), [&](const Engine& engine) { return engine.slots == &slots; });
  return found != engines_.end() ? &*found : nullptr;
}

void LiveAdmission::measure() {
  Sample sample{.at_ns = clock_.now_ns()};
  for (Engine& engine : engines_) {
    const StepFigures steps = engine.steps();
    const double audio_s = engine.slots->audio_s();
    engine.cost.note(steps.since(engine.noted), audio_s - engine.noted_audio_s);
    engine.noted = steps;
    engine.noted_audio_s = audio_s;
    sample.steps += steps.count();
    sample.late += steps.late;
    sample.other_ns += steps.other_ns;
  }
  if (!samples_.empty() && sample.at_ns - samples_.back().at_ns < kSampleNs) return;
  samples_.push_back(sample);
  if (samples_.size() > kSamples) samples_.pop_front();
  while (samples_.size() > 1 && sample.at_ns - samples_.front().at_ns > kLongestWindowNs) samples_.pop_front();
}

double LiveAdmission::batch_share() const {
  if (samples_.size() < 2) return 0;
  const Sample &first = samples_.front(), &last = samples_.back();
  const double share =
      static_cast<double>(last.other_ns - first.other_ns) / static_cast<double>(last.at_ns - first.at_ns);
  return std::clamp(share, 0.0, kBatchShare);
}

bool LiveAdmission::is_late() const {
  if (samples_.size() < 2) return false;
  const uint64_t late = samples_.back().late - samples_.front().late;
  const uint64_t steps = samples_.back().steps - samples_.front().steps;
  return late > kFewLate && static_cast<double>(late) > kLateShare * static_cast<double>(steps);
}

// The share that the streams of that engine leave to others, which were refused.
double LiveAdmission::kept_from(const SlotPool& slots) const {
  const int64_t now_ns = clock_.now_ns();
  double kept = 0;
  for (const Engine& engine : engines_)
    if (engine.slots != &slots && engine.refused_ns && now_ns - *engine.refused_ns < kAskedAgainNs)
      kept = std::max({kept, engine.refused_load, limit_ / 2});
  return kept;
}

// Streams end one after another: as many of them must as need what is too much.
double LiveAdmission::wait_s(double excess, double own, size_t streams) const {
  double ages_s = 0, mean_s = 0;
  size_t living = 0;
  for (const Engine& engine : engines_) {
    const SlotPool::Live live = engine.slots->live();
    ages_s += live.ages_s;
    living += live.streams;
    mean_s = std::max(mean_s, engine.slots->mean_live_s());
  }
  // The mean age of streams that began at any time is half of how long they last.
  if (mean_s == 0 && living > 0) mean_s = 2 * ages_s / static_cast<double>(living);
  const double ends = own > 0 ? std::max(1.0, std::ceil(excess / own)) : 1;
  const double needed_s = ends * mean_s / static_cast<double>(std::max<size_t>(streams, 1));
  return std::isfinite(needed_s) ? std::clamp(needed_s, 1.0, kLongestWaitS) : kLongestWaitS;
}

std::optional<LiveAdmission::Refusal> LiveAdmission::refusal(const SlotPool& slots) {
  if (limit_ == 0 || find(slots) == nullptr) return std::nullopt;
  measure();
  size_t streams = 0, pacing = 0;
  double before = batch_share(), own = 0, kind = 0;
  bool is_first = false;
  for (const Engine& engine : engines_) {
    const SlotPool::Live live = engine.slots->live();
    streams += live.streams;
    pacing += live.pacing;
    const auto needed = static_cast<double>(live.pacing);
    before += engine.cost.load(needed);
    if (engine.slots != &slots) continue;
    is_first = live.pacing == 0;
    kind = engine.cost.load(needed + 1);
    own = kind - engine.cost.load(needed);
  }
  if (pacing == 0) return std::nullopt;  // however slow the machine is
  const double load = before + own;
  const double kept = is_first ? 0 : kept_from(slots);
  const double over = std::max(load - limit_, kept > 0 ? kind + kept - limit_ : -1.0);
  if (over <= 0 && !(load > kIdlePart * limit_ && is_late())) return std::nullopt;
  return Refusal{.load = load, .own = own, .streams = streams, .wait_s = wait_s(over, own, streams)};
}

std::optional<LiveAdmission::Refusal> LiveAdmission::admit(const SlotPool& slots, const std::function<bool()>& take) {
  const std::lock_guard lock(mutex_);
  Engine* const engine = find(slots);
  if (auto refused = refusal(slots)) {
    engine->refused_ns = clock_.now_ns();
    engine->refused_load = refused->own;
    return refused;
  }
  if (take() && engine != nullptr) ++engine->admitted;
  return std::nullopt;
}

bool LiveAdmission::has_room(const SlotPool& slots) {
  const std::lock_guard lock(mutex_);
  return !refusal(slots);
}

LiveAdmission::Figures LiveAdmission::figures(const SlotPool& slots) {
  const std::lock_guard lock(mutex_);
  const Engine* const engine = find(slots);
  if (engine == nullptr) return {};
  measure();
  return {.load = engine->cost.load(static_cast<double>(slots.live().pacing)), .admitted = engine->admitted};
}

}  // namespace syrinx::server
