// The matrix products of Kokoro at the shapes of two seconds of sound, as the model runs them: normalisation and Snake
// on the way in, statistics on the way out, f32 and int8.
#include <memory>
#include <random>

#include "bench/suite/kernel_cases.h"
#include "kernels/pack.h"
#include "nn/runner.h"

namespace syrinx::bench {
namespace {

using kernels::Activation;
using kernels::Storage;

struct Shape {
  const char* name;
  size_t channels, columns, taps, dilation, rows;
  Activation activation;
  bool residual;
};

constexpr Shape kShapes[] = {
    {"conv, 4800 Hz", 128, 128, 3, 1, 9600, Activation::kSnake, true},
    {"conv, 4800 Hz", 128, 128, 7, 3, 9600, Activation::kSnake, false},
    {"conv, 4800 Hz", 128, 128, 11, 5, 9600, Activation::kSnake, false},
    {"conv, 800 Hz", 256, 256, 3, 1, 1600, Activation::kSnake, true},
    {"conv, 800 Hz", 256, 256, 7, 3, 1600, Activation::kSnake, false},
    {"conv, 800 Hz", 256, 256, 11, 1, 1600, Activation::kSnake, true},
    {"upsample x10", 512, 2560, 2, 1, 161, Activation::kLeakyRelu, false},
    {"upsample x6", 256, 768, 2, 1, 1601, Activation::kLeakyRelu, false},
    {"conv, 40 Hz", 1090, 1024, 3, 1, 80, Activation::kLeakyRelu, false},
    {"linear", 768, 2048, 1, 1, 70, Activation::kNone, false},
};

// One convolution with everything it reads and writes.
struct Problem {
  Problem(const Shape& s, bool is_int8)
      : shape(s), columns(round_up(s.columns, kPanelColumns)), geometry{.rows = s.rows, .dilation = s.dilation} {
    geometry.pad = static_cast<ptrdiff_t>((s.taps - 1) * s.dilation / 2);
    std::mt19937 random(17);
    std::normal_distribution<float> normal;
    const std::vector<float> bias(s.columns, 0.1f), sample = [&] {
      std::vector<float> values(4096);
      for (float& v : values) v = normal(random);
      return values;
    }();
    const auto weight = [&](size_t n, size_t k, size_t t) { return sample[(n * 31 + k * 7 + t) % sample.size()]; };
    const kernels::MatrixShape size{.columns = s.columns, .channels = s.channels, .taps = s.taps};
    matrix = is_int8 ? kernels::pack_int8(size, weight, bias) : kernels::pack_f32(size, weight, bias);
    // The generator keeps its planes in half precision beside int8; the layers at lower rates keep f32.
    const Storage storage = is_int8 && s.activation == Activation::kSnake ? Storage::kF16 : Storage::kF32;
    in.prepare(s.rows, s.channels, storage);
    out.prepare(s.rows, s.columns, storage);
    std::vector<float> row(in.stride());
    for (size_t t = 0; t < s.rows; ++t) {
      for (size_t c = 0; c < s.channels; ++c) row[c] = sample[(t * 13 + c) % sample.size()];
      kernels::write_row(row.data(), storage, in.stride(), in.row(t));
    }
    for (std::vector<float>* values : {&scale, &shift, &alpha}) values->assign(in.stride(), 0.0f);
    for (size_t c = 0; c < s.channels; ++c) {
      scale[c] = 1.0f;
      alpha[c] = 1.0f;
    }
  }

  void run(nn::Runner& runner) {
    const bool linear = shape.taps == 1;
    kernels::ConvInput input{.data = in.row(0), .storage = in.storage(), .rows = in.rows(), .stride = in.stride()};
    if (!linear) {
      input.scale = scale.data();
      input.shift = shift.data();
      input.activation = shape.activation;
      input.slope = 0.1f;
      input.alpha_over_pi = alpha.data();
      input.inverse_alpha = alpha.data();
      input.range = &in_stats.tiles();
    }
    kernels::ConvOutput output{.data = out.row(0), .storage = out.storage(), .stride = out.stride()};
    if (shape.activation == Activation::kSnake) output.stats = &out_stats.tiles();
    if (shape.residual) {
      output.residual = in.row(0);
      output.residual_stride = in.stride();
    }
    runner.conv(matrix.view, geometry, input, output);
  }

  Shape shape;
  size_t columns;
  kernels::ConvGeometry geometry;
  kernels::OwnedMatrix matrix;
  nn::Plane in, out;
  nn::PlaneStats in_stats, out_stats;
  std::vector<float> scale, shift, alpha;
};

KernelCase conv_case(const Shape& s, bool is_int8) {
  const auto problem = std::make_shared<Problem>(s, is_int8);
  const auto runner = std::make_shared<std::unique_ptr<nn::Runner>>();
  const auto run = [problem, runner](ThreadTeam& team) {
    if (*runner == nullptr || &(*runner)->team() != &team) {
      *runner = std::make_unique<nn::Runner>(team);
      (*runner)->stats(problem->in, problem->in_stats);
      problem->out_stats.prepare(problem->shape.rows, problem->shape.columns);
    }
    problem->run(**runner);
  };
  const double work = 2.0 * static_cast<double>(s.channels * s.columns * s.taps * s.rows);
  return {fmt::format("{} {}", is_int8 ? "int8" : "f32", s.name),
          s.taps == 1
              ? fmt::format("[{}, {}] x {}", s.rows, s.channels, s.columns)
              : fmt::format("{} -> {}, k {}, dilation {}, {} rows", s.channels, s.columns, s.taps, s.dilation, s.rows),
          is_int8 ? LimitKind::kInt8 : LimitKind::kF32, work, run};
}

// The recurrence of an LSTM: each thread is one direction with its own matrix, read from the second-level cache.
KernelCase gemv_case(bool is_int8, int threads) {
  constexpr size_t kDepth = 256, kColumns = 1024;
  const auto weight = [](size_t n, size_t k, size_t) { return static_cast<float>((n * 7 + k * 3) % 127) - 63.0f; };
  const std::vector<float> bias(kColumns, 0.0f);
  const kernels::MatrixShape size{.columns = kColumns, .channels = kDepth};
  struct Own {
    kernels::OwnedMatrix matrix;
    std::vector<float> x, y;
    std::vector<std::byte> scratch;
  };
  const auto own = std::make_shared<std::vector<Own>>(static_cast<size_t>(threads));
  for (Own& o : *own) {
    o.matrix = is_int8 ? kernels::pack_int8(size, weight, bias) : kernels::pack_f32(size, weight, bias);
    o.x.assign(kDepth, 0.5f);
    o.y.resize(kColumns);
    o.scratch.resize(kernels::gemv_scratch_bytes(o.matrix.view));
  }
  const auto run = [own](ThreadTeam& team) {
    team.run([&](int member) {
      Own& o = (*own)[static_cast<size_t>(member)];
      kernels::gemv(o.matrix.view, o.x.data(), nullptr, o.y.data(), {0, o.matrix.view.panel_count()}, o.scratch);
    });
  };
  const double work = 2.0 * static_cast<double>(kDepth * kColumns) * threads;
  return {is_int8 ? "int8 gemv" : "f32 gemv", fmt::format("{} -> {} a thread", kDepth, kColumns),
          is_int8 ? LimitKind::kInt8 : LimitKind::kF32, work, run};
}

}  // namespace

std::vector<KernelCase> matrix_kernel_cases(int threads) {
  std::vector<KernelCase> cases;
  for (const bool is_int8 : {true, false}) {
    for (const Shape& shape : kShapes) cases.push_back(conv_case(shape, is_int8));
    cases.push_back(gemv_case(is_int8, threads));
  }
  return cases;
}

}  // namespace syrinx::bench
