#include "models/transducer/beam.h"

#include <algorithm>
#include <cmath>

#include "kernels/argmax.h"
#include "kernels/vector_math.h"

namespace syrinx::transducer {
namespace {

constexpr size_t kRows = 32;     // pairs that the joint multiplies at once
constexpr size_t kFrames = 128;  // frames that it encodes at once

double add_logs(double a, double b) {
  const double most = std::max(a, b);
  return most + std::log1p(std::exp(std::min(a, b) - most));
}

// values = ln softmax(values / temperature); scratch has room for as many.
void log_softmax(std::span<float> values, float temperature, std::span<float> scratch) {
  for (float& value : values) value /= temperature;
  const float most = kernels::argmax(values).value;
  for (size_t i = 0; i < values.size(); ++i) scratch[i] = values[i] - most;
  kernels::exp_array(scratch.first(values.size()), scratch.first(values.size()));
  double sum = 0;
  for (size_t i = 0; i < values.size(); ++i) sum += scratch[i];
  const double normaliser = std::log(sum) + most;
  for (float& value : values) value = static_cast<float>(value - normaliser);
}

// Indices of the `count` greatest, the greatest first, of equal ones the first.
std::vector<size_t> greatest(std::span<const float> values, size_t count) {
  std::vector<size_t> order(values.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  count = std::min(count, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<ptrdiff_t>(count), order.end(),
                    [&](size_t a, size_t b) { return values[a] > values[b] || (values[a] == values[b] && a < b); });
  order.resize(count);
  return order;
}

bool same_labels(std::span<const Emission> a, std::span<const Emission> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Emission& x, const Emission& y) { return x.label == y.label; });
}

template <class Paths>
void append(Paths& to, Paths from) {
  for (auto& path : from) to.push_back(std::move(path));
}

template <class Paths>
void sort_by_score(Paths& paths) {
  std::stable_sort(paths.begin(), paths.end(), [](const auto& a, const auto& b) { return a.score > b.score; });
}

}  // namespace

Result<std::unique_ptr<BeamDecoder>> BeamDecoder::make(std::shared_ptr<const DecoderWeights> weights,
                                                       nn::Runner& runner, const BeamOptions& options) {
  const size_t vocabulary = weights->config.vocabulary, least_steps = weights->config.durations.empty() ? 2 : 1;
  if (!weights->has_transducer()) return fail(Code::kUnsupported, "a CTC head has no beam search; leave the beam out");
  if (options.beam < 2 || options.beam > kMaxBeam || options.beta > kMaxBeam ||
      options.beam + options.beta > vocabulary)
    return fail(Code::kInvalidArgument,
                "a beam of {} and {} candidates more; beams have 2 to {}, and both together at "
                "most the model's {} labels",
                options.beam, options.beta, kMaxBeam, vocabulary);
  if (options.steps < least_steps || options.steps > 4)
    return fail(Code::kInvalidArgument, "{} steps of a frame; this model takes {} to 4", options.steps, least_steps);
  if (!(options.gamma >= 0.0f) || !(options.temperature > 0.0f) || std::isinf(options.temperature))
    return fail(Code::kInvalidArgument,
                "a beam's gamma of {} and temperature of {}; the one is 0 or more, the other above it", options.gamma,
                options.temperature);
  return std::unique_ptr<BeamDecoder>(new BeamDecoder(std::move(weights), runner, options));
}

BeamDecoder::BeamDecoder(std::shared_ptr<const DecoderWeights> weights, nn::Runner& runner, const BeamOptions& options)
    : weights_(std::move(weights)),
      options_(options),
      runner_(runner),
      prediction_(weights_, runner, kRows),
      joint_(weights_, runner, kFrames, kRows) {
  const std::vector<size_t>& durations = weights_->config.durations;
  zero_duration_ = static_cast<size_t>(std::find(durations.begin(), durations.end(), 0) - durations.begin());
  for (size_t i = 0; i < durations.size(); ++i) {
    const size_t best = durations[step_duration_];
    if (durations[i] > 0 && (best == 0 || durations[i] < best)) step_duration_ = i;
  }
}

std::vector<Hypothesis> BeamDecoder::decode(View<const float, 2> frames, const BetweenJobs& between) {
  faults_ = 0;
  Paths kept = start();
  for (size_t t = 0; t < frames.extent(0); ++t) {
    const size_t row = t % kFrames;
    if (row == 0) {
      const size_t count = std::min(kFrames, frames.extent(0) - t);
      encode({frames.row(t), {count, frames.extent(1)}, {frames.stride(0), 1}});
    }
    kept = advance(std::move(kept), row, static_cast<int64_t>(t));
    if (between) between();
  }
  // The maker counts the blank in front as a label.
  const auto rank = [&](const Path& path) {
    return options_.normalise ? path.score / static_cast<double>(path.emissions.size() + 1) : path.score;
  };
  std::stable_sort(kept.begin(), kept.end(), [&](const Path& a, const Path& b) { return rank(a) > rank(b); });
  std::vector<Hypothesis> out;
  for (Path& path : kept) out.push_back({std::move(path.emissions), path.score});
  return out;
}

BeamDecoder::Paths BeamDecoder::start() {
  auto state = std::make_shared<DecoderState>(*weights_);
  DecoderState* const states[] = {state.get()};
  prediction_.step(states);
  Path path;
  path.state = std::move(state);
  return {path};
}

void BeamDecoder::encode(View<const float, 2> frames) {
  runner_.team().run(
      [&](int member) { joint_.encode({.member = member, .rank = member, .size = runner_.team().size()}, frames, 0); });
}

BeamDecoder::Scores BeamDecoder::evaluate(const Paths& paths, size_t row) {
  Scores scores{.values = {}, .width = joint_.logits(0).size()};
  scores.values.resize(paths.size() * scores.width);
  std::vector<float> scratch(scores.width);
  for (size_t first = 0; first < paths.size(); first += kRows) {
    const size_t rows = std::min(kRows, paths.size() - first);
    for (size_t n = 0; n < rows; ++n) joint_.pair(n, joint_.encoded(row), paths[first + n].state->projection());
    runner_.team().run(
        [&](int member) { joint_.multiply({.member = member, .rank = member, .size = runner_.team().size()}, rows); });
    for (size_t n = 0; n < rows; ++n) {
      const std::span<float> out(&scores.values[(first + n) * scores.width], scores.width);
      std::copy(joint_.logits(n).begin(), joint_.logits(n).end(), out.begin());
      log_softmax(out.first(labels()), options_.temperature, scratch);
      if (has_durations()) log_softmax(out.subspan(labels()), options_.temperature, scratch);
      if (std::ranges::all_of(out, [](float value) { return std::isfinite(value); })) continue;
      // Any numbers, as those that are none have no order to sort by.
      faults_ |= kLogitsNotFinite;
      std::ranges::fill(out, 0.0f);
    }
  }
  return scores;
}

// The prediction network reads the last label of each path.
void BeamDecoder::follow(Paths& paths) {
  for (size_t first = 0; first < paths.size(); first += kRows) {
    const size_t rows = std::min(kRows, paths.size() - first);
    std::vector<std::shared_ptr<DecoderState>> states;
    std::vector<DecoderState*> stepping;
    for (size_t n = 0; n < rows; ++n) {
      Path& path = paths[first + n];
      states.push_back(std::make_shared<DecoderState>(*weights_));
      states.back()->copy_from(*path.state);
      states.back()->head().label = path.emissions.back().label;
      stepping.push_back(states.back().get());
      path.state = states.back();
    }
    prediction_.step(stepping);
  }
}

// A path whose beginning, one label shorter, is also there gains what that one would reach it by at this frame.
// Longer paths come first, so that each gain comes from scores without gains.
void BeamDecoder::add_prefixes(Paths& paths, size_t row) {
  std::stable_sort(paths.begin(), paths.end(),
                   [](const Path& a, const Path& b) { return a.emissions.size() > b.emissions.size(); });
  const Scores scores = evaluate(paths, row);
  for (size_t j = 0; j + 1 < paths.size(); ++j) {
    const std::span<const Emission> whole = paths[j].emissions;
    for (size_t i = j + 1; i < paths.size(); ++i) {
      if (paths[i].emissions.size() + 1 != whole.size()) continue;
      if (!same_labels(paths[i].emissions, whole.first(whole.size() - 1))) continue;
      const std::span<const float> shorter = scores.row(i);
      double reached = paths[i].score + shorter[static_cast<size_t>(whole.back().label)];
      if (has_durations()) reached += shorter[labels() + zero_duration_];
      paths[j].score = add_logs(paths[j].score, reached);
    }
  }
}

// The likeliest labels with their durations, the likeliest first, none further than gamma behind it.
std::vector<BeamDecoder::Choice> BeamDecoder::choices(std::span<const float> scores) const {
  const size_t count = options_.beam + options_.beta;
  const std::vector<size_t> best = greatest(scores.first(labels()), count);
  const size_t durations = std::max(size_t{1}, weights_->config.durations.size());
  std::vector<float> sums(durations * best.size());
  for (size_t d = 0; d < durations; ++d)
    for (size_t k = 0; k < best.size(); ++k)
      sums[d * best.size() + k] = scores[best[k]] + (has_durations() ? scores[labels() + d] : 0.0f);
  std::vector<Choice> out;
  for (const size_t index : greatest(sums, count)) {
    if (!out.empty() && sums[index] < static_cast<float>(out.front().log_probability) - options_.gamma) break;
    out.push_back({static_cast<int32_t>(best[index % best.size()]), index / best.size(), sums[index]});
  }
  return out;
}

BeamDecoder::Path BeamDecoder::extended(const Path& path, const Choice& choice, int64_t frame) const {
  Path out = path;
  out.score += choice.log_probability;
  size_t ahead = 0;
  if (has_durations()) {
    ahead = weights_->config.durations[choice.duration];
    if (choice.label == weights_->blank() && ahead == 0) ahead = weights_->config.durations[step_duration_];
    out.frame += static_cast<int64_t>(ahead);
  }
  if (choice.label != weights_->blank())
    out.emissions.push_back({.frame = frame,
                             .label = choice.label,
                             .duration = has_durations() ? static_cast<uint32_t>(ahead) : 1,
                             .confidence = static_cast<float>(std::exp(choice.log_probability))});
  return out;
}

BeamDecoder::Paths BeamDecoder::advance(Paths paths, size_t row, int64_t frame) {
  if (!has_durations()) return advance_rnnt(std::move(paths), row, frame);
  Paths here, later;
  for (Path& path : paths) (path.frame == frame ? here : later).push_back(std::move(path));
  if (here.empty()) return later;
  return advance_tdt(std::move(later), std::move(here), row, frame);
}

BeamDecoder::Paths BeamDecoder::advance_rnnt(Paths paths, size_t row, int64_t frame) {
  add_prefixes(paths, row);
  std::vector<std::vector<Emission>> present;
  for (const Path& path : paths) present.push_back(path.emissions);
  Paths ended;
  for (size_t step = 0; step < options_.steps; ++step) {
    const Scores scores = evaluate(paths, row);
    Paths grown;
    for (size_t n = 0; n < paths.size(); ++n) {
      std::vector<Choice> choice = choices(scores.row(n));
      std::reverse(choice.begin(), choice.end());  // as the maker's lists stand, which decides among equal scores
      for (const Choice& one : choice) {
        Path path = extended(paths[n], one, frame);
        const bool known = std::any_of(present.begin(), present.end(), [&](const std::vector<Emission>& emissions) {
          return same_labels(emissions, path.emissions);
        });
        if (one.label == weights_->blank()) {
          ended.push_back(std::move(path));
        } else if (!known) {
          grown.push_back(std::move(path));
        }
      }
    }
    if (grown.empty()) break;
    follow(grown);
    if (step + 1 < options_.steps) {
      paths = std::move(grown);
    } else {
      end_by_blank(grown, row);
      append(ended, std::move(grown));
    }
  }
  keep_best(ended);
  return ended;
}

BeamDecoder::Paths BeamDecoder::advance_tdt(Paths waiting, Paths paths, size_t row, int64_t frame) {
  if (zero_duration_ < weights_->config.durations.size()) add_prefixes(paths, row);
  Paths blanks, moved;
  for (size_t step = 0; step < options_.steps; ++step) {
    const Scores scores = evaluate(paths, row);
    Paths moving, staying;
    for (size_t n = 0; n < paths.size(); ++n) {
      for (const Choice& one : choices(scores.row(n))) {
        Path path = extended(paths[n], one, frame);
        Paths& to = one.label == weights_->blank() ? blanks : path.frame > frame ? moving : staying;
        to.push_back(std::move(path));
      }
    }
    follow(moving);
    follow(staying);
    append(moved, std::move(moving));
    if (staying.empty()) break;
    if (step + 1 < options_.steps) {
      paths = merged(std::move(staying));
      continue;
    }
    end_by_blank(staying, row);
    append(waiting, std::move(blanks));
    append(waiting, std::move(staying));
    append(waiting, std::move(moved));
    blanks.clear();
    moved.clear();
  }
  append(waiting, std::move(blanks));
  append(waiting, std::move(moved));
  waiting = merged(std::move(waiting));
  keep_best(waiting);
  return waiting;
}

// No more labels at this frame: what a blank, and the likeliest duration that leads on, cost.
void BeamDecoder::end_by_blank(Paths& paths, size_t row) {
  const Scores scores = evaluate(paths, row);
  for (size_t n = 0; n < paths.size(); ++n) {
    const std::span<const float> values = scores.row(n);
    paths[n].score += values[labels() - 1];
    if (!has_durations()) continue;
    size_t duration = kernels::argmax(values.subspan(labels())).index;
    if (duration == zero_duration_) duration = step_duration_;
    paths[n].score += values[labels() + duration];
    paths[n].frame += static_cast<int64_t>(weights_->config.durations[duration]);
  }
}

void BeamDecoder::keep_best(Paths& paths) const {
  sort_by_score(paths);
  if (paths.size() > options_.beam) paths.resize(options_.beam);
}

// Paths of the same labels that stand at the same frame become one.
BeamDecoder::Paths BeamDecoder::merged(Paths paths) {
  sort_by_score(paths);
  Paths out;
  for (Path& path : paths) {
    const auto same = std::find_if(out.begin(), out.end(), [&](const Path& other) {
      return other.frame == path.frame && same_labels(other.emissions, path.emissions);
    });
    if (same == out.end()) {
      out.push_back(std::move(path));
    } else {
      same->score = add_logs(same->score, path.score);
    }
  }
  return out;
}

}  // namespace syrinx::transducer
