#include "decoder_twin.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstring>

#include "tensor/dtype.h"

namespace syrinx::nn {
namespace {

constexpr double kEps = FLT_EPSILON;
// The kernels' functions: exp, tanh and sigmoid are within 4 ulp, the GELUs within 1e-6 of |x|.
constexpr double kFunction = 4 * kEps, kGelu = 2e-6;
constexpr double kAngle = 2e-7;

double root(double a, double b) { return std::sqrt(a * a + b * b); }
Number rounded(double value, double deviation) { return {value, root(deviation, kEps * value)}; }
Number operator+(Number a, Number b) { return rounded(a.value + b.value, root(a.deviation, b.deviation)); }
Number operator-(Number a, Number b) { return rounded(a.value - b.value, root(a.deviation, b.deviation)); }
Number operator*(Number a, Number b) {
  return rounded(a.value * b.value, root(a.value * b.deviation, b.value * a.deviation));
}

// x to the nearest multiple of `step`; the step itself may be off by `step_deviation` of its value.
Number snap(Number x, double step, double step_deviation) {
  const double whole = std::nearbyint(x.value / step), away = std::abs(x.value / step - whole);
  const double own = root(whole * step_deviation, kEps * whole * step);
  const double reach = kDeviations * root(x.deviation, own) / step;
  // Both roundings are off by half a step at most.
  return {whole * step, away + reach < 0.5 ? own : root(root(own, x.deviation), step / 2)};
}

Number to_bf16(Number x) {
  if (x.value == 0 && x.deviation == 0) return x;
  return snap(x, std::ldexp(1.0, std::ilogb(std::max(std::abs(x.value), 1e-30)) - 7), 0);
}

// The activations that a product of this type reads instead of x.
Numbers narrowed(PanelType type, const Numbers& x) {
  Numbers out = x;
  if (type == PanelType::kF32) return out;
  Number range;
  for (const Number& number : x) {
    range.value = std::max(range.value, std::abs(number.value));
    range.deviation = std::max(range.deviation, number.deviation);
  }
  for (Number& number : out)
    number = type == PanelType::kBf16 ? to_bf16(number) : snap(number, range.value / 127, range.deviation / 127);
  return out;
}

// sum a_i b_i in any order.
Number dot(const Numbers& a, const Numbers& b) {
  Number sum;
  double magnitude = 0, squares = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    sum.value += a[i].value * b[i].value;
    squares += std::pow(root(a[i].value * b[i].deviation, b[i].value * a[i].deviation), 2);
    magnitude += std::abs(a[i].value * b[i].value);
  }
  sum.deviation = root(std::sqrt(squares), std::sqrt(static_cast<double>(a.size())) * kEps * magnitude);
  return sum;
}

// The form in which a product reads activations.
PanelType read_type(const PackedMatrix& matrix, Products products) {
  if (products == Products::kLinear) return matrix.type;
  return products == Products::kBf16Rows ? PanelType::kBf16 : PanelType::kF32;
}

Numbers product_of(const PackedMatrix& matrix, Products products, const Numbers& x) {
  const Numbers read = narrowed(read_type(matrix, products), x);
  Numbers y(matrix.columns), row(x.size());
  for (size_t n = 0; n < y.size(); ++n) {
    for (size_t k = 0; k < x.size(); ++k) row[k] = {weight_at(matrix, n, k), 0};
    y[n] = dot(row, read) + Number{matrix.bias[n], 0};
  }
  return y;
}

Numbers normed(Norm kind, const Numbers& x, const std::vector<float>& gamma, const std::vector<float>& beta,
               double epsilon) {
  const auto n = static_cast<double>(x.size());
  const Numbers ones(x.size(), Number{1.0, 0});
  Number mean = kind == Norm::kLayer ? dot(x, ones) * Number{1 / n, 0} : Number{};
  Numbers centred = x;
  for (Number& number : centred) number = kind == Norm::kLayer ? number - mean : number;
  const Number variance = dot(centred, centred) * Number{1 / n, 0} + Number{epsilon, 0};
  const double scale = 1 / std::sqrt(variance.value);
  const Number factor{scale, root(0.5 * scale * variance.deviation / variance.value, 3 * kEps * scale)};
  for (size_t i = 0; i < x.size(); ++i) {
    centred[i] = centred[i] * factor * Number{gamma[i], 0};
    if (!beta.empty()) centred[i] = centred[i] + Number{beta[i], 0};
  }
  return centred;
}

// out = sum_p softmax(scale q . keys)_p values_p
Numbers attend(const Numbers& q, const std::vector<Numbers>& keys, const std::vector<Numbers>& values) {
  const Number scale{1 / std::sqrt(static_cast<double>(q.size())), kEps};
  Numbers weights;
  double most = -1e300;
  for (const Numbers& key : keys) {
    weights.push_back(dot(q, key) * scale);
    most = std::max(most, weights.back().value);
  }
  Number sum;
  for (Number& weight : weights) {
    const double e = std::exp(weight.value - most);
    weight = {e, e * root(weight.deviation, 2 * kEps * (std::abs(weight.value) + std::abs(most)) + kFunction)};
    sum = sum + weight;
  }
  const Number inverse{1 / sum.value, root(sum.deviation / (sum.value * sum.value), kEps / sum.value)};
  Numbers out(q.size());
  for (size_t i = 0; i < out.size(); ++i) {
    Numbers column;
    for (const Numbers& value : values) column.push_back(value[i]);
    out[i] = dot(weights, column) * inverse;
  }
  return out;
}

// Where number i of a head of the checkpoint stands in the packed head.
size_t packed_place(size_t i, size_t size, bool half_split) {
  if (!half_split) return i;
  return i < size / 2 ? 2 * i : 2 * (i - size / 2) + 1;
}

class Twin {
 public:
  explicit Twin(const TwinInput& input)
      : input_(input), c_(input.weights->shape), keys_(c_.layers * c_.key_heads), values_(keys_.size()) {}

  Numbers step(const std::vector<float>& x, size_t position) {
    weights_ = input_.second != nullptr && position % 2 == 1 ? input_.second : input_.weights;
    Numbers row;
    for (const float value : x) row.push_back({value, 0});
    for (size_t i = 0; i < c_.layers; ++i) {
      const DecoderBlock& block = weights_->layers[i];
      add(row, product(block.out.view, self(i, norm(row, block.before), position)), block.attention_scale);
      if (c_.cross) add(row, product(block.cross->out.view, cross(i, norm(row, block.cross->norm))), {});
      Numbers read = norm(row, block.after);
      for (size_t k = 0; c_.stream_gain && k < c_.width; ++k)
        read[k] = read[k] * Number{(*input_.gain)[i * c_.width + k], 0};
      add(row, product(block.down.view, hidden(product(block.up.view, read))), block.mlp_scale);
    }
    return row;
  }

 private:
  Numbers product(const PackedMatrix& matrix, const Numbers& x) const { return product_of(matrix, c_.products, x); }
  Numbers norm(const Numbers& x, const NormWeights& w) const { return normed(c_.norm, x, w.gamma, w.beta, c_.epsilon); }

  static void add(Numbers& x, const Numbers& branch, const std::vector<float>& scale) {
    for (size_t i = 0; i < x.size(); ++i) x[i] = x[i] + (scale.empty() ? branch[i] : branch[i] * Number{scale[i], 0});
  }

  // Head `head` of the queries or keys that begin at `first`, in the order of the checkpoint, normed and turned.
  Numbers place(const Numbers& qkv, size_t first, size_t head, const std::vector<float>& gamma, size_t position) const {
    const size_t size = c_.head_size;
    Numbers x(size);
    std::vector<float> own_gamma(gamma.size());
    for (size_t i = 0; i < size; ++i) {
      const size_t at = packed_place(i, size, input_.half_split);
      x[i] = qkv[first + head * size + at];
      if (!gamma.empty()) own_gamma[i] = gamma[at];
    }
    if (c_.head_norm) x = normed(Norm::kRms, x, own_gamma, {}, c_.epsilon);
    if (c_.rotary == Rotary::kNone) return x;
    Numbers turned(size);
    for (size_t i = 0; i < size / 2; ++i) {
      const size_t a = input_.half_split ? i : 2 * i, b = input_.half_split ? i + size / 2 : 2 * i + 1;
      const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(size);
      const double angle = static_cast<double>(position) * std::pow(static_cast<double>(c_.period), exponent);
      const double deviation = kAngle + 16 * kEps * angle;
      const Number cosine{std::cos(angle), deviation}, sine{std::sin(angle), deviation};
      turned[a] = x[a] * cosine - x[b] * sine;
      turned[b] = x[a] * sine + x[b] * cosine;
    }
    return turned;
  }

  Numbers kept(Numbers rows) const {
    if (c_.cache == DType::kI8) return narrowed(PanelType::kInt8Symmetric, rows);
    for (Number& number : rows)
      if (c_.cache == DType::kBF16) number = to_bf16(number);
    return rows;
  }

  Numbers self(size_t layer, const Numbers& x, size_t position) {
    const DecoderBlock& block = weights_->layers[layer];
    const Numbers qkv = product(block.in.view, x);
    const size_t size = c_.head_size, value_column = c_.query_width() + c_.key_width();
    Numbers out;
    for (size_t g = 0; g < c_.key_heads; ++g) {
      std::vector<Numbers>&keys = keys_[layer * c_.key_heads + g], &values = values_[layer * c_.key_heads + g];
      keys.push_back(kept(place(qkv, c_.query_width(), g, block.key_norm, position)));
      const auto first = qkv.begin() + static_cast<ptrdiff_t>(value_column + g * size);
      values.push_back(kept(Numbers(first, first + static_cast<ptrdiff_t>(size))));
      const size_t seen = c_.window == 0 ? keys.size() : std::min(c_.window, keys.size());
      const std::vector<Numbers> last_keys(keys.end() - static_cast<ptrdiff_t>(seen), keys.end());
      const std::vector<Numbers> last_values(values.end() - static_cast<ptrdiff_t>(seen), values.end());
      const size_t group = c_.heads / c_.key_heads;
      for (size_t h = g * group; h < (g + 1) * group; ++h) {
        const Numbers head = attend(place(qkv, 0, h, block.query_norm, position), last_keys, last_values);
        out.insert(out.end(), head.begin(), head.end());
      }
    }
    return out;
  }

  template <class T>
  static std::vector<Numbers> rows_of(View<const T, 2> rows) {
    std::vector<Numbers> out(rows.extent(0));
    for (size_t n = 0; n < out.size(); ++n)
      for (size_t i = 0; i < rows.extent(1); ++i) {
        if constexpr (sizeof(T) == 4) {
          out[n].push_back({rows.row(n)[i], 0});
        } else {
          out[n].push_back({bf16_to_f32(rows.row(n)[i]), 0});
        }
      }
    return out;
  }

  Numbers cross(size_t layer, const Numbers& x) const {
    const CrossCache& heard = *input_.cross;
    const Numbers queries = product(weights_->layers[layer].cross->query.view, x);
    Numbers out;
    for (size_t h = 0; h < c_.heads; ++h) {
      const auto first = queries.begin() + static_cast<ptrdiff_t>(h * c_.head_size);
      const Numbers q(first, first + static_cast<ptrdiff_t>(c_.head_size));
      const bool f32 = heard.type == DType::kF32;
      const Numbers head =
          attend(q, f32 ? rows_of(heard.head_keys<float>(layer, h)) : rows_of(heard.head_keys<uint16_t>(layer, h)),
                 f32 ? rows_of(heard.head_values<float>(layer, h)) : rows_of(heard.head_values<uint16_t>(layer, h)));
      out.insert(out.end(), head.begin(), head.end());
    }
    return out;
  }

  // x times what `gate` makes of x; the gate's slope is at most `slope`.
  static Number gated(Number x, double gate, double slope, double deviation) {
    return rounded(x.value * gate, root(x.deviation * slope, deviation * x.value));
  }

  Numbers hidden(const Numbers& up) const {
    Numbers out(c_.hidden);
    for (size_t i = 0; i < out.size(); ++i) {
      const size_t at = c_.mlp == Mlp::kSwiGlu ? i / kPanelColumns * 2 * kPanelColumns + i % kPanelColumns : i;
      const Number x = up[at];
      const double tanh = std::tanh(std::sqrt(2 / M_PI) * (x.value + 0.044715 * x.value * x.value * x.value));
      // The slopes of all three are at most 1.13.
      switch (c_.mlp) {
        case Mlp::kGelu: out[i] = gated(x, 0.5 * (1 + std::erf(x.value / std::sqrt(2.0))), 1.13, kGelu); break;
        case Mlp::kGeluTanh: out[i] = gated(x, 0.5 * (1 + tanh), 1.13, kGelu); break;
        case Mlp::kSwiGlu:
          out[i] = gated(x, 1 / (1 + std::exp(-x.value)), 1.13, kFunction) * up[at + kPanelColumns];
          break;
      }
    }
    return out;
  }

  const TwinInput& input_;
  const DecoderConfig& c_;
  const DecoderWeights* weights_ = nullptr;          // of the position
  std::vector<std::vector<Numbers>> keys_, values_;  // [layers * G][positions]
};

}  // namespace

double weight_at(const PackedMatrix& m, size_t n, size_t k) {
  const size_t panel = n / kPanelColumns, column = n % kPanelColumns;
  const auto* const bytes = static_cast<const std::byte*>(m.panels) + panel * m.panel_bytes();
  switch (m.type) {
    case PanelType::kF32: return reinterpret_cast<const float*>(bytes)[k * kPanelColumns + column];
    case PanelType::kBf16:
      return bf16_to_f32(reinterpret_cast<const uint16_t*>(bytes)[(k / 2 * kPanelColumns + column) * 2 + k % 2]);
    case PanelType::kInt8Symmetric:
      return static_cast<double>(m.scale[n]) *
             reinterpret_cast<const int8_t*>(bytes)[(k / 4 * kPanelColumns + column) * 4 + k % 4];
    case PanelType::kInt4: {
      const size_t group_bytes = kPanelColumns * 2 + kInt4Group / 2 * kPanelColumns;
      const std::byte* const group = bytes + k / kInt4Group * group_bytes;
      const size_t at = k % kInt4Group, four = at % 8 / 4;
      uint16_t scale = 0;
      std::memcpy(&scale, group + column * 2, sizeof scale);
      const auto both = static_cast<uint8_t>(group[kPanelColumns * 2 + (at / 8 * kPanelColumns + column) * 4 + at % 4]);
      return static_cast<double>(bf16_to_f32(scale)) * ((four == 0 ? both & 15 : both >> 4) - 8);
    }
    default: return 0;
  }
}

std::vector<Numbers> decoder_twin(const TwinInput& input, const std::vector<std::vector<float>>& x) {
  Twin twin(input);
  std::vector<Numbers> out;
  for (size_t n = 0; n < x.size(); ++n) out.push_back(twin.step(x[n], n));
  return out;
}

}  // namespace syrinx::nn
