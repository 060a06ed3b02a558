// The layers of Pocket TTS's codec at the shapes of one frame: ready rows, weights in bf16, ELU on the way out.
#include <memory>
#include <random>

#include "bench/suite/kernel_cases.h"
#include "kernels/pack.h"
#include "kernels/row_conv.h"
#include "tensor/buffer.h"

namespace syrinx::bench {
namespace {

struct Shape {
  const char* name;
  size_t channels, columns, taps, rows;
};

// A transposed convolution is one of two taps with all its output rows side by side.
constexpr Shape kShapes[] = {
    {"codec conv", 512, 512, 7, 16},         {"codec linear", 512, 2048, 1, 16},
    {"codec upsample x6", 512, 1536, 2, 16}, {"codec upsample x5", 256, 640, 2, 96},
    {"codec upsample x4", 128, 256, 2, 480}, {"codec residual", 128, 64, 3, 480},
    {"codec residual", 64, 32, 3, 1920},     {"codec residual", 32, 64, 1, 1920},
};

struct Problem {
  explicit Problem(const Shape& s)
      : input((s.rows + s.taps) * s.channels), output(s.rows * round_up(s.columns, kPanelColumns)) {
    std::mt19937 random(17);
    std::uniform_int_distribution<int> step(-100, 100);  // sixteenths up to 6: exact in bf16
    const auto draw = [&] { return static_cast<float>(step(random)) / 16.0f; };
    for (float& v : input) v = draw();
    std::vector<float> sample(4096);
    for (float& v : sample) v = draw();
    matrix = kernels::pack_exact(
        {.columns = s.columns, .channels = s.channels, .taps = s.taps},
        [&](size_t n, size_t k, size_t t) { return sample[(n * 31 + k * 7 + t) % sample.size()]; }, {});
    work = {.input = input.data(),
            .rows = s.rows,
            .row_step = s.channels,
            .tap_step = s.channels,
            .activated = output.data(),
            .stride = round_up(s.columns, kPanelColumns),
            .activation = kernels::RowActivation::kElu};
  }
  Buffer<float> input, output;
  kernels::OwnedMatrix matrix;
  kernels::RowConv work;
};

KernelCase row_conv_case(const Shape& s) {
  const auto problem = std::make_shared<Problem>(s);
  const auto run = [problem](ThreadTeam& team) {
    team.run([&](int member) {
      const PackedMatrix& matrix = problem->matrix.view;
      const auto own = kernels::share_row_conv(matrix, problem->work.rows, member, team.size());
      kernels::row_conv(matrix, problem->work, own.rows, own.panels);
    });
  };
  return {s.name, fmt::format("{} -> {}, k {}, {} rows", s.channels, s.columns, s.taps, s.rows), LimitKind::kF32,
          2.0 * static_cast<double>(s.channels * s.columns * s.taps * s.rows), run};
}

}  // namespace

std::vector<KernelCase> codec_kernel_cases() {
  std::vector<KernelCase> cases;
  for (const Shape& shape : kShapes) cases.push_back(row_conv_case(shape));
  return cases;
}

}  // namespace syrinx::bench
