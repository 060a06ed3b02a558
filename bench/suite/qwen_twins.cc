#include "bench/suite/qwen_twins.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <span>
#include <utility>

#include "base/clock.h"
#include "nn/crew.h"
#include "nn/kv_cache.h"
#include "nn/sampler.h"

namespace syrinx::bench {
namespace {

constexpr size_t kRounds = 30, kUncounted = 3;
constexpr size_t kPredictorPositions = 16;

using Work = std::function<void()>;

Times time_of(const Work& work) {
  Times times;
  for (size_t round = 0; round < kRounds + kUncounted; ++round) {
    const Stopwatch watch;
    work();
    if (round >= kUncounted) times.add(watch.elapsed_ms());
  }
  times.sort();
  return times;
}

nn::SamplerSettings settings_of(const qwen_tts::DrawSettings& draws) {
  return {.temperature = draws.temperature, .top_k = draws.top_k, .top_p = draws.top_p};
}

class Twins {
 public:
  Twins(const qwen_tts::Config& config, const qwen_tts::GenerationConfig& draws, size_t frames, ThreadTeam& team)
      : config_(config),
        drawn_first_(settings_of(draws.talker)),
        drawn_(settings_of(draws.predictor)),
        penalty_(draws.penalty),
        frames_(frames),
        team_(team),
        crew_(team),
        passes_(config.codebooks - 1),
        talker_(config.vocabulary),
        predictor_(config.predictor_codes),
        first_logits_(config.vocabulary),
        logits_(config.predictor_codes) {
    std::normal_distribution<float> normal(0.0f, 3.0f);
    for (std::vector<float>* const values : {&first_logits_, &logits_})
      for (float& value : *values) value = normal(random_);
    std::vector<uint8_t> is_seen(config.vocabulary);
    for (size_t n = 0; n < frames; ++n) {
      const auto code = static_cast<int32_t>(random_() % config.predictor_codes);
      codes_.push_back(code);
      if (!std::exchange(is_seen[static_cast<size_t>(code)], uint8_t{1})) seen_.push_back(code);
    }
  }

  QwenTwin host_selection();
  QwenTwin sort();
  QwenTwin masks();
  QwenTwin attention_mask();
  QwenTwin concatenation();
  QwenTwin gathering();
  QwenTwin apart();

 private:
  int32_t draw_first(std::span<const int32_t> seen, const nn::SamplerSettings& settings) {
    scratch_ = first_logits_;
    return talker_.draw(scratch_, settings, seen, {.seed = 1});
  }
  int32_t draw_code() {
    scratch_ = logits_;
    return predictor_.draw(scratch_, drawn_, {}, {.seed = 1});
  }
  int32_t draw_sorted(const std::vector<float>& logits, const nn::SamplerSettings& settings);
  size_t attention_rows() const { return config_.talker.layers + passes_ * config_.predictor.layers; }
  void note(int32_t token) { sum_ = sum_ + token; }

  const qwen_tts::Config& config_;
  nn::SamplerSettings drawn_first_, drawn_;  // of first codes, without penalty, and of the others
  float penalty_;
  size_t frames_;
  ThreadTeam& team_;
  nn::Crew crew_;
  size_t passes_;
  nn::Sampler talker_, predictor_;
  std::mt19937 random_{7};
  std::vector<float> first_logits_, logits_, scratch_;
  std::vector<int32_t> codes_, seen_;  // first codes of the frames, and each once
  volatile int64_t sum_ = 0;           // of results, so that none is left out
};

// A step's logits go to the caller, who selects, and the team begins anew with the code.
QwenTwin Twins::host_selection() {
  const auto select = [&] {
    for (size_t pass = 0; pass < passes_; ++pass) note(draw_code());
  };
  const auto before = [&] {
    for (size_t pass = 0; pass < passes_; ++pass) {
      std::vector<float> copy(logits_);
      note(static_cast<int32_t>(copy[pass]));
      team_.run([](int) {});
      note(draw_code());
      team_.run([](int) {});
    }
  };
  return {.name = "1 codes selected by the caller", .before = time_of(before), .product = time_of(select)};
}

int32_t Twins::draw_sorted(const std::vector<float>& logits, const nn::SamplerSettings& settings) {
  std::vector<std::pair<float, int32_t>> sorted;
  for (size_t n = 0; n < logits.size(); ++n) sorted.emplace_back(logits[n] / settings.temperature, n);
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  if (settings.top_k > 0) sorted.resize(std::min(sorted.size(), settings.top_k));
  double sum = 0, part = 0;
  for (auto& [logit, token] : sorted) sum += std::exp(double{logit - sorted.front().first});
  size_t kept = 0;
  for (; kept < sorted.size() && part < double{settings.top_p} * sum; ++kept)
    part += std::exp(double{sorted[kept].first - sorted.front().first});
  const double wanted = part * nn::draw_uniform({.seed = 1});
  part = 0;
  for (size_t n = 0; n < kept; ++n) {
    part += std::exp(double{sorted[n].first - sorted.front().first});
    if (part > wanted) return sorted[n].second;
  }
  return sorted.front().second;
}

QwenTwin Twins::sort() {
  const auto product = [&] {
    note(draw_first({}, drawn_first_));
    for (size_t pass = 0; pass < passes_; ++pass) note(draw_code());
  };
  const auto before = [&] {
    note(draw_sorted(first_logits_, drawn_first_));
    for (size_t pass = 0; pass < passes_; ++pass) note(draw_sorted(logits_, drawn_));
  };
  return {.name = "2 top-k and top-p by a sort", .before = time_of(before), .product = time_of(product)};
}

// Penalty and suppression as tensors of the vocabulary's size.
QwenTwin Twins::masks() {
  nn::SamplerSettings penalised = drawn_first_;
  penalised.penalty = penalty_;
  const auto product = [&] { note(draw_first(seen_, penalised)); };
  const auto before = [&] {
    std::vector<float> penalty(config_.vocabulary, 1.0f), allowed(config_.vocabulary, 0.0f);
    for (const int32_t code : codes_) penalty[static_cast<size_t>(code)] = penalty_;
    for (size_t n = config_.predictor_codes; n < config_.vocabulary; ++n)
      allowed[n] = -std::numeric_limits<float>::infinity();
    scratch_ = first_logits_;
    for (size_t n = 0; n < scratch_.size(); ++n)
      scratch_[n] = (scratch_[n] < 0 ? scratch_[n] * penalty[n] : scratch_[n] / penalty[n]) + allowed[n];
    note(talker_.draw(scratch_, drawn_first_, {}, {.seed = 1}));
  };
  return {.name = "3 penalty and end as masks", .before = time_of(before), .product = time_of(product)};
}

QwenTwin Twins::attention_mask() {
  const auto add = [&](const qwen_tts::TransformerConfig& t, size_t positions, std::vector<float>& scores) {
    for (size_t layer = 0; layer < t.layers; ++layer) {
      const std::vector<float> mask(positions);
      for (size_t head = 0; head < t.heads; ++head)
        for (size_t n = 0; n < positions; ++n) scores[n] += mask[n];
    }
    note(static_cast<int32_t>(scores[positions / 2]));
  };
  std::vector<float> scores(frames_ + kPredictorPositions);
  const auto before = [&] {
    add(config_.talker, frames_, scores);
    for (size_t pass = 0; pass < passes_; ++pass) add(config_.predictor, pass + 2, scores);
  };
  return {.name = "4 a mask for one position", .before = time_of(before), .product = time_of([] {})};
}

// Keys and values of a layer and one position more, in memory that is new.
QwenTwin Twins::concatenation() {
  const auto grow = [&](const qwen_tts::TransformerConfig& t, size_t positions) {
    const size_t layer_bytes = 2 * positions * t.key_heads * t.head_size * sizeof(uint16_t);
    const std::vector<std::byte> old(layer_bytes);
    for (size_t layer = 0; layer < t.layers; ++layer) {
      const std::vector<std::byte> grown(old);
      note(static_cast<int32_t>(grown[layer_bytes / 2]));
    }
  };
  const auto before = [&] {
    grow(config_.talker, frames_);
    for (size_t pass = 0; pass < passes_; ++pass) grow(config_.predictor, pass + 2);
  };
  return {.name = "5 caches that grow by copies", .before = time_of(before), .product = time_of([] {})};
}

// The set of codes that were made, from all frames' codes.
QwenTwin Twins::gathering() {
  std::vector<uint8_t> is_seen(config_.vocabulary);
  std::vector<int32_t> seen;
  seen.reserve(config_.vocabulary);
  const auto product = [&] {
    uint8_t& mark = is_seen[static_cast<size_t>(codes_.back())];
    if (!std::exchange(mark, uint8_t{1})) seen.push_back(codes_.back());
    note(static_cast<int32_t>(seen.size()));
  };
  const auto before = [&] {
    std::vector<std::vector<int32_t>> frames(frames_, std::vector<int32_t>(config_.codebooks));
    std::fill(is_seen.begin(), is_seen.end(), uint8_t{0});
    for (size_t n = 0; n < frames_; ++n) frames[n][0] = codes_[n];
    for (const std::vector<int32_t>& frame : frames) is_seen[static_cast<size_t>(frame[0])] = 1;
    note(static_cast<int32_t>(is_seen[1]));
  };
  return {.name = "6 all codes gathered each frame", .before = time_of(before), .product = time_of(product)};
}

// Gate and both sums of a layer as stages of their own, behind a barrier each.
QwenTwin Twins::apart() {
  std::vector<float> rows(2 * std::max(config_.talker.hidden, config_.predictor.hidden), 0.5f);
  const auto stages = [&](const qwen_tts::TransformerConfig& t, nn::Crew::Seat& seat) {
    for (size_t layer = 0; layer < t.layers; ++layer) {
      seat.stage([&](const nn::Part& part) {
        const Range own = part.split(t.hidden);
        for (size_t n = own.begin; n < own.end; ++n) rows[n] *= rows[t.hidden + n];
      });
      for (int sum = 0; sum < 2; ++sum)
        seat.stage([&](const nn::Part& part) {
          const Range own = part.split(t.width);
          for (size_t n = own.begin; n < own.end; ++n) rows[n] += rows[t.width + n];
        });
    }
  };
  const auto before = [&] {
    team_.run([&](int member) {
      nn::Crew::Seat seat = crew_.everyone(member);
      stages(config_.talker, seat);
      for (size_t pass = 0; pass < passes_; ++pass) stages(config_.predictor, seat);
    });
    note(static_cast<int32_t>(rows[0]));
  };
  return {.name = "fused: gate and sums apart", .before = time_of(before), .product = time_of([] {})};
}

}  // namespace

std::vector<QwenTwin> measure_qwen_twins(const qwen_tts::Config& config, const qwen_tts::GenerationConfig& draws,
                                         size_t frames, ThreadTeam& team) {
  Twins twins(config, draws, std::max<size_t>(frames, 1), team);
  return {twins.host_selection(), twins.sort(),      twins.masks(), twins.attention_mask(),
          twins.concatenation(),  twins.gathering(), twins.apart()};
}

}  // namespace syrinx::bench
