#include "models/whisper/beam_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/check.h"
#include "kernels/argmax.h"
#include "kernels/vector_math.h"

namespace syrinx::whisper {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();
constexpr size_t kLanes = 16, kBlock = 64;

double sum_of(std::span<const float> values) {
  double sums[kLanes] = {};
  size_t i = 0;
  for (; i + kLanes <= values.size(); i += kLanes)
    for (size_t lane = 0; lane < kLanes; ++lane) sums[lane] += values[i + lane];
  double total = 0;
  for (const double sum : sums) total += sum;
  for (; i < values.size(); ++i) total += values[i];
  return total;
}

bool any_above(const float* values, float least) {
  int count = 0;
  for (size_t i = 0; i < kBlock; ++i) count += values[i] > least ? 1 : 0;
  return count > 0;
}

// The greatest values so far in falling order, equal ones in the order of their tokens.
class Greatest {
 public:
  explicit Greatest(std::span<Candidate> out) : out_(out) {
    for (Candidate& candidate : out_) candidate = {.token = 0, .log_probability = kNever};
  }
  float least() const { return static_cast<float>(out_.back().log_probability); }
  void add(int32_t token, float value) {
    if (!(value > out_.back().log_probability)) return;
    size_t at = out_.size() - 1;
    for (; at > 0 && value > out_[at - 1].log_probability; --at) out_[at] = out_[at - 1];
    out_[at] = {.token = token, .log_probability = value};
  }

 private:
  std::span<Candidate> out_;
};

}  // namespace

void Sequence::reserve(size_t tokens) {
  ids.reserve(tokens);
  log_probabilities.reserve(tokens);
}

double score(const Sequence& sequence, std::optional<double> length_penalty) {
  if (sequence.ids.empty()) return kNever;
  const auto tokens = static_cast<double>(sequence.ids.size());
  return sequence.sum / (length_penalty ? std::pow((5 + tokens) / 6, *length_penalty) : tokens);
}

const Sequence& best_of(std::span<const Sequence> sequences, std::optional<double> length_penalty) {
  return *std::ranges::max_element(sequences, {},
                                   [&](const Sequence& sequence) { return score(sequence, length_penalty); });
}

void find_candidates(std::span<float> logits, std::span<Candidate> candidates) {
  Greatest greatest(candidates);
  const float most = kernels::argmax(logits).value;
  if (!std::isfinite(most)) return;
  size_t i = 0;
  for (; i + kBlock <= logits.size(); i += kBlock) {
    if (!any_above(logits.data() + i, greatest.least())) continue;
    for (size_t j = i; j < i + kBlock; ++j) greatest.add(static_cast<int32_t>(j), logits[j]);
  }
  for (; i < logits.size(); ++i) greatest.add(static_cast<int32_t>(i), logits[i]);
  for (float& logit : logits) logit -= most;
  kernels::exp_array(logits, logits);
  const double log_sum = most + std::log(sum_of(logits));
  for (Candidate& candidate : candidates) candidate.log_probability -= log_sum;
}

size_t BeamSearch::wanted(size_t beam, double patience) {
  return static_cast<size_t>(std::nearbyint(static_cast<double>(beam) * patience));
}

void BeamSearch::begin(const Settings& settings) {
  const size_t beam = settings.beam, most = wanted(beam, settings.patience);
  SYRINX_CHECK(beam >= 1 && beam <= kMaxBeam && most >= 1, "a beam of {}, {} to be finished", beam, most);
  settings_ = settings;
  const auto make = [&](std::vector<Sequence>& sequences, size_t count) {
    if (sequences.size() < count) sequences.resize(count);
    for (Sequence& sequence : sequences) sequence.reserve(settings.max_tokens);
  };
  make(live_, beam);
  make(before_, beam);
  make(finished_, most + beam);
  sources_.assign(kMaxBeam, 0);
  ranked_.reserve(kMaxBeam * kMaxCandidates);
  live_count_ = 1;
  before_count_ = finished_count_ = 0;
  live_[0].ids.clear();
  live_[0].log_probabilities.clear();
  live_[0].sum = 0;
}

// Equal sums keep the order of their sequences, as in the maker's stable sort.
void BeamSearch::rank(std::span<const Candidate> candidates) {
  ranked_.clear();
  for (size_t i = 0; i < candidates.size(); ++i) {
    const size_t source = i / this->candidates();
    const double sum = before_[source].sum + candidates[i].log_probability;
    if (std::isfinite(sum)) ranked_.push_back({.sum = sum, .source = source, .candidate = i});
  }
  std::ranges::sort(ranked_, [](const Ranked& a, const Ranked& b) {
    return a.sum != b.sum ? a.sum > b.sum : a.candidate < b.candidate;
  });
}

void BeamSearch::append(const Sequence& from, const Candidate& candidate, double sum, Sequence& to) {
  to.ids.assign(from.ids.begin(), from.ids.end());
  to.log_probabilities.assign(from.log_probabilities.begin(), from.log_probabilities.end());
  to.sum = sum;
  if (to.ended) return;
  to.ids.push_back(candidate.token);
  to.log_probabilities.push_back(static_cast<float>(candidate.log_probability));
}

bool BeamSearch::extend(std::span<const Candidate> candidates) {
  SYRINX_CHECK(candidates.size() == live_count_ * this->candidates(), "{} candidates", candidates.size());
  std::swap(live_, before_);
  before_count_ = std::exchange(live_count_, 0);
  const size_t most = wanted(settings_.beam, settings_.patience);
  rank(candidates);
  for (const Ranked& each : ranked_) {
    const Candidate& candidate = candidates[each.candidate];
    const bool ends = candidate.token == settings_.end_of_text;
    if (ends && finished_count_ == most) continue;
    Sequence& to = ends ? finished_[finished_count_++] : live_[live_count_];
    to.ended = ends;
    append(before_[each.source], candidate, each.sum, to);
    if (ends) continue;
    sources_[live_count_++] = each.source;
    if (live_count_ == settings_.beam) break;
  }
  return live_count_ > 0 && finished_count_ < most;
}

size_t BeamSearch::common(size_t a, size_t b) const {
  SYRINX_CHECK(a < before_count_ && b < before_count_, "sequences {} and {} of {}", a, b, before_count_);
  const std::vector<int32_t>&one = before_[a].ids, &other = before_[b].ids;
  return static_cast<size_t>(std::ranges::mismatch(one, other).in1 - one.begin());
}

const Sequence& BeamSearch::result(std::optional<double> length_penalty) {
  for (size_t i = 0; i < live_count_ && finished_count_ < settings_.beam; ++i)
    std::swap(finished_[finished_count_++], live_[i]);
  live_count_ = 0;
  if (finished_count_ == 0) std::swap(finished_[finished_count_++], before_[0]);
  return best_of({finished_.data(), finished_count_}, length_penalty);
}

void BeamCaches::begin(size_t count) {
  caches_.assign(count, 0);
  owners_.assign(count, kNone);
  owners_[0] = 0;
  taken_.assign(count, false);
  moves_.assign(count, {});
}

void BeamCaches::plan(const BeamSearch& search) {
  const std::span<const size_t> sources = search.sources();
  std::fill(taken_.begin(), taken_.end(), false);
  for (size_t i = 0; i < sources.size(); ++i) {
    const size_t from = caches_[sources[i]];
    moves_[i] = {.from = from, .to = taken_[from] ? kNone : from};
    taken_[from] = true;
  }
  for (size_t i = 0; i < sources.size(); ++i) {
    Move& move = moves_[i];
    if (move.to != kNone) continue;
    for (size_t cache = 0; cache < taken_.size(); ++cache) {
      if (taken_[cache]) continue;
      const bool owned = owners_[cache] != kNone;
      const size_t common = owned ? search.common(owners_[cache], sources[i]) : 0;
      if (move.to != kNone && (!owned || (move.owned && common <= move.common))) continue;
      move = {.from = move.from, .to = cache, .common = common, .owned = owned};
    }
    SYRINX_CHECK(move.to != kNone, "{} caches for {} sequences", taken_.size(), sources.size());
    taken_[move.to] = true;
  }
  std::fill(owners_.begin(), owners_.end(), kNone);
}

}  // namespace syrinx::whisper
