#include "kernels/lstm_cell.h"

#include "for_each_target.h"

namespace syrinx::kernels {
namespace {

double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

// Eight roundings and the errors of two functions (3 and 4 ulp) in each product; tanh has slope one at most.
void expect_cell(const TestValues& gates, const TestValues& before, const TestValues& cell, const TestValues& hidden,
                 size_t n) {
  for (size_t k = 0; k < n; ++k) {
    const double i = sigmoid(gates[k]), f = sigmoid(gates[n + k]), o = sigmoid(gates[3 * n + k]);
    Expected c, h;
    c.add(f, before[k]);
    c.add(i, std::tanh(static_cast<double>(gates[2 * n + k])));
    ASSERT_TRUE(within(c, 8.0, cell[k])) << k << " of " << n;
    h.add(o, std::tanh(c.value));
    h.magnitude += o * c.magnitude;
    ASSERT_TRUE(within(h, 8.0, hidden[k])) << k << " of " << n;
  }
}

void run_case(size_t n, Fill fill, float scale) {
  const TestValues gates(4 * n, static_cast<uint32_t>(n), fill, scale);
  TestValues cell(n, static_cast<uint32_t>(n + 1), fill == Fill::kLarge ? Fill::kNormal : fill), hidden(n + 1, 1);
  const TestValues before = cell;
  const float behind = hidden[n];
  lstm_cell({gates.data(), 4 * n}, {cell.data(), n}, {hidden.data(), n});
  expect_cell(gates, before, cell, hidden, n);
  EXPECT_EQ(hidden[n], behind);
}

TEST(LstmCell, MatchesTheTwin) {
  for_each_target([] {
    for (const size_t n : edge_sizes()) run_case(n, Fill::kNormal, 2.0f);
    for (const Fill fill : {Fill::kZeros, Fill::kDenormal, Fill::kLarge}) run_case(256, fill, 1.0f);
    run_case(256, Fill::kNormal, 20.0f);
  });
}

}  // namespace
}  // namespace syrinx::kernels
