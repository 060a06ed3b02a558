#include "models/transducer/confidence.h"

#include <cmath>

#include "kernels/argmax.h"
#include "kernels/vector_math.h"

namespace syrinx::transducer {
namespace {

// ln sum e^x, the largest logit taken out first.
double log_of_sum(std::span<const float> logits, float most, std::span<float> scratch) {
  for (size_t i = 0; i < logits.size(); ++i) scratch[i] = logits[i] - most;
  kernels::exp_array(scratch, scratch);
  double sum = 0;
  for (const float value : scratch) sum += value;
  return std::log(sum) + most;
}

// exp(-S) of Tsallis' S = (sum p^alpha - 1) / (1 - alpha), less what all alike would give, and scaled to end at 1.
float tsallis(std::span<const float> logits, double normaliser, double alpha, std::span<float> scratch) {
  const double n = static_cast<double>(logits.size());
  for (size_t i = 0; i < logits.size(); ++i) {
    const double log_p = static_cast<double>(logits[i]) - normaliser;
    scratch[i] = static_cast<float>(alpha * log_p);
  }
  if (alpha == 1.0) {  // exp(sum p ln p), the limit
    double sum = 0;
    for (const float log_p : scratch) sum += std::exp(static_cast<double>(log_p)) * log_p;
    return static_cast<float>((std::exp(sum) * n - 1.0) / (n - 1.0));
  }
  kernels::exp_array(scratch, scratch);
  double sum = 0;
  for (const float value : scratch) sum += value;
  const double least = std::exp((1.0 - std::pow(n, 1.0 - alpha)) / (1.0 - alpha));
  return static_cast<float>((std::exp((1.0 - sum) / (1.0 - alpha)) - least) / (1.0 - least));
}

}  // namespace

float confidence(const ConfidenceConfig& config, std::span<const float> logits, std::span<float> scratch) {
  if (config.measure == ConfidenceMeasure::kNone) return 0.0f;
  const std::span<float> values = scratch.first(logits.size());
  const float most = kernels::argmax(logits).value;
  const double normaliser = log_of_sum(logits, most, values);
  if (config.measure == ConfidenceMeasure::kTsallisExp)
    return tsallis(logits, normaliser, static_cast<double>(config.alpha), values);
  const double n = static_cast<double>(logits.size());
  return static_cast<float>((std::exp(static_cast<double>(most) - normaliser) * n - 1.0) / (n - 1.0));
}

}  // namespace syrinx::transducer
