#include "models/pocket_tts/flow_lm_weights.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "base/in_quotes.h"
#include "nn/weight_reader.h"

namespace syrinx::pocket {
namespace {

constexpr std::string_view kPrefix = "flow_lm.";
// Far above what is published (1024 wide, 24 layers, 4000 tokens), far below where a product could overflow.
constexpr size_t kMaxWidth = 16384, kMaxLayers = 256, kMaxBins = 1 << 20;

// Names without the prefix.  Matrices are kept under the name of their first part.
class Reader : public nn::WeightReader {
 public:
  Reader(const Safetensors& file, Precision precision, kernels::MatrixStore* store, const MappedFile* pages,
         ThreadTeam* team)
      : WeightReader({.find = [&file](std::string_view name) { return file.find(name); },
                      .release =
                          [pages] {
                            if (pages != nullptr) pages->release();
                          },
                      .team = team},
                     store),
        file_(file),
        narrow_(panel_type(precision)) {}

  std::vector<float> values(const std::string& name, const std::vector<size_t>& dims) {
    return WeightReader::values(full(name), dims);
  }
  NormWeights norm(const std::string& name, size_t width) {
    return WeightReader::norm(full(name) + ".weight", full(name) + ".bias", width);
  }
  // A matrix that every precision keeps in f32.
  kernels::OwnedMatrix exact(const std::string& name, size_t channels, size_t columns, bool bias = false) {
    return one(PanelType::kF32, name, channels, columns, bias);
  }
  // A matrix that the precision narrows.
  kernels::OwnedMatrix narrow(const std::string& name, size_t channels, size_t columns, bool bias = false) {
    return one(narrow_, name, channels, columns, bias);
  }
  // NAME.weight and NAME.bias, as a part of a matrix.
  static Columns part(const std::string& name, size_t columns, bool bias) {
    return {.weight = full(name) + ".weight", .bias = bias ? full(name) + ".bias" : "", .columns = columns};
  }
  // The columns of several matrices side by side.
  kernels::OwnedMatrix narrow(const std::string& key, std::span<const Columns> parts, size_t channels) {
    return matrix(full(key), narrow_, parts, channels);
  }
  // One whose tensor has a name without ".weight", and which only a voice needs.
  kernels::OwnedMatrix voice_projection(const std::string& name, size_t channels, size_t columns) {
    const Columns part{.weight = full(name), .bias = "", .columns = columns};
    return matrix(full(name), PanelType::kF32, {&part, 1}, channels, kernels::Place::kFile);
  }
  RowTable table(const std::string& name, size_t rows, size_t stored_rows, size_t width) {
    return WeightReader::table(full(name), full(name), rows, stored_rows, width);
  }

  Status finish(const std::string& name) {
    for (const TensorRef& tensor : file_.tensors())
      if (tensor.name.starts_with(kPrefix) && !knows(tensor.name))
        faults().note(shortened(tensor.name, 120) + " is not known");
    if (faults().empty()) return {};
    return fail(Code::kDataLoss,
                "'{}' does not hold the language model that its configuration describes: {}; the two must come from "
                "one download",
                name, faults().text());
  }

 private:
  static std::string full(const std::string& name) { return std::string(kPrefix) + name; }
  kernels::OwnedMatrix one(PanelType type, const std::string& name, size_t channels, size_t columns, bool bias) {
    const Columns only = part(name, columns, bias);
    return matrix(full(name), type, {&only, 1}, channels);
  }

  const Safetensors& file_;
  const PanelType narrow_;
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

nn::DecoderConfig shape_of(const TransformerConfig& t, Precision precision) {
  return {.width = t.width,
          .layers = t.layers,
          .heads = t.heads,
          .key_heads = t.key_heads,
          .head_size = t.head_size(),
          .hidden = t.hidden,
          .period = t.max_period,
          .mlp = t.gelu_erf ? nn::Mlp::kGelu : nn::Mlp::kGeluTanh,
          .cache = precision == Precision::kF32 ? DType::kF32 : DType::kBF16};
}

nn::DecoderNames layer_names() {
  const std::string name = std::string(kPrefix) + "transformer.layers.{}.";
  const auto norm = [&](const char* part) {
    return nn::DecoderNames::Norm{name + part + ".weight", name + part + ".bias"};
  };
  const auto linear = [&](const char* part) {
    return nn::DecoderNames::Linear{.weight = name + part + ".weight", .bias = "", .key = name + part};
  };
  return {.before = norm("norm1"),
          .after = norm("norm2"),
          .in = {linear("self_attn.in_proj")},
          .out = linear("self_attn.out_proj"),
          .gate = {},
          .up = linear("linear1"),
          .down = linear("linear2")};
}

TimeEmbedding read_time(Reader& reader, size_t width, size_t index) {
  const std::string name = fmt::format("flow_net.time_embed.{}.", index);
  TimeEmbedding time;
  time.freqs = reader.values(name + "freqs", {kTimeFrequencies});
  time.weight0 = reader.table(name + "mlp.0.weight", width, width, 2 * kTimeFrequencies);
  time.bias0 = reader.values(name + "mlp.0.bias", {width});
  time.weight2 = reader.table(name + "mlp.2.weight", width, width, width);
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

FlowHeadWeights read_head(Reader& reader, const FlowLmConfig& c, size_t latent) {
  const size_t width = c.head_width;
  const std::string name = "flow_net.";
  FlowHeadWeights head;
  for (size_t i = 0; i < time_embeddings(c.head); ++i) head.times.push_back(read_time(reader, width, i));
  head.condition = reader.narrow(name + "cond_embed", c.condition, width, true);
  head.input = reader.exact(name + "input_proj", latent, width, true);
  // None of the modulations depends on what the blocks compute, so all of them are one product.
  std::vector<Reader::Columns> modulations;
  for (size_t i = 0; i < c.head_depth; ++i) {
    const std::string block = fmt::format("{}res_blocks.{}", name, i);
    head.blocks.push_back({.norm = reader.norm(block + ".in_ln", width),
                           .linear0 = reader.narrow(block + ".mlp.0", width, width, true),
                           .linear2 = reader.narrow(block + ".mlp.2", width, width, true)});
    modulations.push_back(Reader::part(block + ".adaLN_modulation.1", 3 * width, true));
  }
  modulations.push_back(Reader::part(name + "final_layer.adaLN_modulation.1", 2 * width, true));
  // Kept under the name of the first.
  head.modulation = reader.narrow(name + "res_blocks.0.adaLN_modulation.1", modulations, width);
  head.output = reader.exact(name + "final_layer.linear", width, latent, true);
  return head;
}

}  // namespace

void FlowLmWeights::release_file() const {
  if (packed != nullptr) packed->release();
}

Result<FlowLmWeights> read_flow_lm(const Safetensors& file, const FlowLmConfig& config, size_t latent,
                                   size_t voice_width, const std::string& name, Precision precision,
                                   kernels::MatrixStore* store, const MappedFile* pages, ThreadTeam* team) {
  SYRINX_TRY_VOID(check(config, latent, voice_width, name));
  const TransformerConfig& t = config.transformer;
  Reader reader(file, precision, store, pages, team);
  FlowLmWeights w;
  w.config = config;
  w.precision = precision;
  w.latent = latent;
  w.voice_width = voice_width;
  w.bos = reader.values("bos_emb", {latent});
  w.latent_std = reader.values("emb_std", {latent});
  w.latent_mean = reader.values("emb_mean", {latent});
  if (config.bos_before_voice) w.bos_before_voice = reader.values("bos_before_voice", {1, 1, t.width});
  w.voice_proj = reader.voice_projection("speaker_proj_weight", voice_width, t.width);
  // The last row is the padding of the maker's batches.
  w.text_table = reader.table("conditioner.embed.weight", config.text_bins, config.text_bins + 1, w.text_width());
  if (config.text_rank > 0) w.text_proj = reader.exact("conditioner.proj", config.text_rank, t.width);
  w.input = reader.exact("input_linear", latent, t.width);
  static_cast<nn::DecoderWeights&>(w) =
      nn::DecoderWeights::load(reader, shape_of(t, precision), layer_names(), precision);
  w.out_norm = reader.norm("out_norm", t.width);
  if (config.project_condition) w.z_proj = reader.exact("z_proj", t.width, config.condition);
  w.eos = reader.exact("out_eos", config.condition, 1, true);
  w.head = read_head(reader, config, latent);
  SYRINX_TRY_VOID(reader.finish(name));
  if (store != nullptr) w.packed = store->file();
  return w;
}

}  // namespace syrinx::pocket
