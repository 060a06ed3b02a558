// The exported graph: weights are found through the nodes that use them, whatever the exporter called the tensors.
// Specification: Kokoro, sections 6.1 to 6.3.
#include <algorithm>
#include <optional>
#include <unordered_map>

#include "models/kokoro/checkpoint_file.h"
#include "models/kokoro/onnx_names.h"
#include "tensor/onnx.h"

namespace syrinx::kokoro {
namespace {

constexpr int kShift = 64;         // what is taken off a u8 weight
constexpr int kMaxWeight = 64;     // of the stored 7-bit form; kernels rely on it
constexpr size_t kDirections = 2;  // of an LSTM; an empty tensor may claim 2^48

// Where the values of one weight lie: row r, column c of the PyTorch matrix [shape[0], the rest] is the element
// base + row(r) * row_stride + c * column_stride of `values`, where row() undoes the order of LSTM gates.
struct OnnxBinding {
  std::vector<size_t> shape;
  const TensorRef* values = nullptr;
  const TensorRef* scale = nullptr;  // of quantised values: one, one a row, or one a direction
  const TensorRef* zero = nullptr;   // none: 0
  size_t base = 0;
  size_t row_stride = 0;
  size_t column_stride = 1;
  std::optional<size_t> direction;  // of an LSTM, where gates are in the order i, o, f, c

  size_t rows() const { return shape.empty() ? 1 : shape[0]; }
  size_t columns() const {
    size_t product = 1;
    for (size_t i = 1; i < shape.size(); ++i) product *= shape[i];
    return product;
  }
  // PyTorch's gates are i, f, g, o; the graph's i, o, f, c.
  size_t row(size_t r) const {
    if (!direction) return r;
    constexpr size_t kGate[4] = {0, 2, 3, 1};
    const size_t width = rows() / 4;
    return kGate[r / width] * width + r % width;
  }
  bool quantised() const { return values->dtype == DType::kU8 || values->dtype == DType::kI8; }
};

using Bindings = std::map<std::string, OnnxBinding, std::less<>>;

class Binder {
 public:
  Binder(const OnnxFile& file, Bindings& bindings) : file_(file), bindings_(bindings) {
    for (const OnnxNode& node : file.nodes())
      for (const std::string& input : node.inputs) consumers_[input].push_back(&node);
  }

  void run() {
    for (const TensorRef& tensor : file_.tensors()) bind_named(tensor);
    for (const OnnxNode& node : file_.nodes()) {
      const std::string module = module_of_node(node.name);
      if (module.empty()) continue;
      if (node.op_type == "ConvInteger") bind_quantised(node, module, false);
      if (node.op_type == "MatMulInteger") bind_quantised(node, module, true);
      if (node.op_type == "Conv" || node.op_type == "ConvTranspose") bind_plain(node, module, false);
      if (node.op_type == "MatMul") bind_plain(node, module, true);
      if (node.op_type == "Gather") bind_embedding(node, module);
      if (node.op_type == "DynamicQuantizeLSTM" || node.op_type == "LSTM") bind_lstm(node, module);
    }
  }

 private:
  const TensorRef* input(const OnnxNode& node, size_t index) const {
    return index < node.inputs.size() && !node.inputs[index].empty() ? file_.find(node.inputs[index]) : nullptr;
  }

  // Twelve passes through one layer are nodes "query", "query_1", ...: those after the first bind nothing.
  bool is_repetition(const std::string& module, const TensorRef& values) const {
    const size_t mark = module.find_last_not_of("0123456789");
    if (mark == std::string::npos || mark + 1 == module.size() || module[mark] != '_') return false;
    const auto first = bindings_.find(module.substr(0, mark) + ".weight");
    return first != bindings_.end() && first->second.values == &values;
  }
  void add_rows(const std::string& name, const TensorRef& values, const TensorRef* scale, const TensorRef* zero) {
    OnnxBinding binding{.shape = values.dims, .values = &values, .scale = scale, .zero = zero, .direction = {}};
    binding.row_stride = binding.columns();
    bindings_.emplace(name, std::move(binding));
  }
  void add_transposed(const std::string& name, const TensorRef& values, const TensorRef* scale, const TensorRef* zero) {
    if (values.dims.size() != 2) return;
    OnnxBinding binding{.shape = {}, .values = &values, .scale = scale, .zero = zero, .direction = {}};
    binding.shape = {values.dims[1], values.dims[0]};
    binding.row_stride = 1;
    binding.column_stride = values.dims[1];
    bindings_.emplace(name, std::move(binding));
  }

  void bind_named(const TensorRef& tensor) {
    if (tensor.dtype != DType::kF32 && tensor.dtype != DType::kF16) return;
    const std::string name = parameter_name(tensor.name);
    // Scales are reached through their nodes; the constants of the export's own inverse STFT are no weights.
    if (name.empty() || name.ends_with("_scale") || name.find(".stft.") != std::string::npos) return;
    OnnxBinding binding{.shape = tensor.dims, .values = &tensor, .direction = {}};
    binding.row_stride = binding.columns();
    bindings_.emplace(name, std::move(binding));
  }

  void bind_quantised(const OnnxNode& node, const std::string& module, bool transposed) {
    const TensorRef* const values = input(node, 1);
    if (values == nullptr || is_repetition(module, *values)) return;  // null: a product of two activations
    const Wiring wiring = follow(node, transposed);
    const TensorRef* const zero = input(node, 3);
    const std::string name = module + ".weight";
    if (transposed)
      add_transposed(name, *values, wiring.scale, zero);
    else
      add_rows(name, *values, wiring.scale, zero);
    if (wiring.bias != nullptr && !bindings_.contains(module + ".bias"))
      add_rows(module + ".bias", *wiring.bias, nullptr, nullptr);
  }

  void bind_plain(const OnnxNode& node, const std::string& module, bool transposed) {
    const TensorRef* const values = input(node, 1);
    const std::string name = module + ".weight";
    if (values == nullptr || values->name.find(".stft.") != std::string::npos || bindings_.contains(name) ||
        is_repetition(module, *values))
      return;
    if (transposed)
      add_transposed(name, *values, nullptr, nullptr);
    else
      add_rows(name, *values, nullptr, nullptr);
    const TensorRef* const bias = transposed ? nullptr : input(node, 2);
    if (bias != nullptr && !bindings_.contains(module + ".bias")) add_rows(module + ".bias", *bias, nullptr, nullptr);
  }

  // Rows are gathered as they are stored and de-quantised afterwards.
  void bind_embedding(const OnnxNode& node, const std::string& module) {
    const TensorRef* const values = input(node, 0);
    if (values == nullptr || values->dims.size() != 2 || node.outputs.empty()) return;
    if (values->dtype != DType::kU8 && values->dtype != DType::kI8) return;  // bound by its name
    for (const OnnxNode* next : consumers(node.outputs[0]))
      if (next->op_type == "DequantizeLinear") add_rows(module + ".weight", *values, input(*next, 1), input(*next, 2));
  }

  // DynamicQuantizeLSTM stores W [D, in, 4H] and R [D, H, 4H]; the plain LSTM W [D, 4H, in] and R [D, 4H, H].
  // B [D, 8H] holds the input biases, then the recurrent ones.
  void bind_lstm(const OnnxNode& node, const std::string& module) {
    const bool quantised = node.op_type != "LSTM";
    for (const size_t which : {size_t{1}, size_t{2}}) {
      const TensorRef* const values = input(node, which);
      if (values == nullptr || values->dims.size() != 3 || values->dims[0] > kDirections) continue;
      const size_t gates = values->dims[quantised ? 2 : 1];
      const size_t width = values->dims[quantised ? 1 : 2];
      for (size_t d = 0; d < values->dims[0]; ++d) {
        OnnxBinding binding{.shape = {gates, width}, .values = values, .direction = d};
        binding.base = d * gates * width;
        binding.row_stride = quantised ? 1 : width;
        binding.column_stride = quantised ? gates : 1;
        if (quantised) {
          binding.scale = input(node, which == 1 ? 8 : 10);
          binding.zero = input(node, which == 1 ? 9 : 11);
        }
        if (gates % 4 == 0)
          bindings_.emplace(module + (which == 1 ? ".weight_ih_l0" : ".weight_hh_l0") + suffix(d), std::move(binding));
      }
    }
    const TensorRef* const bias = input(node, 3);
    if (bias == nullptr || bias->dims.size() != 2 || bias->dims[0] > kDirections || bias->dims[1] % 8 != 0) return;
    const size_t gates = bias->dims[1] / 2;
    for (size_t d = 0; d < bias->dims[0]; ++d)
      for (const size_t half : {size_t{0}, size_t{1}}) {
        OnnxBinding binding{.shape = {gates}, .values = bias, .direction = d};
        binding.base = (2 * d + half) * gates;
        binding.row_stride = 1;
        bindings_.emplace(module + (half == 0 ? ".bias_ih_l0" : ".bias_hh_l0") + suffix(d), std::move(binding));
      }
  }
  static std::string suffix(size_t direction) { return direction == 0 ? "" : "_reverse"; }

  struct Wiring {
    const TensorRef* scale = nullptr;
    const TensorRef* bias = nullptr;
  };

  // Follows an integer product through [Add of a quantised bias,] Cast, Mul by (activation scale * weight scale) [, Add
  // of a plain bias].  Equal constants are merged by exporters, so names of scales prove nothing.
  Wiring follow(const OnnxNode& product, bool plain_bias) {
    Wiring found;
    const OnnxNode* node = &product;
    for (int step = 0; step < 4 && !node->outputs.empty(); ++step) {
      const auto next = consumers(node->outputs[0]);
      if (next.size() != 1) break;
      const std::string& value = node->outputs[0];
      node = next[0];
      if (node->op_type == "Add") found.bias = initialiser_behind(other_input(*node, value));
      if (node->op_type != "Mul") continue;
      if (const OnnxNode* scales = file_.producer_of(other_input(*node, value)); scales != nullptr)
        for (size_t i = 0; i < scales->inputs.size(); ++i)
          if (input(*scales, i) != nullptr) found.scale = input(*scales, i);
      if (plain_bias && !node->outputs.empty())
        for (const OnnxNode* add : consumers(node->outputs[0]))
          if (add->op_type == "Add") found.bias = file_.find(other_input(*add, node->outputs[0]));
      break;
    }
    return found;
  }

  // Back through Reshape, Cast, Floor and Div, always by the first input.
  const TensorRef* initialiser_behind(std::string value) const {
    for (int step = 0; step < 6; ++step) {
      if (const TensorRef* tensor = file_.find(value); tensor != nullptr) return tensor;
      const OnnxNode* const node = file_.producer_of(value);
      if (node == nullptr || node->inputs.empty()) return nullptr;
      value = node->inputs[0];
    }
    return nullptr;
  }
  static std::string other_input(const OnnxNode& node, const std::string& one) {
    if (node.inputs.size() != 2) return "";
    return node.inputs[0] == one ? node.inputs[1] : node.inputs[0];
  }
  std::vector<const OnnxNode*> consumers(const std::string& value) const {
    const auto found = consumers_.find(value);
    return found == consumers_.end() ? std::vector<const OnnxNode*>{} : found->second;
  }

  const OnnxFile& file_;
  Bindings& bindings_;
  std::unordered_map<std::string_view, std::vector<const OnnxNode*>> consumers_;
};

class OnnxCheckpoint final : public CheckpointFile<OnnxBinding> {
 public:
  OnnxCheckpoint(MappedFile file, OnnxFile onnx) : CheckpointFile(std::move(file)), onnx_(std::move(onnx)) {
    Binder(onnx_, bindings_).run();
  }

 private:
  Result<StoredWeight> load(std::string_view name, const OnnxBinding& binding) const override {
    StoredWeight weight;
    if (!binding.quantised()) {
      const std::vector<float> stored = to_f32(binding.values->bytes, binding.values->dtype);
      weight.f32.resize(binding.rows() * binding.columns());
      gather(binding, stored.data(), weight.f32.data());
      release(binding.values->bytes);
      return weight;
    }
    if (binding.values->dtype == DType::kU8)
      SYRINX_TRY_VOID(load_quantised<uint8_t>(name, binding, kShift, weight));
    else
      SYRINX_TRY_VOID(load_quantised<int8_t>(name, binding, 0, weight));
    release(binding.values->bytes);
    return weight;
  }

  template <class From, class To>
  static void gather(const OnnxBinding& binding, const From* from, To* to, int shift = 0) {
    const size_t columns = binding.columns();
    for (size_t r = 0; r < binding.rows(); ++r) {
      const From* const row = from + binding.base + binding.row(r) * binding.row_stride;
      for (size_t c = 0; c < columns; ++c)
        to[r * columns + c] = static_cast<To>(row[c * binding.column_stride] - shift);
    }
  }

  // Scales of the rows of this binding: one, or one each.
  Result<std::vector<float>> scales(std::string_view name, const OnnxBinding& binding) const {
    const TensorRef* const tensor = binding.scale;
    if (tensor != nullptr && tensor->dtype == DType::kF32) {
      const std::vector<float> all = to_f32(tensor->bytes, tensor->dtype);
      if (binding.direction && *binding.direction < all.size()) return std::vector<float>{all[*binding.direction]};
      if (!binding.direction && (all.size() == 1 || all.size() == binding.rows())) return all;
    }
    return fail(Code::kUnsupported, "'{}': the quantised weight '{}' has no scale that we know how to apply", path(),
                name);
  }
  // Zero points of the rows, as many as wanted.
  Result<std::vector<int>> zeros(std::string_view name, const OnnxBinding& binding) const {
    std::vector<int> out(binding.rows(), 0);
    if (binding.zero == nullptr) return out;
    SYRINX_TRY(const std::vector<int64_t> all, to_i64(binding.zero->bytes, binding.zero->dtype));
    for (size_t r = 0; r < out.size(); ++r) {
      size_t at = all.size() == 1 ? 0 : r;
      if (binding.direction) at = *binding.direction;
      if (at >= all.size() || binding.zero->dtype != binding.values->dtype)
        return fail(Code::kUnsupported, "'{}': the zero points of '{}' do not match its rows", path(), name);
      out[r] = static_cast<int>(all[at]);
    }
    return out;
  }

  // The stored form if the weight has 7 bits and one zero point, else f32.
  template <class T>
  Status load_quantised(std::string_view name, const OnnxBinding& binding, int shift, StoredWeight& weight) const {
    SYRINX_TRY(weight.scale, scales(name, binding));
    SYRINX_TRY(const std::vector<int> zero, zeros(name, binding));
    const T* const stored = reinterpret_cast<const T*>(binding.values->bytes.data());
    const size_t count = binding.rows() * binding.columns();
    const auto [low, high] = std::minmax_element(stored + (binding.direction ? binding.base : 0),
                                                 stored + (binding.direction ? binding.base : 0) + count);
    const bool seven_bits = count > 0 && *low - shift >= -kMaxWeight && *high - shift <= kMaxWeight;
    const bool one_zero = std::all_of(zero.begin(), zero.end(), [&](int value) {
      return value == zero[0] && value - shift >= -kMaxWeight && value - shift <= kMaxWeight;
    });
    if (seven_bits && one_zero) {
      weight.q.resize(count);
      gather(binding, stored, weight.q.data(), shift);
      weight.zero = zero[0] - shift;
      return {};
    }
    weight.f32.resize(count);
    gather(binding, stored, weight.f32.data());
    const size_t columns = binding.columns();
    for (size_t i = 0; i < count; ++i) {
      const size_t row = i / columns;
      const float scale = weight.scale[weight.scale.size() == 1 ? 0 : row];
      weight.f32[i] = scale * (weight.f32[i] - static_cast<float>(zero[row]));
    }
    weight.scale.clear();
    return {};
  }

  OnnxFile onnx_;
};

}  // namespace

Result<std::unique_ptr<Checkpoint>> open_onnx_checkpoint(MappedFile file) {
  SYRINX_TRY(OnnxFile onnx, OnnxFile::parse(file.bytes(), file.path()));
  return std::make_unique<OnnxCheckpoint>(std::move(file), std::move(onnx));
}

}  // namespace syrinx::kokoro
