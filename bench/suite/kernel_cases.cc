#include "bench/suite/kernel_cases.h"

#include <memory>

#include "kernels/activation.h"
#include "kernels/attention.h"
#include "kernels/bf16.h"
#include "kernels/block_exponentials.h"
#include "kernels/cache_attention.h"
#include "kernels/depthwise.h"
#include "kernels/fft.h"
#include "kernels/layer_norm.h"
#include "kernels/lstm_cell.h"
#include "kernels/packed_attention.h"
#include "kernels/rotary.h"
#include "kernels/softmax.h"
#include "kernels/stft20.h"
#include "kernels/vector_math.h"
#include "tensor/buffer.h"
#include "tensor/packed_matrix.h"

namespace syrinx::bench {
namespace {

using kernels::NormAffine;
using Floats = std::shared_ptr<Buffer<float>>;

// Values between -1 and 1 with no pattern that a branch predictor could learn.
Floats values(size_t n) {
  auto buffer = std::make_shared<Buffer<float>>(n);
  uint32_t state = 12345;
  for (float& value : *buffer) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<float>(state >> 8) / 8388608.0f - 1.0f;
  }
  return buffer;
}

// A function over an array, each thread taking a part.  `operations` is for one value.
KernelCase array_case(std::string name, size_t n, double operations,
                      void (*function)(std::span<const float>, std::span<float>)) {
  const Floats in = values(n), out = values(n);
  const auto run = [=](ThreadTeam& team) {
    team.run([&](int member) {
      const Range part = split_range(n, member, team.size(), 64);
      function(in->span().subspan(part.begin, part.end - part.begin),
               out->span().subspan(part.begin, part.end - part.begin));
    });
  };
  return {std::move(name), fmt::format("{} values", n), LimitKind::kF32, operations * static_cast<double>(n), run};
}

KernelCase layer_norm_case(size_t rows, size_t channels) {
  const Floats x = values(rows * channels), gamma = values(channels), beta = values(channels);
  const Floats out = values(rows * channels);
  const auto run = [=](ThreadTeam& team) {
    team.run([&](int member) {
      const Range part = split_range(rows, member, team.size());
      const std::array<size_t, 2> shape = {part.end - part.begin, channels};
      const size_t offset = part.begin * channels;
      kernels::layer_norm({x->data() + offset, shape}, NormAffine{gamma->data(), beta->data()}, 1e-5f,
                          {out->data() + offset, shape});
    });
  };
  return {"layer_norm", fmt::format("[{}, {}]", rows, channels), LimitKind::kF32,
          8.0 * static_cast<double>(rows * channels), run};
}

KernelCase softmax_case(size_t rows, size_t columns) {
  const Floats x = values(rows * columns), out = values(rows * columns);
  const auto run = [=](ThreadTeam& team) {
    team.run([&](int member) {
      const Range part = split_range(rows, member, team.size());
      const std::array<size_t, 2> shape = {part.end - part.begin, columns};
      kernels::softmax({x->data() + part.begin * columns, shape}, 0.125f, {out->data() + part.begin * columns, shape});
    });
  };
  return {"softmax", fmt::format("[{}, {}]", rows, columns), LimitKind::kF32,
          29.0 * static_cast<double>(rows * columns), run};
}

// As a sampler asks for them, of the logits of a vocabulary.
KernelCase block_exponentials_case(size_t n) {
  const Floats x = values(n), maxima = values(kernels::exponential_blocks(n));
  const auto sums = std::make_shared<Buffer<double>>(kernels::exponential_blocks(n));
  const auto run = [=](ThreadTeam& team) {
    team.run([&](int member) {
      const Range part = split_range(n, member, team.size(), kernels::kExponentialBlock);
      const size_t first = part.begin / kernels::kExponentialBlock;
      const size_t blocks = kernels::exponential_blocks(part.end - part.begin);
      kernels::block_exponentials(x->span().subspan(part.begin, part.end - part.begin), 1.0f, 0.125f,
                                  sums->span().subspan(first, blocks), maxima->span().subspan(first, blocks));
    });
  };
  return {"block_exponentials", fmt::format("{} values", n), LimitKind::kF32, 30.0 * static_cast<double>(n), run};
}

KernelCase attention_case(size_t tokens, size_t heads, int threads) {
  constexpr size_t kWidth = 64;
  const size_t columns = heads * kWidth, scratch_size = kernels::attention_scratch_size(tokens, kWidth);
  const Floats qkv = values(tokens * columns * 3), out = values(tokens * columns);
  const Floats scratch = values(scratch_size * static_cast<size_t>(threads));
  const auto run = [=](ThreadTeam& team) {
    kernels::AttentionInput input;
    input.q = {qkv->data(), {tokens, columns}, {3 * columns, 1}};
    input.k = {qkv->data() + columns, {tokens, columns}, {3 * columns, 1}};
    input.v = {qkv->data() + 2 * columns, {tokens, columns}, {3 * columns, 1}};
    input.head_width = kWidth;
    input.scale = 0.125f;
    team.run([&](int member) {
      const Range part = split_range(heads, member, team.size());
      kernels::attention(input, part.begin, part.end,
                         scratch->span().subspan(static_cast<size_t>(member) * scratch_size, scratch_size),
                         {out->data(), {tokens, columns}});
    });
  };
  const double work = static_cast<double>(tokens) * static_cast<double>(tokens * columns) * 4.0;
  return {"attention", fmt::format("{} tokens, {} heads of {}", tokens, heads, kWidth), LimitKind::kF32, work, run};
}

// The same in bf16: every head packed, then the queries of all heads shared out.
KernelCase packed_attention_case(size_t tokens, size_t heads, int threads) {
  constexpr size_t kWidth = 64;
  const size_t columns = heads * kWidth, head_bytes = round_up(kernels::packed_head_bytes(tokens, kWidth), 64);
  const size_t scratch_bytes = round_up(kernels::packed_attention_scratch_bytes(tokens, kWidth), 64);
  const Floats qkv = values(tokens * columns * 3), out = values(tokens * columns);
  const auto packed = std::make_shared<Buffer<std::byte>>(heads * head_bytes);
  const auto scratch = std::make_shared<Buffer<std::byte>>(scratch_bytes * static_cast<size_t>(threads));
  const auto run = [=](ThreadTeam& team) {
    team.run([&](int member) {
      const auto part = [&](size_t which, size_t head) {
        return View<const float, 2>(qkv->data() + which * columns + head * kWidth, {tokens, kWidth}, {3 * columns, 1});
      };
      const Range own = split_range(heads, member, team.size());
      for (size_t head = own.begin; head < own.end; ++head) {
        const std::span<std::byte> panels = packed->span().subspan(head * head_bytes, head_bytes);
        kernels::pack_head(part(1, head), part(2, head), 0, tokens, panels);
        kernels::packed_attention({.q = part(0, head), .head = panels, .keys = tokens, .scale = 0.125f}, {0, tokens},
                                  scratch->span().subspan(static_cast<size_t>(member) * scratch_bytes, scratch_bytes),
                                  {out->data() + head * kWidth, {tokens, kWidth}, {columns, 1}});
      }
    });
  };
  const double work = static_cast<double>(tokens) * static_cast<double>(tokens * columns) * 4.0;
  return {"packed_attention", fmt::format("{} tokens in bf16, {} heads of {}", tokens, heads, kWidth), LimitKind::kBf16,
          work, run};
}

std::shared_ptr<Buffer<float>> cached_values(size_t n, float) { return values(n); }
std::shared_ptr<Buffer<uint16_t>> cached_values(size_t n, uint16_t) {
  auto rounded = std::make_shared<Buffer<uint16_t>>(n);
  kernels::round_rows({values(n)->data(), {1, n}}, rounded->data(), n);
  return rounded;
}

// New positions at the end of a cache of T that is full, heads shared out among the threads.
template <class T>
KernelCase cache_attention_case(const char* type, size_t queries, size_t positions, size_t heads, int threads) {
  constexpr size_t kWidth = 64;
  const size_t columns = heads * kWidth, scratch_size = kernels::cache_attention_scratch_size(positions);
  const Floats q = values(queries * columns), out = values(queries * columns);
  const auto keys = cached_values(positions * columns, T()), cached = cached_values(positions * columns, T());
  const Floats scratch = values(scratch_size * static_cast<size_t>(threads));
  const auto run = [=](ThreadTeam& team) {
    kernels::CacheAttention<T> input;
    input.q = {q->data(), {queries, columns}};
    input.keys = {keys->data(), {positions, columns}};
    input.values = {cached->data(), {positions, columns}};
    input.heads = input.key_heads = heads;
    input.head_size = kWidth;
    input.first_position = positions - queries;
    input.scale = 0.125f;
    team.run([&](int member) {
      kernels::cache_attention(input, split_range(heads, member, team.size()),
                               scratch->span().subspan(static_cast<size_t>(member) * scratch_size, scratch_size),
                               {out->data(), {queries, columns}});
    });
  };
  const double work = 4.0 * static_cast<double>(queries * columns) *
                      (static_cast<double>(positions) - static_cast<double>(queries) / 2.0);
  return {"cache_attention",
          fmt::format("{} of {} positions in {}, {} heads of {}", queries, positions, type, heads, kWidth),
          LimitKind::kF32, work, run};
}

// All heads of some positions, in place: the angles turn the same values on and on, which keeps their size.
KernelCase rotary_case(size_t rows, size_t columns) {
  constexpr size_t kPairs = 32;
  const Floats x = values(rows * columns), cosines = values(rows * kPairs), sines = values(rows * kPairs);
  std::vector<float> theta(kPairs);
  kernels::rotary_frequencies(10000.0f, theta);
  kernels::rotary_angles(theta, 100, {cosines->data(), {rows, kPairs}}, {sines->data(), {rows, kPairs}});
  const auto run = [=](ThreadTeam& team) {
    team.run([&](int member) {
      const Range part = split_range(rows, member, team.size());
      const size_t count = part.end - part.begin;
      kernels::rotary({cosines->data() + part.begin * kPairs, {count, kPairs}},
                      {sines->data() + part.begin * kPairs, {count, kPairs}},
                      {x->data() + part.begin * columns, {count, columns}});
    });
  };
  return {"rotary", fmt::format("[{}, {}]", rows, columns), LimitKind::kF32, 3.0 * static_cast<double>(rows * columns),
          run};
}

// One direction a thread, as a bidirectional layer would run.
KernelCase lstm_case(size_t hidden, int threads) {
  const size_t members = static_cast<size_t>(threads);
  const Floats gates = values(4 * hidden * members), cell = values(hidden * members), out = values(hidden * members);
  const auto run = [=](ThreadTeam& team) {
    team.run([&](int member) {
      const size_t at = static_cast<size_t>(member) * hidden;
      kernels::lstm_cell(gates->span().subspan(4 * at, 4 * hidden), cell->span().subspan(at, hidden),
                         out->span().subspan(at, hidden));
    });
  };
  return {"lstm_cell", fmt::format("{} units a thread", hidden), LimitKind::kF32,
          130.0 * static_cast<double>(hidden * members), run};
}

KernelCase depthwise_case(size_t rows, size_t channels) {
  const Floats x = values(rows * channels), weight = values(3 * channels), bias = values(channels);
  const Floats out = values(2 * rows * channels);
  const auto run = [=](ThreadTeam& team) {
    team.run([&](int member) {
      const Range part = split_range(rows, member, team.size());
      kernels::depthwise_conv_transpose({x->data(), {rows, channels}}, weight->data(), bias->data(), part.begin,
                                        part.end, {out->data(), {2 * rows, channels}});
    });
  };
  return {"depthwise_conv_transpose", fmt::format("[{}, {}]", rows, channels), LimitKind::kF32,
          6.0 * static_cast<double>(rows * channels), run};
}

KernelCase stft_case(size_t frames, bool inverse) {
  const size_t samples = (frames - 1) * kernels::kStftHop;
  const Floats signal = values(samples), rows = values(frames * 22), out = values(samples);
  const auto run = [=](ThreadTeam& team) {
    team.run([&](int member) {
      const Range part = split_range(inverse ? frames - 1 : frames, member, team.size());
      if (inverse) {
        kernels::istft20_of_head({{rows->data(), {frames, 22}}, 0, frames}, part.begin, part.end,
                                 out->span().subspan(part.begin * kernels::kStftHop));
      } else {
        kernels::stft20(signal->span(), part.begin, part.end,
                        {rows->data() + part.begin * 22, {part.end - part.begin, 22}});
      }
    });
  };
  // 20 x 22 multiply-adds, and per bin an angle, or an exponential and three sines.
  const double work = static_cast<double>(frames) * (880.0 + 11.0 * (inverse ? 90.0 : 40.0));
  return {inverse ? "istft20_of_head" : "stft20", fmt::format("{} frames", frames), LimitKind::kF32, work, run};
}

}  // namespace

std::vector<KernelCase> vector_kernel_cases(int threads) {
  constexpr size_t kArray = 16384;  // two arrays of it fit a second-level cache
  std::vector<KernelCase> cases;
  cases.push_back(array_case("exp", kArray, 22, kernels::exp_array));
  cases.push_back(array_case("sin", kArray, 25, kernels::sin_array));
  cases.push_back(array_case("sin_squared", kArray, 21, kernels::sin_squared_array));
  cases.push_back(array_case("tanh", kArray, 40, kernels::tanh_array));
  cases.push_back(array_case("gelu_tanh", kArray, 29, kernels::gelu_tanh));
  cases.push_back(array_case("elu", kArray, 22, kernels::elu));
  cases.push_back(array_case("silu", kArray, 24, kernels::silu));
  cases.push_back(rotary_case(16, 2048));
  cases.push_back(layer_norm_case(200, 768));
  cases.push_back(softmax_case(200, 200));
  cases.push_back(block_exponentials_case(49152));
  for (const size_t tokens : {50, 200, 512}) cases.push_back(attention_case(tokens, 12, threads));
  cases.push_back(packed_attention_case(1500, 8, threads));
  cases.push_back(cache_attention_case<float>("f32", 1, 300, 16, threads));
  cases.push_back(cache_attention_case<uint16_t>("bf16", 1, 300, 16, threads));
  cases.push_back(cache_attention_case<float>("f32", 16, 266, 8, threads));
  cases.push_back(cache_attention_case<uint16_t>("bf16", 16, 266, 8, threads));
  cases.push_back(lstm_case(256, threads));
  cases.push_back(depthwise_case(200, 1090));
  cases.push_back(stft_case(4801, false));
  cases.push_back(stft_case(4801, true));
  return cases;
}

const kernels::Limit& limit_of(const kernels::MachineLimits& limits, LimitKind kind) {
  switch (kind) {
    case LimitKind::kRead: return limits.read_gb_per_s;
    case LimitKind::kBf16: return limits.bf16_gop_per_s;
    case LimitKind::kInt8: return limits.int8_best();
    case LimitKind::kF32: break;
  }
  return limits.f32_gop_per_s;
}

const char* limit_name(LimitKind kind) {
  switch (kind) {
    case LimitKind::kRead: return "read";
    case LimitKind::kBf16: return "bf16";
    case LimitKind::kInt8: return "int8";
    case LimitKind::kF32: break;
  }
  return "f32";
}

}  // namespace syrinx::bench
