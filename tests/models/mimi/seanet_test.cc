// A recording that ends within a stride, beside plain loops over the whole of it.
#include "models/mimi/seanet.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "base/rng.h"
#include "nn/runner.h"

namespace syrinx::mimi {
namespace {

// Seeded weights, kept by name for the loops.
class Drawn {
 public:
  const std::vector<float>& get(const std::string& name, const std::vector<size_t>& dims) {
    std::vector<float>& values = tensors_[name];
    if (!values.empty()) return values;
    size_t count = 1;
    for (const size_t extent : dims) count *= extent;
    for (size_t i = 0; i < count; ++i) values.push_back(rng_.uniform() - 0.5f);
    return values;
  }

 private:
  std::map<std::string, std::vector<float>> tensors_;
  Rng rng_{7};
};

using Rows = std::vector<std::vector<double>>;  // [T][C]

// Zeros on the left, and on the right up to ceil(T / stride) outputs.
Rows conv(Drawn& drawn, const std::string& name, const Rows& in, size_t out, size_t kernel, size_t stride) {
  const size_t channels = in[0].size(), left = kernel - stride;
  const std::vector<float>& weight = drawn.get(name + ".weight", {out, channels, kernel});
  const std::vector<float>& bias = drawn.get(name + ".bias", {out});
  Rows made((in.size() + stride - 1) / stride, std::vector<double>(out));
  for (size_t m = 0; m < made.size(); ++m) {
    for (size_t n = 0; n < out; ++n) {
      double sum = bias[n];
      for (size_t t = 0; t < kernel; ++t) {
        const size_t at = m * stride + t;
        if (at < left || at - left >= in.size()) continue;
        for (size_t k = 0; k < channels; ++k) sum += in[at - left][k] * weight[(n * channels + k) * kernel + t];
      }
      made[m][n] = sum;
    }
  }
  return made;
}

Rows elu(Rows rows) {
  for (auto& row : rows)
    for (double& value : row) value = value < 0 ? std::expm1(value) : value;
  return rows;
}

// One residual block and one stride of 4, then one of 3.
constexpr size_t kHop = 12;
const SeanetConfig kConfig{
    .width = 5, .filters = 4, .kernel = 7, .last_kernel = 3, .residual_kernel = 3, .ratios = {3, 4}};

Rows expected(Drawn& drawn, const std::vector<float>& samples) {
  Rows x;
  for (const float sample : samples) x.push_back({sample});
  x = conv(drawn, "n.0.conv", x, 4, 7, 1);
  size_t module = 1, width = 4;
  for (const size_t ratio : {4, 3}) {
    const std::string block = fmt::format("n.{}.block", module);
    const Rows inner = conv(drawn, block + ".1.conv", elu(x), width / 2, 3, 1);
    const Rows added = conv(drawn, block + ".3.conv", elu(inner), width, 1, 1);
    for (size_t i = 0; i < x.size(); ++i)
      for (size_t k = 0; k < width; ++k) x[i][k] += added[i][k];
    x = conv(drawn, fmt::format("n.{}.conv", module + 2), elu(x), 2 * width, 2 * ratio, ratio);
    width *= 2;
    module += 3;
  }
  return conv(drawn, fmt::format("n.{}.conv", module + 1), elu(x), 5, 3, 1);
}

TEST(MimiSeanet, RecordingsEndWithinAStride) {
  Drawn drawn;
  kernels::MatrixStore nothing;
  const std::vector<SeanetLayer> chain =
      SeanetReader([&](const std::string& name, const std::vector<size_t>& dims) { return drawn.get(name, dims); },
                   nothing, false)
          .encoder("n", kConfig);
  std::vector<float> samples(5 * kHop);
  Rng rng(11);
  for (float& sample : samples) sample = rng.uniform() - 0.5f;
  const auto run = [&](int threads, size_t count, size_t piece) {
    ThreadTeam team(threads);
    nn::Runner runner(team);
    nn::Crew crew(team);
    Seanet seanet(chain, piece, runner);
    SeanetState state = seanet.make_state();
    const size_t rows = (count + kHop - 1) / kHop;
    std::vector<float> out(rows * 32);
    for (size_t at = 0; at < count; at += piece) {
      const size_t here = std::min(piece, count - at), made = (here + kHop - 1) / kHop;
      team.run([&](int member) {
        nn::Crew::Seat seat = crew.everyone(member);
        seanet.run(seat, state, {samples.data() + at, {here, 1}}, {&out[at / kHop * 32], {made, 32}}, "", {});
      });
    }
    return out;
  };
  for (size_t count = 1; count <= samples.size(); ++count) {
    const Rows rows = expected(drawn, {samples.begin(), samples.begin() + static_cast<std::ptrdiff_t>(count)});
    const std::vector<float> whole = run(1, count, samples.size());
    ASSERT_EQ(whole.size(), rows.size() * 32);
    for (size_t i = 0; i < rows.size(); ++i)
      for (size_t n = 0; n < 5; ++n) ASSERT_NEAR(whole[i * 32 + n], rows[i][n], 1e-5) << count << " samples, row " << i;
    ASSERT_EQ(run(2, count, samples.size()), whole) << count;
    ASSERT_EQ(run(1, count, kHop), whole) << count;
  }
}

}  // namespace
}  // namespace syrinx::mimi
