#include "models/pocket_tts/flow_lm_weights.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>

#include "kernels/rotary.h"

namespace syrinx::pocket {
namespace {

constexpr std::string_view kPrefix = "flow_lm.";
// Far above what is published (1024 wide, 24 layers, 4000 tokens), far below where a product could overflow.
constexpr size_t kMaxWidth = 16384, kMaxLayers = 256, kMaxBins = 1 << 20;
// How many tensors a message names.
constexpr size_t kMaxNamed = 6;

// Reads tensors by name and gathers what is wrong with them, so that one message can tell it all.
class Reader {
 public:
  explicit Reader(const Safetensors& file) : file_(file) {}

  // The values of a tensor of exactly this shape; empty, and noted, if there is no such one.
  std::vector<float> values(const std::string& name, const std::vector<size_t>& dims) {
    const std::string full = std::string(kPrefix) + name;
    read_.insert(full);
    const TensorRef* const tensor = file_.find(full);
    if (tensor == nullptr) return note(full + " is missing");
    if (tensor->dtype != DType::kBF16 && tensor->dtype != DType::kF16 && tensor->dtype != DType::kF32)
      return note(fmt::format("{} has the type {}, not bf16, f16 or f32", full, dtype_name(tensor->dtype)));
    if (tensor->dims != dims)
      return note(fmt::format("{} has the shape {}, not {}", full, dims_text(tensor->dims), dims_text(dims)));
    std::vector<float> read = to_f32(tensor->bytes, tensor->dtype);
    if (!std::all_of(read.begin(), read.end(), [](float v) { return std::isfinite(v); }))
      return note(full + " holds values that are not finite");
    return read;
  }
  NormWeights norm(const std::string& name, size_t width) {
    return {values(name + ".weight", {width}), values(name + ".bias", {width})};
  }
  kernels::OwnedMatrix matrix(const std::string& name, size_t channels, size_t columns, bool bias = false) {
    const std::vector<float> b = bias ? values(name + ".bias", {columns}) : std::vector<float>();
    return pack(values(name + ".weight", {columns, channels}), channels, columns, b);
  }
  // A matrix from rows that are already read.  Nothing is packed once something is wrong.
  kernels::OwnedMatrix pack(const std::vector<float>& rows, size_t channels, size_t columns,
                            const std::vector<float>& bias) const {
    if (!faults_.empty()) return {};
    return kernels::pack_f32(
        {.columns = columns, .channels = channels}, [&](size_t n, size_t k, size_t) { return rows[n * channels + k]; },
        bias);
  }

  Status finish(const std::string& name) {
    for (const TensorRef& tensor : file_.tensors())
      if (tensor.name.starts_with(kPrefix) && !read_.contains(tensor.name)) note(tensor.name + " is not known");
    if (faults_.empty()) return {};
    std::string list;
    for (size_t i = 0; i < std::min(faults_.size(), kMaxNamed); ++i) list += (i > 0 ? "; " : "") + faults_[i];
    if (faults_.size() > kMaxNamed) list += fmt::format("; and {} more", faults_.size() - kMaxNamed);
    return fail(Code::kDataLoss,
                "'{}' does not hold the language model that its configuration describes: {}; the two must come from "
                "one download",
                name, list);
  }

 private:
  std::vector<float> note(std::string fault) {
    faults_.push_back(std::move(fault));
    return {};
  }

  const Safetensors& file_;
  std::set<std::string, std::less<>> read_;
  std::vector<std::string> faults_;
};

Status check(const FlowLmConfig& c, size_t latent, size_t voice_width, const std::string& name) {
  const TransformerConfig& t = c.transformer;
  struct Dimension {
    const char* name;
    size_t value, limit;
  };
  const Dimension dimensions[] = {{"width", t.width, kMaxWidth},
                                  {"number of layers", t.layers, kMaxLayers},
                                  {"number of heads", t.heads, kMaxWidth},
                                  {"number of key heads", t.key_heads, kMaxWidth},
                                  {"attention width", t.attention_width, kMaxWidth},
                                  {"feed-forward width", t.hidden, kMaxWidth},
                                  {"head's depth", c.head_depth, kMaxLayers},
                                  {"head's width", c.head_width, kMaxWidth},
                                  {"width that the heads read", c.condition, kMaxWidth},
                                  {"number of tokens", c.text_bins, kMaxBins},
                                  {"latent's width", latent, kMaxWidth},
                                  {"voice's width", voice_width, kMaxWidth}};
  for (const Dimension& d : dimensions) {
    if (d.value == 0 || d.value > d.limit)
      return fail(Code::kInvalidArgument, "'{}': the language model's {} is {}, it must be from 1 to {}", name, d.name,
                  d.value, d.limit);
  }
  if (t.heads % t.key_heads != 0 || t.attention_width % (2 * t.heads) != 0)
    return fail(Code::kInvalidArgument,
                "'{}': {} heads on {} key heads in a width of {}; heads must share keys evenly and have an even size",
                name, t.heads, t.key_heads, t.attention_width);
  if (c.text_rank > kMaxWidth || !(t.max_period > 1.0f))
    return fail(Code::kInvalidArgument, "'{}': a text table of rank {} and a rotary period of {} make no model", name,
                c.text_rank, t.max_period);
  if (!c.project_condition && c.condition != t.width)
    return fail(Code::kInvalidArgument, "'{}': the heads read {} numbers of {} without a projection", name, c.condition,
                t.width);
  return {};
}

FlowLmLayer read_layer(Reader& reader, const TransformerConfig& t, size_t index) {
  const std::string name = fmt::format("transformer.layers.{}.", index);
  FlowLmLayer layer;
  layer.norm1 = reader.norm(name + "norm1", t.width);
  layer.norm2 = reader.norm(name + "norm2", t.width);
  layer.in_proj = reader.matrix(name + "self_attn.in_proj", t.width, t.attention_width + 2 * t.key_width());
  layer.out_proj = reader.matrix(name + "self_attn.out_proj", t.attention_width, t.width);
  layer.linear1 = reader.matrix(name + "linear1", t.width, t.hidden);
  layer.linear2 = reader.matrix(name + "linear2", t.hidden, t.width);
  return layer;
}

TimeEmbedding read_time(Reader& reader, size_t width, size_t index) {
  const std::string name = fmt::format("flow_net.time_embed.{}.", index);
  TimeEmbedding time;
  time.freqs = reader.values(name + "freqs", {kTimeFrequencies});
  time.weight0 = reader.values(name + "mlp.0.weight", {width, 2 * kTimeFrequencies});
  time.bias0 = reader.values(name + "mlp.0.bias", {width});
  time.weight2 = reader.values(name + "mlp.2.weight", {width, width});
  time.bias2 = reader.values(name + "mlp.2.bias", {width});
  time.alpha = reader.values(name + "mlp.3.alpha", {width});
  return time;
}

size_t time_embeddings(HeadType type) {
  switch (type) {
    case HeadType::kLsd: return 2;
    case HeadType::kFlowMatching: return 1;
    case HeadType::kDrifting:
    case HeadType::kPointwise: break;
  }
  return 0;
}

void append(std::vector<float>& to, const std::vector<float>& from) { to.insert(to.end(), from.begin(), from.end()); }

FlowHeadWeights read_head(Reader& reader, const FlowLmConfig& c, size_t latent) {
  const size_t width = c.head_width;
  const std::string name = "flow_net.";
  FlowHeadWeights head;
  for (size_t i = 0; i < time_embeddings(c.head); ++i) head.times.push_back(read_time(reader, width, i));
  head.condition = reader.matrix(name + "cond_embed", c.condition, width, true);
  head.input = reader.matrix(name + "input_proj", latent, width, true);
  // None of the modulations depends on what the blocks compute, so all of them are one product.
  std::vector<float> rows, bias;
  const auto modulation = [&](const std::string& of, size_t columns) {
    append(rows, reader.values(of + ".adaLN_modulation.1.weight", {columns, width}));
    append(bias, reader.values(of + ".adaLN_modulation.1.bias", {columns}));
  };
  for (size_t i = 0; i < c.head_depth; ++i) {
    const std::string block = fmt::format("{}res_blocks.{}", name, i);
    head.blocks.push_back({.norm = reader.norm(block + ".in_ln", width),
                           .linear0 = reader.matrix(block + ".mlp.0", width, width, true),
                           .linear2 = reader.matrix(block + ".mlp.2", width, width, true)});
    modulation(block, 3 * width);
  }
  modulation(name + "final_layer", 2 * width);
  head.modulation = reader.pack(rows, width, (3 * c.head_depth + 2) * width, bias);
  head.output = reader.matrix(name + "final_layer.linear", width, latent, true);
  return head;
}

}  // namespace

Result<FlowLmWeights> read_flow_lm(const Safetensors& file, const FlowLmConfig& config, size_t latent,
                                   size_t voice_width, const std::string& name) {
  SYRINX_TRY_VOID(check(config, latent, voice_width, name));
  const TransformerConfig& t = config.transformer;
  Reader reader(file);
  FlowLmWeights w;
  w.config = config;
  w.latent = latent;
  w.voice_width = voice_width;
  w.bos = reader.values("bos_emb", {latent});
  w.latent_std = reader.values("emb_std", {latent});
  w.latent_mean = reader.values("emb_mean", {latent});
  if (config.bos_before_voice) w.bos_before_voice = reader.values("bos_before_voice", {1, 1, t.width});
  w.voice_proj = reader.pack(reader.values("speaker_proj_weight", {t.width, voice_width}), voice_width, t.width, {});
  // The last row is the padding of the maker's batches.
  w.text_table = reader.values("conditioner.embed.weight", {config.text_bins + 1, w.text_width()});
  w.text_table.resize(std::min(w.text_table.size(), config.text_bins * w.text_width()));
  if (config.text_rank > 0) w.text_proj = reader.matrix("conditioner.proj", config.text_rank, t.width);
  w.input = reader.matrix("input_linear", latent, t.width);
  for (size_t i = 0; i < t.layers; ++i) w.layers.push_back(read_layer(reader, t, i));
  w.out_norm = reader.norm("out_norm", t.width);
  if (config.project_condition) w.z_proj = reader.matrix("z_proj", t.width, config.condition);
  w.eos = reader.matrix("out_eos", config.condition, 1, true);
  w.head = read_head(reader, config, latent);
  SYRINX_TRY_VOID(reader.finish(name));
  w.theta.resize(t.head_size() / 2);
  kernels::rotary_frequencies(t.max_period, w.theta);
  return w;
}

}  // namespace syrinx::pocket
