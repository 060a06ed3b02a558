#include "models/whisper/rules.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace syrinx::whisper {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

void suppress(std::span<float> logits, size_t begin, size_t end) {
  for (size_t i = begin; i < std::min(end, logits.size()); ++i) logits[i] = kNever;
}

void apply_time_rules(const Rules& rules, const Tokens& tokens, std::span<const int32_t> sampled,
                      std::span<float> logits) {
  const auto first_time = static_cast<size_t>(tokens.first_time);
  const auto is_time = [&](int32_t id) { return tokens.is_time(id); };
  logits[static_cast<size_t>(tokens.no_timestamps)] = kNever;

  const bool after_time = !sampled.empty() && is_time(sampled.back());
  const bool after_pair = sampled.size() < 2 || is_time(sampled[sampled.size() - 2]);
  if (after_time && after_pair) suppress(logits, first_time, logits.size());
  if (after_time && !after_pair) suppress(logits, 0, static_cast<size_t>(tokens.end_of_text));

  // A closing time may be said again as the next opening; all else is later than the last time.
  const auto last = std::find_if(sampled.rbegin(), sampled.rend(), is_time);
  if (last != sampled.rend())
    suppress(logits, first_time, static_cast<size_t>(*last) + (after_time && !after_pair ? 0 : 1));
  if (sampled.empty()) {
    suppress(logits, 0, first_time);
    suppress(logits, first_time + static_cast<size_t>(rules.max_first_time) + 1, logits.size());
  }
  const std::span<float> others = logits.first(first_time);
  if (log_sum_exp(logits.subspan(first_time)) > *std::ranges::max_element(others)) std::ranges::fill(others, kNever);
}

}  // namespace

double log_sum_exp(std::span<const float> values) {
  double greatest = kNever;
  for (const float value : values) greatest = std::max(greatest, static_cast<double>(value));
  if (std::isinf(greatest)) return greatest;
  double sum = 0;
  for (const float value : values) sum += std::exp(static_cast<double>(value) - greatest);
  return greatest + std::log(sum);
}

Rules make_rules(const text::ByteBpe& bpe, const Tokens& tokens, bool timestamps) {
  Rules rules;
  rules.suppressed = suppressed_tokens(bpe, tokens);
  if (const auto blank = bpe.encode(" ")) rules.suppressed_first = *blank;
  rules.suppressed_first.push_back(tokens.end_of_text);
  rules.timestamps = timestamps;
  return rules;
}

void apply_rules(const Rules& rules, const Tokens& tokens, std::span<const int32_t> sampled, std::span<float> logits) {
  if (sampled.empty())
    for (const int32_t id : rules.suppressed_first) logits[static_cast<size_t>(id)] = kNever;
  for (const int32_t id : rules.suppressed) logits[static_cast<size_t>(id)] = kNever;
  if (rules.timestamps) apply_time_rules(rules, tokens, sampled, logits);
}

}  // namespace syrinx::whisper
