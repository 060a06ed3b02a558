#include "models/pocket_tts/config_file.h"

#include <array>
#include <cmath>
#include <utility>

#include "base/in_quotes.h"
#include "base/yaml.h"
#include "base/yaml_section.h"
#include "text/unicode.h"

namespace syrinx::pocket {
namespace {

using mimi::kMaxLayers, mimi::kMaxRatio, mimi::kMaxRatios, mimi::kMaxResidualLayers, mimi::kMaxWidth, mimi::kMaxWindow;

// As those, several times what any published checkpoint has.
constexpr size_t kMaxHeads = 1024, kMaxBins = 1000000, kMaxKernel = 64, kMaxHop = mimi::kMaxFrameSamples;
constexpr double kMinPeriod = 2, kMaxPeriod = 1e9;  // of the slowest rotation, in positions
constexpr size_t kMaxReplacement = 64;              // characters that one character may become
constexpr size_t kMaxFileBytes = size_t{64}
                                 << 10;  // the largest published has 4 kB; libyaml is quadratic in %TAG lines

// Checks a key of which only one value is supported.
void require_word(Section& section, std::string_view key, std::string_view wanted) {
  const std::string word = section.word(key);
  section.require(word == wanted, Code::kUnsupported, key,
                  fmt::format("is {}; only '{}' is supported", in_quotes(word), wanted));
}
void require_mono(Section& section) {
  section.require(section.whole("channels", 1, 64) == 1, Code::kUnsupported, "channels",
                  "is not 1; speech is mono here");
}

// heads, width and attention_width are known; names the key that fits the fault best.
void require_heads(Section& section, const TransformerConfig& config) {
  section.require(config.attention_width % config.heads == 0 && config.head_size() % 2 == 0, Code::kDataLoss,
                  "num_heads",
                  fmt::format("is {}, which does not cut {} numbers into heads of an even size", config.heads,
                              config.attention_width));
  section.require(config.heads % config.key_heads == 0, Code::kDataLoss, "num_kv_heads",
                  fmt::format("is {}, which does not divide the {} query heads", config.key_heads, config.heads));
}

TransformerConfig read_language_transformer(Section section) {
  TransformerConfig out;
  out.width = section.whole("d_model", 1, kMaxWidth);
  out.layers = section.whole("num_layers", 1, kMaxLayers);
  out.heads = section.whole("num_heads", 1, kMaxHeads);
  out.key_heads = section.whole_or("num_kv_heads", out.heads, 1, kMaxHeads);
  out.attention_width = section.whole_or("attn_dim", out.width, 1, kMaxWidth);
  out.hidden = section.whole_or("dim_feedforward", out.width * section.whole("hidden_scale", 1, 64), 1, kMaxWidth);
  section.require(out.hidden <= kMaxWidth, Code::kLimitExceeded, "hidden_scale",
                  fmt::format("makes the layers {} wide inside; at most {} is read", out.hidden, kMaxWidth));
  out.max_period = static_cast<float>(section.real("max_period", kMinPeriod, kMaxPeriod));
  require_heads(section, out);
  section.finish();
  return out;
}

HeadType read_head_type(Section& flow) {
  constexpr std::array<std::pair<std::string_view, HeadType>, 4> kTypes = {{{"lsd", HeadType::kLsd},
                                                                            {"flow_matching", HeadType::kFlowMatching},
                                                                            {"drifting", HeadType::kDrifting},
                                                                            {"pointwise", HeadType::kPointwise}}};
  const std::string word = flow.word_or("type", "lsd");
  for (const auto& [name, type] : kTypes)
    if (name == word) return type;
  flow.require(false, Code::kUnsupported, "type",
               fmt::format("is {}; lsd, flow_matching, drifting and pointwise are supported", in_quotes(word)));
  return HeadType::kLsd;
}

// Whether a path ends in .json: a name of the hub without its revision, an address without its query and fragment.
bool names_json(std::string_view path) {
  if (path.starts_with("hf://")) path = path.substr(0, path.rfind('@'));
  if (path.starts_with("http://") || path.starts_with("https://")) path = path.substr(0, path.find_first_of("?#"));
  return path.ends_with(".json");
}

void read_lookup_table(Section table, FlowLmConfig& out) {
  const size_t width = table.whole("dim", 1, kMaxWidth);
  table.require(width == out.transformer.width, Code::kDataLoss, "dim",
                fmt::format("is {}, but the transformer is {} wide", width, out.transformer.width));
  out.text_bins = table.whole("n_bins", 1, kMaxBins);
  out.text_rank = table.whole_or("rank", 0, 1, kMaxWidth);
  const std::string kind = table.word("tokenizer");
  table.require(kind == "tokenizers" || kind == "json" || kind == "sentencepiece", Code::kUnsupported, "tokenizer",
                fmt::format("is {}; tokenizers, json and sentencepiece are supported", in_quotes(kind)));
  out.tokenizer_path = table.word("tokenizer_path");
  const bool sentencepiece = kind == "sentencepiece" && !names_json(out.tokenizer_path);
  out.tokenizer = sentencepiece ? TokenizerKind::kSentencePiece : TokenizerKind::kJson;
  table.finish();
}

FlowLmConfig read_flow_lm(Section section, std::string& weights_path) {
  FlowLmConfig out;
  weights_path = section.word_or("weights_path", "");
  require_word(section, "dtype", "float32");
  out.transformer = read_language_transformer(section.section("transformer"));
  Section flow = section.section("flow");
  out.head = read_head_type(flow);
  out.head_depth = flow.whole("depth", 1, kMaxLayers);
  out.head_width = flow.whole("dim", 1, kMaxWidth);
  flow.finish();
  out.project_condition = section.has("z_dim");
  out.condition = section.whole_or("z_dim", out.transformer.width, 1, kMaxWidth);
  read_lookup_table(section.section("lookup_table"), out);
  out.bos_before_voice = section.flag_or("insert_bos_before_voice", false);
  section.finish();
  return out;
}

SeanetConfig read_seanet(Section section) {
  SeanetConfig out;
  require_mono(section);
  require_word(section, "pad_mode", "constant");
  out.width = section.whole("dimension", 1, kMaxWidth);
  out.filters = section.whole("n_filters", 1, kMaxWidth);
  out.kernel = section.whole("kernel_size", 1, kMaxKernel);
  out.last_kernel = section.whole("last_kernel_size", 1, kMaxKernel);
  out.residual_kernel = section.whole("residual_kernel_size", 1, kMaxKernel);
  out.compress = section.whole("compress", 1, kMaxWidth);
  out.residual_layers = section.whole("n_residual_layers", 1, kMaxResidualLayers);
  out.dilation_base = section.whole("dilation_base", 1, 8);
  out.ratios = section.wholes("ratios", kMaxRatios, 1, kMaxRatio);
  section.require(out.filters <= kMaxWidth >> out.ratios.size(), Code::kLimitExceeded, "n_filters",
                  fmt::format("doubles with each of {} ratios to more than {}", out.ratios.size(), kMaxWidth));
  section.require(out.compress <= out.filters, Code::kDataLoss, "compress",
                  fmt::format("is {}, which leaves nothing of {} filters", out.compress, out.filters));
  section.require(out.hop() <= kMaxHop, Code::kLimitExceeded, "ratios",
                  fmt::format("make a position {} samples long; at most {} are read", out.hop(), kMaxHop));
  section.finish();
  return out;
}

// `width` is that of the SEANet beside it; a projection between the two exists in no published checkpoint.
TransformerConfig read_codec_transformer(Section section, size_t width) {
  TransformerConfig out;
  out.width = section.whole("d_model", 1, kMaxWidth);
  out.layers = section.whole("num_layers", 1, kMaxLayers);
  out.heads = section.whole("num_heads", 1, kMaxHeads);
  out.key_heads = out.heads;
  out.attention_width = out.width;
  out.hidden = section.whole("dim_feedforward", 1, kMaxWidth);
  out.max_period = static_cast<float>(section.real_or("max_period", 10000.0, kMinPeriod, kMaxPeriod));
  out.window = section.whole("context", 1, kMaxWindow);
  section.real("layer_scale", -1e9, 1e9);  // what training started from; the weights are in the checkpoint
  out.layer_scale = true;
  require_heads(section, out);
  const std::string differs = fmt::format("differs from the SEANet's dimension {}, which is not supported", width);
  section.require(out.width == width, Code::kUnsupported, "d_model", differs);
  section.require(section.whole("input_dimension", 1, kMaxWidth) == width, Code::kUnsupported, "input_dimension",
                  differs);
  section.require(section.wholes("output_dimensions", 8, 1, kMaxWidth) == std::vector<size_t>{width},
                  Code::kUnsupported, "output_dimensions", differs);
  section.finish();
  return out;
}

// A frame is a whole number of samples and of positions, on both sides the same.
void require_rates(Section& section, const MimiConfig& mimi) {
  const double samples = static_cast<double>(mimi.sample_rate) / mimi.frame_rate;
  section.require(samples == std::floor(samples), Code::kDataLoss, "frame_rate",
                  fmt::format("is {}, which does not cut {} samples a second into whole frames", mimi.frame_rate,
                              mimi.sample_rate));
  section.require(
      mimi.encoder.hop() == mimi.decoder.hop(), Code::kUnsupported, "decoder_seanet",
      fmt::format("makes {} samples a position, but the encoder takes {}", mimi.decoder.hop(), mimi.encoder.hop()));
  section.require(mimi.frame_samples() % mimi.decoder.hop() == 0 && mimi.resample_stride() > 1, Code::kUnsupported,
                  "frame_rate",
                  fmt::format("makes frames of {} samples, which are not two or more positions of {}",
                              mimi.frame_samples(), mimi.decoder.hop()));
}

MimiConfig read_mimi(Section section, std::string& weights_path) {
  MimiConfig out;
  weights_path = section.word_or("weights_path", "");
  require_word(section, "dtype", "float32");
  require_mono(section);
  out.sample_rate = section.whole("sample_rate", 1000, 384000);
  out.frame_rate = section.real("frame_rate", 1, 1000);
  out.encoder = read_seanet(section.section("seanet"));
  out.encoder_transformer = read_codec_transformer(section.section("transformer"), out.encoder.width);
  out.decoder = out.encoder;
  if (section.member("decoder_seanet") != nullptr) out.decoder = read_seanet(section.section("decoder_seanet"));
  out.decoder_transformer = out.encoder_transformer;
  if (section.member("decoder_transformer") != nullptr)
    out.decoder_transformer = read_codec_transformer(section.section("decoder_transformer"), out.decoder.width);
  section.require(
      out.decoder_transformer.width == out.decoder.width, Code::kUnsupported, "decoder_transformer",
      fmt::format("is {} wide, but decoder_seanet has dimension {}", out.decoder_transformer.width, out.decoder.width));
  out.inner_width = section.whole_or("inner_dim", out.encoder.width, 1, kMaxWidth);
  out.outer_width = section.whole_or("outer_dim", out.decoder.width, 1, kMaxWidth);
  section.require(out.outer_width == out.decoder.width, Code::kUnsupported, "outer_dim",
                  fmt::format("is {}, but the decoder is {} wide", out.outer_width, out.decoder.width));
  Section quantizer = section.section("quantizer");
  out.latent = quantizer.whole("dimension", 1, kMaxWidth);
  const size_t projected = quantizer.whole("output_dimension", 1, kMaxWidth);
  quantizer.require(projected == out.outer_width, Code::kDataLoss, "output_dimension",
                    fmt::format("is {}, but what follows is {} wide", projected, out.outer_width));
  quantizer.finish();
  require_rates(section, out);
  section.finish();
  return out;
}

std::u32string code_points(std::string_view text) {
  std::u32string out;
  for (size_t at = 0; at < text.size();) out += text::decode(text, at);
  return out;
}

// The keys are the table, so all are known; the faults are named here.
void read_replacements(Section& top, Findings& findings, TextConfig& out) {
  const YamlMember* const table = top.member("replace_characters");
  if (table == nullptr) return;
  top.require(table->value.kind == YamlNode::Kind::kMapping, Code::kDataLoss, "replace_characters",
              "is not a mapping of characters to texts");
  for (const YamlMember& entry : table->value.members) {
    const std::u32string from = code_points(entry.key), to = code_points(entry.value.text);
    if (from.size() != 1)
      findings.refuse(Code::kDataLoss, entry.line, "replace_characters",
                      fmt::format("has a key of {} characters; each key is one character", from.size()));
    else if (entry.value.kind != YamlNode::Kind::kScalar || entry.value.is_null() || to.size() > kMaxReplacement)
      findings.refuse(Code::kDataLoss, entry.line, "replace_characters",
                      fmt::format("has no text of at most {} characters for {}; '' deletes it", kMaxReplacement,
                                  in_quotes(entry.key)));
    else
      out.replace.emplace_back(from[0], to);
  }
}

Config read_all(Section top, Findings& findings) {
  Config out;
  out.flow_lm = read_flow_lm(top.section("flow_lm"), out.flow_lm_weights_path);
  out.mimi = read_mimi(top.section("mimi"), out.mimi_weights_path);
  out.text.pad_short = top.flag_or("pad_with_spaces_for_short_inputs", false);
  out.text.remove_semicolons = top.flag_or("remove_semicolons", false);
  out.text.terminal_punctuation = top.flag_or("append_terminal_punctuation", true);
  out.text.capitalize = top.flag_or("capitalize_first_letter", true);
  read_replacements(top, findings, out.text);
  out.temperature = static_cast<float>(top.real_or("default_temperature", out.temperature, 0, 100));
  out.eos_threshold = static_cast<float>(top.real_or("default_eos_threshold", out.eos_threshold, -1e6, 1e6));
  if (top.member("model_recommended_frames_after_eos") != nullptr)
    out.frames_after_eos = top.whole("model_recommended_frames_after_eos", 0, 1000);
  out.weights_path = top.word_or("weights_path", "");
  out.weights_path_without_voice_cloning = top.word_or("weights_path_without_voice_cloning", "");
  top.finish();
  return out;
}

// How a configuration of another model calls itself: the habit of Hugging Face, JSON being YAML too.
std::string foreign_name(const YamlNode& root) {
  const YamlMember* const type = root.find("model_type");
  if (type != nullptr && !type->value.text.empty()) return in_quotes(type->value.text);
  const YamlMember* const list = root.find("architectures");
  if (list != nullptr && !list->value.items.empty()) return in_quotes(list->value.items[0].text);
  return "an unknown architecture";
}

}  // namespace

Result<ConfigFile> parse_config(std::string_view text, const std::string& name) {
  SYRINX_TRY(const YamlNode root, parse_yaml(text, name, {.max_bytes = kMaxFileBytes}));
  if (root.kind != YamlNode::Kind::kMapping)
    return fail(Code::kDataLoss, "'{}' is not a configuration: it is not a mapping of keys to values", name);
  if (root.find("flow_lm") == nullptr && root.find("mimi") == nullptr)
    return fail(Code::kUnsupported,
                "'{}' is a configuration of {}, not of Pocket TTS, which has the keys flow_lm and mimi", name,
                foreign_name(root));
  Findings findings{.file = name, .fault = std::nullopt, .warnings = {}};
  ConfigFile out;
  out.config = read_all(Section(root, "", findings), findings);
  if (findings.fault) return tl::unexpected(std::move(*findings.fault));
  if (const Status codec = mimi::check(out.config.mimi); !codec)  // what no key is to blame for alone
    return fail(codec.error().code, "'{}': {}", name, codec.error().message);
  out.warnings = std::move(findings.warnings);
  return out;
}

}  // namespace syrinx::pocket
