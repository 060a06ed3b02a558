#include "models/qwen_tts/codec_codebooks.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "nn/rvq.h"

namespace syrinx::qwen_tts {

std::vector<float> read_codebook(nn::WeightReader& reader, const std::string& sums, const std::string& usage,
                                 size_t bins, size_t width) {
  const std::vector<float> count = reader.values(usage, {bins}), sum = reader.values(sums, {bins, width});
  if (count.empty() || sum.empty()) return {};
  std::vector<float> rows = nn::codebook_rows(sum, count);
  if (std::all_of(rows.begin(), rows.end(), [](float value) { return std::isfinite(value); })) return rows;
  reader.faults().note(fmt::format("tensor '{}' divided by its usage is not finite", sums));
  return {};
}

}  // namespace syrinx::qwen_tts
