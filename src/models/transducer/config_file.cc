#include "models/transducer/config_file.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>

#include "base/in_quotes.h"
#include "base/yaml_section.h"
#include "models/transducer/config_limits.h"
#include "models/transducer/config_prompt.h"
#include "models/transducer/transformers_config.h"

namespace syrinx::transducer {
namespace {

constexpr size_t kMaxTextBytes = size_t{4} << 20, kMaxNodes = 600000;
constexpr size_t kMaxReferences = 1000, kMaxReferenceDepth = 16, kMaxReferenceBytes = 256;

std::string last_component(std::string_view path) { return std::string(path.substr(path.rfind('.') + 1)); }

// --- references: a value "${a.b.c}" stands for another one of the same tree

const YamlNode* at_path(const YamlNode& root, std::string_view path) {
  const YamlNode* node = &root;
  for (size_t depth = 0; node != nullptr && !path.empty() && depth < kMaxReferenceDepth; ++depth) {
    const size_t dot = std::min(path.find('.'), path.size());
    const YamlMember* const member = node->find(path.substr(0, dot));
    node = member == nullptr ? nullptr : &member->value;
    path.remove_prefix(std::min(dot + 1, path.size()));
  }
  return path.empty() ? node : nullptr;
}

// The scalar that a reference leads to; itself where it leads nowhere.  The makers' files say "model." for the root.
YamlNode resolved(const YamlNode& root, const YamlNode& node) {
  const YamlNode* found = &node;
  for (size_t depth = 0; depth < kMaxReferenceDepth; ++depth) {
    std::string_view path = found->text;
    if (!path.starts_with("${") || !path.ends_with('}')) break;
    path = path.substr(2, path.size() - 3);
    if (path.starts_with("model.")) path.remove_prefix(6);
    const YamlNode* const next = at_path(root, path);
    if (next == nullptr || next->kind != YamlNode::Kind::kScalar || next->text.size() > kMaxReferenceBytes) break;
    found = next;
  }
  return {.kind = YamlNode::Kind::kScalar,
          .line = node.line,
          .quoted = found->quoted,
          .text = found->text,
          .items = {},
          .members = {}};
}

// The tree is at most YamlLimits::max_depth deep.
void resolve_references(const YamlNode& root, YamlNode& node, size_t& budget) {
  for (YamlMember& member : node.members) resolve_references(root, member.value, budget);
  for (YamlNode& item : node.items) resolve_references(root, item, budget);
  if (node.kind != YamlNode::Kind::kScalar || !node.text.starts_with("${") || budget == 0) return;
  --budget;
  node = resolved(root, node);
}

// --- what several sections need

void require_word(Section& section, std::string_view key, std::string_view fallback,
                  std::initializer_list<std::string_view> known) {
  const std::string word = section.word_or(key, std::string(fallback));
  std::string list;
  for (const std::string_view candidate : known) {
    if (word == candidate) return;
    list += fmt::format("{}'{}'", list.empty() ? "" : " or ", candidate);
  }
  section.require(false, Code::kUnsupported, key, fmt::format("is {}; only {} can be run", in_quotes(word), list));
}

bool whole_number(const YamlNode& node, ptrdiff_t min, ptrdiff_t max, ptrdiff_t& number) {
  const char* const end = node.text.data() + node.text.size();
  const auto [rest, error] = std::from_chars(node.text.data(), end, number);
  return node.kind == YamlNode::Kind::kScalar && error == std::errc() && rest == end && number >= min && number <= max;
}

// A list of texts of any form: "no", 1 and ~ are labels like others.
std::vector<std::string> texts(Section& section, std::string_view key) {
  std::vector<std::string> out;
  const YamlMember* const found = section.member(key);
  if (found == nullptr || found->value.kind != YamlNode::Kind::kSequence) return out;
  section.require(found->value.items.size() <= kMaxVocabulary, Code::kLimitExceeded, key,
                  fmt::format("has {} labels; at most {} are read", found->value.items.size(), kMaxVocabulary));
  if (found->value.items.size() > kMaxVocabulary) return out;
  out.reserve(found->value.items.size());
  for (const YamlNode& item : found->value.items) {
    section.require(item.kind == YamlNode::Kind::kScalar, Code::kDataLoss, key, "holds labels that are not texts");
    if (item.text.size() > kMaxLabelBytes)
      section.require(false, Code::kLimitExceeded, key,
                      fmt::format("holds a label of {} bytes; at most {} are read", item.text.size(), kMaxLabelBytes));
    out.push_back(item.text);
  }
  return out;
}

// --- sections

size_t samples(Section& section, std::string_view key, double fallback, size_t rate_hz) {
  const double count = section.real_or(key, fallback, 1e-4, 1) * static_cast<double>(rate_hz);
  section.require(std::abs(count - std::round(count)) < 1e-6, Code::kUnsupported, key,
                  fmt::format("makes {} samples, not a whole number of them", count));
  return static_cast<size_t>(std::lround(count));
}

// Null means none, as at the maker's.
bool reads_per_feature(Section& section) {
  const std::string word = section.word_or("normalize", section.is_null("normalize") ? "NA" : "per_feature");
  if (word == "per_feature") return true;
  section.require(word == "NA" || word == "None" || word.empty(), Code::kUnsupported, "normalize",
                  fmt::format("is {}; only 'per_feature' and 'NA' can be run", in_quotes(word)));
  return false;
}

float read_log_guard(Section& section) {
  require_word(section, "log_zero_guard_type", "add", {"add"});
  const YamlMember* const stored = section.member("log_zero_guard_value");
  if (stored != nullptr && stored->value.text == "tiny") return 0x1p-126f;
  if (stored != nullptr && stored->value.text == "eps") return 0x1p-23f;
  return static_cast<float>(section.real_or("log_zero_guard_value", 0x1p-24, 0x1p-126, 1));
}

FeatureConfig read_features(Section section) {
  FeatureConfig out;
  require_word(section, "_target_", "AudioToMelSpectrogramPreprocessor",
               {"nemo.collections.asr.modules.AudioToMelSpectrogramPreprocessor",
                "nemo.collections.asr.modules.audio_preprocessing.AudioToMelSpectrogramPreprocessor",
                "AudioToMelSpectrogramPreprocessor"});
  out.rate_hz = section.whole_or("sample_rate", 16000, 1, 384000);
  section.require(out.rate_hz == 16000, Code::kUnsupported, "sample_rate",
                  fmt::format("is {}; models of 16000 Hz can be run", out.rate_hz));
  out.mels = section.whole_or("features", 64, 1, kMaxMels);
  for (const char* const key : {"n_window_size", "n_window_stride"})
    section.require(!section.has(key), Code::kUnsupported, key, "is set; windows in seconds can be read");
  out.window = samples(section, "window_size", 0.02, out.rate_hz);
  out.hop = samples(section, "window_stride", 0.01, out.rate_hz);
  section.require(
      out.hop <= out.window / 2, Code::kUnsupported, "window_stride",
      fmt::format("makes steps of {} samples; at most half of the window's {} can be run", out.hop, out.window));
  out.fft = section.whole_or("n_fft", std::bit_ceil(out.window), 16, 65536);
  section.require(std::has_single_bit(out.fft) && out.fft >= out.window, Code::kUnsupported, "n_fft",
                  fmt::format("is {}; a power of two not below the window's {} can be run", out.fft, out.window));
  out.per_feature = reads_per_feature(section);
  out.preemphasis = static_cast<float>(section.real_or("preemph", section.is_null("preemph") ? 0 : 0.97, 0, 1));
  out.low_hz = section.real_or("lowfreq", 0, 0, 8000);
  out.high_hz = section.real_or("highfreq", static_cast<double>(out.rate_hz) / 2, 1, 8000);
  section.require(out.low_hz < out.high_hz, Code::kDataLoss, "highfreq", "is not above lowfreq");
  out.log_guard = read_log_guard(section);
  require_word(section, "window", "hann", {"hann"});
  require_word(section, "mel_norm", "slaney", {"slaney"});
  section.require(section.flag_or("log", true), Code::kUnsupported, "log", "is false");
  section.require(!section.flag_or("exact_pad", false), Code::kUnsupported, "exact_pad", "is true");
  section.require(section.whole_or("frame_splicing", 1, 1, 64) == 1, Code::kUnsupported, "frame_splicing", "is not 1");
  section.require(section.real_or("mag_power", 2, 0, 8) == 2, Code::kUnsupported, "mag_power", "is not 2");
  return out;
}

void read_subsampling(Section& section, EncoderConfig& out) {
  const std::string kind = section.word_or("subsampling", "striding");
  section.require(kind == "dw_striding" || kind == "striding", Code::kUnsupported, "subsampling",
                  fmt::format("is {}; only 'dw_striding' and 'striding' can be run", in_quotes(kind)));
  out.striding = kind == "striding";
  out.factor = section.whole_or("subsampling_factor", 4, 2, kMaxFactor);
  section.require(std::has_single_bit(out.factor), Code::kDataLoss, "subsampling_factor", "is not a power of two");
  out.channels = out.width;
  if (const YamlMember* const stored = section.member("subsampling_conv_channels"); stored != nullptr) {
    if (stored->value.text != "-1") out.channels = section.whole("subsampling_conv_channels", 1, kMaxChannels);
  }
  out.causal_downsampling = section.flag_or("causal_downsampling", false);
}

// Three lists: frames before a chunk, of it, and behind it.
void read_menu(Section& section, EncoderConfig& out) {
  const YamlMember* const stored = section.member("att_chunk_context_size");
  if (stored == nullptr) return;
  section.require(out.style == ContextStyle::kChunkedLimitedWithRc, Code::kDataLoss, "att_chunk_context_size",
                  "is set, but att_context_style is not chunked_limited_with_rc");
  const std::vector<YamlNode>& lists = stored->value.items;
  WindowMenu menu;
  std::vector<size_t>* const menus[] = {&menu.left, &menu.chunk, &menu.right};
  bool fits = lists.size() == std::size(menus);
  for (size_t i = 0; fits && i < std::size(menus); ++i) {
    fits = !lists[i].items.empty() && lists[i].items.size() <= kMaxContexts;
    for (size_t j = 0; fits && j < lists[i].items.size(); ++j) {
      ptrdiff_t count = 0;
      fits = whole_number(lists[i].items[j], i == 1 ? 1 : 0, static_cast<ptrdiff_t>(kMaxContext), count);
      menus[i]->push_back(static_cast<size_t>(count));
    }
  }
  section.require(fits, Code::kDataLoss, "att_chunk_context_size",
                  fmt::format("is not made of three lists of numbers up to {}", kMaxContext));
  if (fits) out.menu = std::move(menu);
}

void read_contexts(Section& section, EncoderConfig& out) {
  const std::string style = section.word_or("att_context_style", "regular");
  section.require(style == "regular" || style == "chunked_limited" || style == "chunked_limited_with_rc",
                  Code::kUnsupported, "att_context_style", fmt::format("is {}", in_quotes(style)));
  if (style == "chunked_limited") out.style = ContextStyle::kChunkedLimited;
  if (style == "chunked_limited_with_rc") out.style = ContextStyle::kChunkedLimitedWithRc;
  const YamlMember* const stored = section.member("att_context_size");
  // The maker's class sees all where it has chunks with frames behind them, whatever stands there.
  if (stored == nullptr || out.style == ContextStyle::kChunkedLimitedWithRc) {
    out.contexts.push_back({});
    read_menu(section, out);
    return;
  }
  const auto add = [&](const std::vector<YamlNode>& pair) {
    AttentionContext context;
    const auto limit = static_cast<ptrdiff_t>(kMaxContext);
    const bool fits = pair.size() == 2 && whole_number(pair[0], -1, limit, context.left) &&
                      whole_number(pair[1], -1, limit, context.right);
    section.require(fits, Code::kDataLoss, "att_context_size",
                    fmt::format("is not made of pairs of numbers from -1 to {}", kMaxContext));
    if (out.style == ContextStyle::kChunkedLimited && fits)
      section.require(context.right >= 0 && (context.left < 0 || context.left % (context.right + 1) == 0),
                      Code::kDataLoss, "att_context_size",
                      fmt::format("has {} frames before chunks of {}, which are not whole chunks", context.left,
                                  context.right + 1));
    out.contexts.push_back(context);
  };
  const std::vector<YamlNode>& items = stored->value.items;
  section.require(!items.empty() && items.size() <= kMaxContexts, Code::kDataLoss, "att_context_size",
                  "is not a list of one or more pairs");
  if (!items.empty() && items.front().kind == YamlNode::Kind::kScalar) {
    add(items);
  } else {
    for (size_t i = 0; i < std::min(items.size(), kMaxContexts); ++i) add(items[i].items);
  }
}

void read_convolution(Section& section, EncoderConfig& out) {
  out.kernel = section.whole_or("conv_kernel_size", 31, 1, kMaxKernel);
  section.require(out.kernel % 2 == 1, Code::kDataLoss, "conv_kernel_size", "is even");
  require_word(section, "conv_norm_type", "batch_norm", {"batch_norm", "layer_norm"});
  // Chunks cut convolutions in training alone: the maker's encoder runs both alike.
  require_word(section, "conv_context_style", "regular", {"regular", "dcc"});
  out.layer_norm = section.word_or("conv_norm_type", "batch_norm") == "layer_norm";
  out.conv_left = (out.kernel - 1) / 2;
  const YamlMember* const stored = section.member("conv_context_size");
  if (stored == nullptr) return;
  if (stored->value.kind == YamlNode::Kind::kScalar) {
    section.require(stored->value.text == "causal", Code::kUnsupported, "conv_context_size",
                    fmt::format("is {}; 'causal' or two numbers can be run", in_quotes(stored->value.text)));
    out.conv_left = out.kernel - 1;
    return;
  }
  ptrdiff_t left = 0, right = 0;
  const std::vector<YamlNode>& pair = stored->value.items;
  const auto limit = static_cast<ptrdiff_t>(kMaxKernel);
  const bool fits = pair.size() == 2 && whole_number(pair[0], 0, limit, left) &&
                    whole_number(pair[1], 0, limit, right) && static_cast<size_t>(left + right + 1) == out.kernel;
  section.require(fits, Code::kDataLoss, "conv_context_size",
                  fmt::format("does not cut a kernel of {} into what is before and behind its frame", out.kernel));
  if (fits) out.conv_left = static_cast<size_t>(left);
}

EncoderConfig read_encoder(Section section) {
  EncoderConfig out;
  const std::string type = last_component(section.word_or("_target_", "ConformerEncoder"));
  section.require(type == "ConformerEncoder", Code::kUnsupported, "_target_",
                  fmt::format("is {}; only ConformerEncoder can be run", in_quotes(type)));
  out.mels = section.whole("feat_in", 1, kMaxMels);
  out.layers = section.whole("n_layers", 1, kMaxLayers);
  out.width = section.whole("d_model", 1, kMaxWidth);
  out.heads = section.whole_or("n_heads", 4, 1, kMaxHeads);
  section.require(out.width % out.heads == 0 && out.width % 2 == 0, Code::kDataLoss, "n_heads",
                  fmt::format("is {}, which does not cut a width of {}", out.heads, out.width));
  out.hidden = out.width * section.whole_or("ff_expansion_factor", 4, 1, 16);
  out.use_bias = section.flag_or("use_bias", true);
  out.xscaling = section.flag_or("xscaling", true);
  require_word(section, "self_attention_model", "rel_pos", {"rel_pos", "rel_pos_local_attn"});
  section.require(section.whole_or("global_tokens", 0, 0, kMaxContext) == 0, Code::kUnsupported, "global_tokens",
                  "is not 0; such models cannot be run");
  section.require(!section.has("reduction"), Code::kUnsupported, "reduction", "is set; such models cannot be run");
  read_subsampling(section, out);
  read_contexts(section, out);
  // The maker's narrow attention has one width for both sides.
  const auto even = [](const AttentionContext& context) { return context.left == context.right; };
  section.require(section.word_or("self_attention_model", "rel_pos") == "rel_pos" ||
                      std::all_of(out.contexts.begin(), out.contexts.end(), even),
                  Code::kUnsupported, "att_context_size", "differs before and behind a frame under rel_pos_local_attn");
  read_convolution(section, out);
  check_stream_sizes(section, "att_context_size", out);
  return out;
}

std::vector<size_t> read_durations(Section& top, size_t count) {
  for (const char* const name : {"model_defaults", "decoding"}) {
    const char* const key = name == std::string_view("decoding") ? "durations" : "tdt_durations";
    if (!top.has(name)) continue;
    Section section = top.section(name);
    if (!section.has(key)) continue;
    std::vector<size_t> durations = section.wholes(key, kMaxDurations, 0, kMaxDuration);
    section.require(durations.size() == count, Code::kDataLoss, key,
                    fmt::format("has {} durations, but the joint network gives {}", durations.size(), count));
    return durations;
  }
  top.require(false, Code::kDataLoss, "model_defaults", "does not say which durations the joint network means");
  return {};
}

size_t read_max_symbols(Section& top, size_t fallback) {
  if (!top.has("decoding")) return fallback;
  Section decoding = top.section("decoding");
  if (!decoding.has("greedy")) return fallback;
  Section greedy = decoding.section("greedy");
  const char* const key = greedy.has("max_symbols_per_step") ? "max_symbols_per_step" : "max_symbols";
  return greedy.whole_or(key, fallback, 1, kMaxSymbols);
}

// V: the count where it is one (-1 stands for "as many as the labels").
size_t vocabulary_size(Section& section, std::string_view key, size_t labels) {
  const YamlMember* const stored = section.member(key);
  const bool counted = stored != nullptr && stored->value.text != "-1";
  const size_t size = counted || labels == 0 ? section.whole(key, 1, kMaxVocabulary) : labels;
  section.require(labels == 0 || size == labels, Code::kDataLoss, key,
                  fmt::format("is {}, but there are {} labels", size, labels));
  return size;
}

void read_transducer(Section& top, Config& out) {
  Section decoder = top.section("decoder"), joint = top.section("joint");
  const std::string type = last_component(decoder.word_or("_target_", "RNNTDecoder"));
  decoder.require(type == "RNNTDecoder", Code::kUnsupported, "_target_",
                  fmt::format("is {}; only RNNTDecoder can be run", in_quotes(type)));
  const std::string joint_type = last_component(joint.word_or("_target_", "RNNTJoint"));
  joint.require(joint_type == "RNNTJoint", Code::kUnsupported, "_target_",
                fmt::format("is {}; only RNNTJoint can be run", in_quotes(joint_type)));
  decoder.require(!decoder.has("normalization_mode"), Code::kUnsupported, "normalization_mode", "is set");
  decoder.require(decoder.flag_or("blank_as_pad", true), Code::kUnsupported, "blank_as_pad", "is false");
  Section prednet = decoder.section("prednet");
  out.decoder.width = prednet.whole("pred_hidden", 1, kMaxWidth);
  out.decoder.layers = prednet.whole_or("pred_rnn_layers", 1, 1, kMaxLstmLayers);
  prednet.require(prednet.whole_or("rnn_hidden_size", out.decoder.width, 1, kMaxWidth) == out.decoder.width,
                  Code::kUnsupported, "rnn_hidden_size", "differs from pred_hidden");
  Section jointnet = joint.section("jointnet");
  out.decoder.joint = jointnet.whole("joint_hidden", 1, kMaxWidth);
  require_word(jointnet, "activation", "relu", {"relu"});
  out.labels = texts(joint, "vocabulary");
  out.decoder.vocabulary = vocabulary_size(joint, "num_classes", out.labels.size());
  const size_t durations = joint.whole_or("num_extra_outputs", 0, 0, kMaxDurations);
  out.decoder.kind = durations > 0 ? HeadKind::kTdt : HeadKind::kRnnt;
  if (durations > 0) out.decoder.durations = read_durations(top, durations);
  out.decoder.max_symbols = read_max_symbols(top, out.decoder.max_symbols);
}

void read_ctc(Section& top, Config& out) {
  Section decoder = top.section("decoder");
  const std::string type = last_component(decoder.word_or("_target_", "ConvASRDecoder"));
  decoder.require(type == "ConvASRDecoder", Code::kUnsupported, "_target_",
                  fmt::format("is {}; only ConvASRDecoder can be run", in_quotes(type)));
  out.decoder.kind = HeadKind::kCtc;
  out.decoder.ctc = true;
  out.labels = texts(decoder, "vocabulary");
  out.decoder.vocabulary = vocabulary_size(decoder, "num_classes", out.labels.size());
}

// Comes first, so that a model of another class is told so, not what it lacks.
void read_class(Section& top, Config& out) {
  top.require(top.has("target") || !top.has("architectures"), Code::kUnsupported, "architectures",
              "shows the layout of Hugging Face's Transformers, but no model_type says which of its models this is");
  constexpr std::array<std::string_view, 8> kKnown = {
      "EncDecRNNTBPEModel", "EncDecRNNTModel", "EncDecHybridRNNTCTCBPEModel", "EncDecHybridRNNTCTCModel",
      "EncDecCTCModelBPE",  "EncDecCTCModel",  "EncDecRNNTBPEEOUModel",       "EncDecRNNTBPEModelWithPrompt"};
  // A tree without the class, as converters leave it, says by its sections what it is.
  out.target = last_component(top.word_or("target", top.has("joint") ? "EncDecRNNTBPEModel" : "EncDecCTCModelBPE"));
  top.require(std::find(kKnown.begin(), kKnown.end(), out.target) != kKnown.end(), Code::kUnsupported, "target",
              fmt::format("is the class {}; RNN-T, TDT, CTC and hybrid models can be run", in_quotes(out.target)));
}

// The class decides on the head; what it calls itself says whether labels are characters.
void read_head(Section& top, Config& out) {
  out.character_model = out.target.find("BPE") == std::string::npos;
  if (out.target.find("RNNT") != std::string::npos) {
    read_transducer(top, out);
  } else {
    read_ctc(top, out);
  }
  if (out.labels.empty()) {
    out.labels = texts(top, "labels");
    top.require(out.labels.empty() || out.labels.size() == out.decoder.vocabulary, Code::kDataLoss, "labels",
                fmt::format("are {}, but the head knows {}", out.labels.size(), out.decoder.vocabulary));
  }
}

// `auto`, which lets the model find the language out, is what the maker's transcribe() asks for.
void read_prompt(Section& top, Config& out) {
  if (out.target != "EncDecRNNTBPEModelWithPrompt") return;
  Section defaults = top.section("model_defaults");
  if (!defaults.flag_or("initialize_prompt_feature", false)) return;
  PromptConfig& prompt = out.encoder.prompt;
  prompt.count = defaults.whole_or("num_prompts", 128, 1, kMaxPrompts);
  prompt.hidden = 2 * out.encoder.width;
  read_languages(defaults, prompt);
  if (prompt.languages.empty()) return;
  const PromptConfig::Language* const automatic = prompt.find("auto");
  prompt.fallback = automatic != nullptr ? automatic->index : prompt.languages.front().index;
}

void read_tokenizer(Section& top, Config& out) {
  if (out.character_model || !top.has("tokenizer")) return;
  Section tokenizer = top.section("tokenizer");
  tokenizer.require(tokenizer.word_or("type", "bpe") != "wpe", Code::kUnsupported, "type",
                    "is wpe, WordPiece; vocabularies of SentencePiece can be read");
  std::string path = tokenizer.word_or("model_path", "");
  if (path.starts_with("nemo:")) path.erase(0, 5);
  out.tokenizer = path;
}

Result<YamlNode> parse_tree(std::string_view text, const std::string& name) {
  // libyaml's time is quadratic in directives, which no such file has.
  if (text.starts_with('%') || text.find("\n%") != std::string_view::npos)
    return fail(Code::kUnsupported, "'{}' has YAML directives (lines that begin with %)", name);
  return parse_yaml(text, name, {.max_bytes = kMaxTextBytes, .max_depth = 16, .max_nodes = kMaxNodes});
}

}  // namespace

Result<Config> parse_config(std::string_view text, const std::string& name, const ConfigText& processor) {
  SYRINX_TRY(YamlNode root, parse_tree(text, name));
  const YamlNode stored = root;
  size_t budget = kMaxReferences;
  resolve_references(stored, root, budget);
  Findings findings{.file = name, .fault = {}, .warnings = {}};
  Section top(root, "", findings);
  Config out;
  if (is_transformers_config(top)) {
    SYRINX_TRY(const YamlNode beside, parse_tree(processor.text.empty() ? "{}" : processor.text, processor.name));
    Findings of_processor{.file = processor.name, .fault = {}, .warnings = {}};
    out = read_transformers_config(top, Section(beside, "", of_processor));
    if (of_processor.fault) return tl::unexpected(*of_processor.fault);
  } else {
    read_class(top, out);
    out.nemo_version = top.word_or("nemo_version", "");
    out.features = read_features(top.section("preprocessor"));
    out.encoder = read_encoder(top.section("encoder"));
    read_head(top, out);
    read_prompt(top, out);
    read_tokenizer(top, out);
  }
  const bool guessed = is_transformers_config(top) && processor.text.empty();
  top.require(out.features.mels == out.encoder.mels, Code::kDataLoss, guessed ? "encoder_config" : "encoder",
              fmt::format("takes {} features, but the preprocessor gives {}{}", out.encoder.mels, out.features.mels,
                          guessed ? " by default, since neither processor_config.json nor preprocessor_config.json is "
                                    "there; put it beside the weights"
                                  : ""));
  if (findings.fault) return tl::unexpected(*findings.fault);
  return out;
}

}  // namespace syrinx::transducer
