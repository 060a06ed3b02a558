#include "base/check.h"
#include "models/kokoro/checkpoint.h"

namespace syrinx::kokoro {

std::vector<float> StoredWeight::dequantised() const {
  if (!quantised()) return f32;
  SYRINX_CHECK(!scale.empty() && q.size() % scale.size() == 0, "{} values, {} scales", q.size(), scale.size());
  std::vector<float> values(q.size());
  const size_t run = q.size() / scale.size();  // values under one scale
  for (size_t s = 0; s < scale.size(); ++s)
    for (size_t i = s * run; i < (s + 1) * run; ++i)
      values[i] = scale[s] * static_cast<float>(static_cast<int>(q[i]) - zero);
  return values;
}

}  // namespace syrinx::kokoro
