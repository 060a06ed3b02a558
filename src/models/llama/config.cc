#include "models/llama/config.h"

#include <cmath>
#include <numbers>

#include "base/in_quotes.h"
#include "base/json.h"

namespace syrinx::llama {
namespace {

// Far above what two cores run (8192 wide, 80 layers, 152064 tokens), far below where a product could overflow.
constexpr size_t kMaxWidth = 32768, kMaxHidden = 1 << 18, kMaxLayers = 512, kMaxHeads = 1024, kMaxHeadSize = 1024;
constexpr size_t kMaxVocabulary = 1 << 20, kMaxContext = size_t{1} << 31;
constexpr size_t kWidthUnit = 32;  // rows of activations are whole panels, so nothing has to be padded
constexpr JsonLimits kJsonLimits{.max_bytes = size_t{1} << 20, .max_depth = 16};

struct Known {
  std::string_view name;
  Architecture architecture;
};
constexpr Known kKnown[] = {
    {"llama", Architecture::kLlama}, {"qwen2", Architecture::kQwen2}, {"qwen3", Architecture::kQwen3}};

Result<Architecture> architecture_of(std::string_view text, const std::string& name) {
  for (const Known& known : kKnown)
    if (known.name == text) return known.architecture;
  return fail(Code::kUnsupported, "'{}' is a model of the architecture {}, only {} can be run", name, in_quotes(text),
              kArchitectureNames);
}

Status check(const Config& c, const std::string& name) {
  struct Dimension {
    const char* name;
    size_t value, limit;
  };
  const Dimension dimensions[] = {{"width", c.width, kMaxWidth},
                                  {"number of layers", c.layers, kMaxLayers},
                                  {"number of heads", c.heads, kMaxHeads},
                                  {"number of key heads", c.key_heads, kMaxHeads},
                                  {"head's size", c.head_size, kMaxHeadSize},
                                  {"feed-forward width", c.hidden, kMaxHidden},
                                  {"number of tokens", c.vocabulary, kMaxVocabulary},
                                  {"context", c.context, kMaxContext}};
  for (const Dimension& d : dimensions)
    if (d.value == 0 || d.value > d.limit)
      return fail(Code::kUnsupported, "'{}': the language model's {} is {}, it must be from 1 to {}", name, d.name,
                  d.value, d.limit);
  if (c.heads % c.key_heads != 0 || c.head_size % 2 != 0 || c.width % kWidthUnit != 0 ||
      c.heads * c.head_size % kWidthUnit != 0 || c.key_heads * c.head_size % kWidthUnit != 0)
    return fail(Code::kUnsupported,
                "'{}': {} heads of {} on {} key heads in a width of {}; heads must share keys evenly, and widths be "
                "multiples of {}",
                name, c.heads, c.head_size, c.key_heads, c.width, kWidthUnit);
  if (!(c.epsilon > 0.0f && c.epsilon < 1.0f) || !(c.period > 1.0f) || !std::isfinite(c.period))
    return fail(Code::kDataLoss, "'{}': a norm's epsilon of {} and a rotary period of {} make no model", name,
                c.epsilon, c.period);
  for (const float factor : c.frequency_factors)
    if (!std::isfinite(factor) || factor <= 0.0f)
      return fail(Code::kDataLoss, "'{}' divides a rotary frequency by {}", name, factor);
  return {};
}

tl::unexpected<Error> unknown_scaling(std::string_view kind, const std::string& name) {
  return fail(Code::kUnsupported, "'{}' scales positions by {}, which is not known; known are linear and llama3", name,
              in_quotes(kind));
}

// Llama 3's scaling (transformers' modeling_rope_utils.py, _compute_llama3_parameters): wave lengths beyond
// positions / low are stretched by `factor`, those below positions / high are left, and between them it fades.
struct Llama3Scaling {
  double factor = 1, low = 1, high = 4, positions = 8192;
};
std::vector<float> frequency_factors(const Config& c, const Llama3Scaling& s) {
  std::vector<float> factors;
  for (size_t i = 0; i < c.head_size / 2; ++i) {
    const double theta = std::pow(double{c.period}, -2.0 * static_cast<double>(i) / static_cast<double>(c.head_size));
    const double length = 2 * std::numbers::pi / theta;
    if (length < s.positions / s.high) {
      factors.push_back(1.0f);
    } else if (length > s.positions / s.low) {
      factors.push_back(static_cast<float>(s.factor));
    } else {
      const double smooth = (s.positions / length - s.low) / (s.high - s.low);
      factors.push_back(static_cast<float>(1.0 / ((1.0 - smooth) / s.factor + smooth)));
    }
  }
  return factors;
}

class GgufConfig {
 public:
  GgufConfig(const GgufFile& file, const std::string& name) : file_(file), name_(name) {}

  Result<Config> read() {
    SYRINX_TRY(const auto kind, file_.text("general.architecture"));
    if (!kind) return fail(Code::kDataLoss, "'{}' does not tell its general.architecture", name_);
    SYRINX_TRY(config_.architecture, architecture_of(*kind, name_));
    prefix_ = std::string(*kind) + ".";
    SYRINX_TRY(config_.layers, needed("block_count"));
    SYRINX_TRY(config_.width, needed("embedding_length"));
    SYRINX_TRY(config_.hidden, needed("feed_forward_length"));
    SYRINX_TRY(config_.heads, needed("attention.head_count"));
    SYRINX_TRY(config_.context, needed("context_length"));
    SYRINX_TRY(config_.key_heads, whole("attention.head_count_kv", config_.heads));
    SYRINX_TRY(config_.head_size, whole("attention.key_length", config_.width / std::max<size_t>(config_.heads, 1)));
    SYRINX_TRY(const size_t value_size, whole("attention.value_length", config_.head_size));
    SYRINX_TRY(const size_t turned, whole("rope.dimension_count", config_.head_size));
    SYRINX_TRY(const size_t experts, whole("expert_count", 0));
    SYRINX_TRY(const size_t window, whole("attention.sliding_window", 0));
    if (value_size != config_.head_size || turned != config_.head_size || experts != 0 || window != 0)
      return fail(
          Code::kUnsupported,
          "'{}' has heads of {}, {} and {} numbers, {} experts and a window of {}; heads of one size, no experts "
          "and no window can be run",
          name_, config_.head_size, value_size, turned, experts, window);
    SYRINX_TRY(config_.epsilon, number("attention.layer_norm_rms_epsilon", 0.0f));  // which is refused
    SYRINX_TRY(config_.period, number("rope.freq_base", 10000.0f));
    SYRINX_TRY_VOID(read_tensors());
    SYRINX_TRY_VOID(check(config_, name_));
    SYRINX_TRY_VOID(read_scaling());
    return std::move(config_);
  }

 private:
  Result<size_t> whole(const std::string& key, size_t otherwise) const {
    SYRINX_TRY(const auto value, file_.whole(prefix_ + key));
    return static_cast<size_t>(value.value_or(otherwise));
  }
  Result<size_t> needed(const std::string& key) const {
    SYRINX_TRY(const auto value, file_.whole(prefix_ + key));
    if (!value) return fail(Code::kDataLoss, "'{}' does not tell its {}{}", name_, prefix_, key);
    return static_cast<size_t>(*value);
  }
  Result<float> number(const std::string& key, float otherwise) const {
    SYRINX_TRY(const auto value, file_.number(prefix_ + key));
    return value ? static_cast<float>(*value) : otherwise;
  }

  // The entry of the number of tokens is missing in older files.
  Status read_tensors() {
    const GgufTensor* const embedding = file_.find("token_embd.weight");
    if (embedding == nullptr || embedding->dims.size() != 2)
      return fail(Code::kDataLoss, "'{}' holds no language model: the tensor token_embd.weight is missing", name_);
    config_.vocabulary = embedding->dims.front();
    config_.tied_head = file_.find("output.weight") == nullptr;
    config_.attention_bias = file_.find("blk.0.attn_q.bias") != nullptr;
    return {};
  }

  // As llama.cpp does: linear unless another type is told, the factor by an older name too, 0 for none.  Llama 3's
  // factors are a tensor.
  Status read_scaling() {
    SYRINX_TRY(const auto kind, file_.text(prefix_ + "rope.scaling.type"));
    if (kind && *kind != "none" && *kind != "linear") return unknown_scaling(*kind, name_);
    SYRINX_TRY(const float older, number("rope.scale_linear", 0.0f));
    SYRINX_TRY(const float factor, number("rope.scaling.factor", older));
    const size_t pairs = config_.head_size / 2;
    const bool scales = kind.value_or("linear") == "linear" && factor != 0.0f && factor != 1.0f;
    if (scales) config_.frequency_factors.assign(pairs, factor);
    if (const GgufTensor* const factors = file_.find("rope_freqs.weight")) {
      if (factors->dims != std::vector<size_t>{pairs} || factors->type != GgmlType::kF32)
        return fail(Code::kDataLoss, "'{}': rope_freqs.weight has the shape {}, not [{}] of F32", name_,
                    dims_text(factors->dims), pairs);
      std::vector<float> own = to_f32(factors->bytes, DType::kF32);
      for (float& value : own) value *= scales ? factor : 1.0f;
      config_.frequency_factors = std::move(own);
    }
    return check(config_, name_);
  }

  const GgufFile& file_;
  const std::string& name_;
  std::string prefix_;
  Config config_;
};

class JsonConfig {
 public:
  JsonConfig(const Json& root, const std::string& name) : root_(root), name_(name) {}

  Result<Config> read() {
    const Json* const kind = root_.find("model_type");
    if (kind == nullptr || kind->string() == nullptr)
      return fail(Code::kDataLoss, "'{}' does not tell its model_type", name_);
    SYRINX_TRY(config_.architecture, architecture_of(*kind->string(), name_));
    SYRINX_TRY(config_.layers, needed("num_hidden_layers"));
    SYRINX_TRY(config_.width, needed("hidden_size"));
    SYRINX_TRY(config_.hidden, needed("intermediate_size"));
    SYRINX_TRY(config_.heads, needed("num_attention_heads"));
    SYRINX_TRY(config_.vocabulary, needed("vocab_size"));
    SYRINX_TRY(config_.context, needed("max_position_embeddings"));
    SYRINX_TRY(config_.key_heads, whole("num_key_value_heads", config_.heads));
    SYRINX_TRY(config_.head_size, whole("head_dim", config_.width / std::max<size_t>(config_.heads, 1)));
    SYRINX_TRY(config_.epsilon, number(root_, "rms_norm_eps", 1e-6f));
    SYRINX_TRY(config_.period, number(root_, "rope_theta", 10000.0f));
    SYRINX_TRY(config_.tied_head, flag("tie_word_embeddings"));
    SYRINX_TRY(config_.attention_bias, flag("attention_bias"));
    config_.attention_bias |= config_.architecture == Architecture::kQwen2;
    SYRINX_TRY(const bool window, flag("use_sliding_window"));
    SYRINX_TRY(const bool mlp_bias, flag("mlp_bias"));
    if (window || mlp_bias)
      return fail(Code::kUnsupported, "'{}' asks for {}, which no model that is run here has", name_,
                  window ? "use_sliding_window" : "mlp_bias");
    const Json* const act = root_.find("hidden_act");
    if (act != nullptr && (act->string() == nullptr || *act->string() != "silu"))
      return fail(Code::kUnsupported, "'{}' asks for another hidden_act than silu", name_);
    // Since its version 5 transformers writes rope_parameters, which hold the period too.
    for (const char* const key : {"rope_scaling", "rope_parameters"})
      if (const Json* const scaling = root_.find(key); scaling != nullptr && !scaling->is_null())
        SYRINX_TRY_VOID(read_scaling(*scaling, key));
    SYRINX_TRY_VOID(check(config_, name_));
    return std::move(config_);
  }

 private:
  tl::unexpected<Error> wrong(std::string_view key, const char* kind) const {
    return fail(Code::kDataLoss, "'{}': {} is not {}", name_, key, kind);
  }
  Result<size_t> whole(const char* key, size_t otherwise) const {
    const Json* const value = root_.find(key);
    if (value == nullptr || value->is_null()) return otherwise;
    if (value->whole() == nullptr || *value->whole() < 0) return wrong(key, "a whole number");
    return static_cast<size_t>(*value->whole());
  }
  Result<size_t> needed(const char* key) const {
    if (root_.find(key) == nullptr) return fail(Code::kDataLoss, "'{}' does not tell its {}", name_, key);
    return whole(key, 0);
  }
  Result<float> number(const Json& from, const char* key, float otherwise) const {
    const Json* const value = from.find(key);
    if (value == nullptr || value->is_null()) return otherwise;
    if (value->whole() != nullptr) return static_cast<float>(*value->whole());
    if (value->real() != nullptr) return static_cast<float>(*value->real());
    return wrong(key, "a number");
  }
  Result<bool> flag(const char* key) const {
    const Json* const value = root_.find(key);
    if (value == nullptr || value->is_null()) return false;
    if (value->boolean() == nullptr) return wrong(key, "true or false");
    return *value->boolean();
  }

  Status read_scaling(const Json& scaling, const char* key) {
    if (scaling.object() == nullptr) return wrong(key, "an object");
    SYRINX_TRY(config_.period, number(scaling, "rope_theta", config_.period));
    const Json* kind = scaling.find("rope_type");
    if (kind == nullptr) kind = scaling.find("type");
    if (kind == nullptr) return {};
    if (kind->string() == nullptr) return wrong(key, "of a known rope_type");
    if (*kind->string() == "default") return {};
    Llama3Scaling s;
    SYRINX_TRY(s.factor, number(scaling, "factor", 1.0f));
    SYRINX_TRY_VOID(check(config_, name_));
    if (*kind->string() == "linear") {
      config_.frequency_factors.assign(config_.head_size / 2, static_cast<float>(s.factor));
      return {};
    }
    if (*kind->string() != "llama3") return unknown_scaling(*kind->string(), name_);
    SYRINX_TRY(s.low, number(scaling, "low_freq_factor", 1.0f));
    SYRINX_TRY(s.high, number(scaling, "high_freq_factor", 4.0f));
    SYRINX_TRY(s.positions, number(scaling, "original_max_position_embeddings", 8192.0f));
    if (!(s.high > s.low && s.low > 0 && s.positions > 0))
      return fail(Code::kDataLoss, "'{}': the numbers of its {} contradict each other", name_, key);
    config_.frequency_factors = frequency_factors(config_, s);
    return {};
  }

  const Json& root_;
  const std::string& name_;
  Config config_;
};

}  // namespace

Result<Config> read_config(const GgufFile& file, const std::string& name) { return GgufConfig(file, name).read(); }

Result<Config> read_config(std::string_view json, const std::string& name) {
  SYRINX_TRY(const Json root, parse_json(json, name, kJsonLimits));
  if (root.object() == nullptr) return fail(Code::kDataLoss, "'{}' is not a JSON object", name);
  return JsonConfig(root, name).read();
}

nn::DecoderConfig decoder_shape(const Config& c, DType cache) {
  return {.width = c.width,
          .layers = c.layers,
          .heads = c.heads,
          .key_heads = c.key_heads,
          .head_size = c.head_size,
          .hidden = c.hidden,
          .norm = nn::Norm::kRms,
          .epsilon = c.epsilon,
          .rotary = nn::Rotary::kInterleaved,
          .period = c.period,
          .mlp = nn::Mlp::kSwiGlu,
          .head_norm = c.head_norm(),
          .cache = cache};
}

}  // namespace syrinx::llama
