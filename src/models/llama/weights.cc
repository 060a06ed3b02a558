#include "models/llama/weights.h"

#include <algorithm>
#include <map>

#include "base/in_quotes.h"
#include "nn/gguf_reader.h"

namespace syrinx::llama {
namespace {

using Linear = nn::DecoderNames::Linear;

// The names that a layout gives to the tensors.
struct Names {
  std::string embedding, norm, head;
  nn::DecoderNames layers;
};

// A layer's names in a layout: its prefix, and its parts in the order of DecoderNames.
struct LayerParts {
  const char *before, *after, *query, *key, *value, *out, *gate, *up, *down, *query_norm, *key_norm;
};

nn::DecoderNames layer_names(const std::string& prefix, const LayerParts& parts, const Config& c) {
  const auto norm = [&](const char* part) { return nn::DecoderNames::Norm{prefix + part + ".weight", ""}; };
  const auto linear = [&](const char* part, bool bias = false) {
    return Linear{.weight = prefix + part + ".weight", .bias = bias ? prefix + part + ".bias" : ""};
  };
  const bool bias = c.attention_bias;
  nn::DecoderNames names{.before = norm(parts.before),
                         .after = norm(parts.after),
                         .in = {linear(parts.query, bias), linear(parts.key, bias), linear(parts.value, bias)},
                         .out = linear(parts.out, bias && c.architecture == Architecture::kLlama),
                         .gate = linear(parts.gate),
                         .up = linear(parts.up),
                         .down = linear(parts.down)};
  if (c.head_norm()) {
    names.query_norm = prefix + parts.query_norm + ".weight";
    names.key_norm = prefix + parts.key_norm + ".weight";
  }
  return names;
}

// The converter reorders Llama's queries and keys for interleaved pairs, and leaves Qwen's.
Names gguf_names(const Config& c) {
  constexpr LayerParts kParts{"attn_norm", "ffn_norm", "attn_q",   "attn_k",      "attn_v",     "attn_output",
                              "ffn_gate",  "ffn_up",   "ffn_down", "attn_q_norm", "attn_k_norm"};
  Names names{"token_embd.weight", "output_norm.weight", "output.weight", layer_names("blk.{}.", kParts, c)};
  names.layers.half_split = c.architecture != Architecture::kLlama;
  return names;
}

Names transformers_names(const Config& c) {
  constexpr LayerParts kParts{"input_layernorm",  "post_attention_layernorm", "self_attn.q_proj", "self_attn.k_proj",
                              "self_attn.v_proj", "self_attn.o_proj",         "mlp.gate_proj",    "mlp.up_proj",
                              "mlp.down_proj",    "self_attn.q_norm",         "self_attn.k_norm"};
  Names names{"model.embed_tokens.weight", "model.norm.weight", "lm_head.weight",
              layer_names("model.layers.{}.", kParts, c)};
  names.layers.half_split = true;
  return names;
}

// The largest number of a row of activations is 13 to 50 times its median as a rule, and hundreds of times in some rows
// (docs/journal.md): a scale a row would leave the others few bits.
PanelType panels_of(Precision precision) {
  switch (precision) {
    case Precision::kInt8: return PanelType::kInt8Blocks;
    case Precision::kInt4: return PanelType::kInt4Blocks;
    default: return panel_type(precision);
  }
}

Weights read(nn::WeightReader& reader, const Config& config, const Names& names, Precision precision) {
  const DType cache = precision == Precision::kF32 ? DType::kF32 : DType::kBF16;
  const PanelType panels = panels_of(precision);
  Weights w;
  static_cast<nn::DecoderWeights&>(w) = nn::DecoderWeights::load(
      reader, decoder_shape(config, cache), [&](size_t layer) { return nn::numbered(names.layers, layer); },
      {.attention = panels, .up = panels, .down = panels});
  w.config = config;
  w.precision = precision;
  for (size_t i = 0; i < config.frequency_factors.size(); ++i) w.theta[i] /= config.frequency_factors[i];
  w.embedding =
      reader.table(names.embedding + "#rows", names.embedding, config.vocabulary, config.vocabulary, config.width);
  w.norm.gamma = reader.values(names.norm, {config.width});
  const nn::WeightReader::Columns head{
      .weight = config.tied_head ? names.embedding : names.head, .bias = "", .columns = config.vocabulary};
  // The head chooses among all tokens: 8 bits in int4 too.
  const PanelType head_panels = precision == Precision::kInt4 ? PanelType::kInt8Blocks : panels;
  w.head = reader.matrix(head.weight + "#head", head_panels, {&head, 1}, config.width);
  return w;
}

// Tensors of the file that no model of the architecture has.
template <class Tensors>
Status finish(nn::WeightReader& reader, const Tensors& tensors, const std::string& name) {
  if (!reader.faults().empty())
    return fail(Code::kDataLoss, "'{}' does not hold the language model that it describes: {}; download it again", name,
                reader.faults().text());
  TensorFaults unknown;
  for (const auto& tensor : tensors)
    if (!reader.knows(std::string(tensor.name))) unknown.note(in_quotes(tensor.name));
  if (unknown.empty()) return {};
  return fail(Code::kUnsupported, "'{}' holds tensors that are not known of its architecture: {}", name,
              unknown.text());
}

}  // namespace

Result<Weights> read_weights(const GgufFile& file, const Config& config, const ReadOptions& options,
                             const std::string& name) {
  nn::GgufReader reader(file, options.store, options.release, options.team);
  Weights weights = read(reader, config, gguf_names(config), options.precision);
  reader.know("rope_freqs.weight");
  SYRINX_TRY_VOID(finish(reader, file.tensors(), name));
  if (options.store != nullptr) weights.packed = options.store->file();
  return weights;
}

Result<Weights> read_weights(std::span<const TensorRef> tensors, const Config& config, const ReadOptions& options,
                             const std::string& name) {
  std::map<std::string_view, const TensorRef*> by_name;
  for (const TensorRef& tensor : tensors) by_name.emplace(tensor.name, &tensor);
  nn::WeightReader reader({.find = [&](std::string_view text) -> const TensorRef* {
                             const auto found = by_name.find(text);
                             return found == by_name.end() ? nullptr : found->second;
                           },
                           .release = options.release,
                           .team = options.team},
                          options.store);
  const Names names = transformers_names(config);
  Config corrected = config;
  corrected.tied_head = config.tied_head || !reader.has(names.head);
  Weights weights = read(reader, corrected, names, options.precision);
  reader.know(names.head);                    // a tied one may be written down as well
  for (size_t i = 0; i < config.layers; ++i)  // of transformers before version 4.32
    reader.know(fmt::format("model.layers.{}.self_attn.rotary_emb.inv_freq", i));
  SYRINX_TRY_VOID(finish(reader, tensors, name));
  if (options.store != nullptr) weights.packed = options.store->file();
  return weights;
}

}  // namespace syrinx::llama
