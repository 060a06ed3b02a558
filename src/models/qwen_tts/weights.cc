#include "models/qwen_tts/weights.h"

#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "base/in_quotes.h"
#include "kernels/dispatch.h"
#include "kernels/matrix_store.h"
#include "tensor/content_key.h"

namespace syrinx::qwen_tts {
namespace {

namespace fs = std::filesystem;

// Part of the key of a packed cache: raise it whenever the packed form or what goes into it changes.
constexpr int kPackedLayout = 2;
constexpr const char *kTalker = "talker.model.", *kPredictor = "talker.code_predictor.";

nn::DecoderNames layer_names(const std::string& model) {
  const std::string prefix = model + "layers.{}.";
  const auto norm = [&](const char* part) { return nn::DecoderNames::Norm{prefix + part + ".weight", ""}; };
  const auto linear = [&](const char* part) {
    return nn::DecoderNames::Linear{.weight = prefix + part + ".weight", .bias = ""};
  };
  return {.before = norm("input_layernorm"),
          .after = norm("post_attention_layernorm"),
          .in = {linear("self_attn.q_proj"), linear("self_attn.k_proj"), linear("self_attn.v_proj")},
          .out = linear("self_attn.o_proj"),
          .gate = linear("mlp.gate_proj"),
          .up = linear("mlp.up_proj"),
          .down = linear("mlp.down_proj"),
          .query_norm = prefix + "self_attn.q_norm.weight",
          .key_norm = prefix + "self_attn.k_norm.weight",
          .half_split = true};
}

// A scale a block of 32 inputs, as of language models whose rows of activations have a few large numbers
// (llama/weights.cc).
struct Panels {
  PanelType text, head, talker, predictor;
};
Panels panels_of(Precision precision) {
  switch (precision) {
    case Precision::kInt8: return {PanelType::kBf16, PanelType::kBf16, PanelType::kInt8Blocks, PanelType::kInt8Blocks};
    case Precision::kInt4: return {PanelType::kBf16, PanelType::kBf16, PanelType::kInt4Blocks, PanelType::kInt8Blocks};
    default: return {panel_type(precision), panel_type(precision), panel_type(precision), panel_type(precision)};
  }
}

class Reading {
 public:
  Reading(nn::WeightReader& reader, const Config& config, Precision precision)
      : reader_(reader), c_(config), precision_(precision), panels_(panels_of(precision)) {}

  Weights read() {
    Weights w;
    w.config = c_;
    w.precision = precision_;
    const std::string text = "talker.text_projection.linear_fc";
    w.text_embedding = table(kTalker + std::string("text_embedding"), c_.text_vocabulary, c_.text_width);
    w.text_fc1 = matrix(panels_.text, text + "1", c_.text_width, c_.text_width, true);
    w.text_fc2 = matrix(panels_.text, text + "2", c_.text_width, c_.talker.width, true);
    w.codec_embedding = table(kTalker + std::string("codec_embedding"), c_.vocabulary, c_.talker.width);
    w.talker = layers(c_.talker, kTalker, panels_.talker);
    w.talker_norm.gamma = reader_.values(kTalker + std::string("norm.weight"), {c_.talker.width});
    w.codec_head = matrix(panels_.head, "talker.codec_head", c_.talker.width, c_.vocabulary, false);
    read_predictor(w);
    return w;
  }

 private:
  void read_predictor(Weights& w) {
    const std::string prefix = kPredictor;
    if (c_.projects_predictor())
      w.predictor_projection =
          matrix(panels_.predictor, prefix + "small_to_mtp_projection", c_.talker.width, c_.predictor.width, true);
    w.predictor = layers(c_.predictor, prefix + "model.", panels_.predictor);
    w.predictor_norm.gamma = reader_.values(prefix + "model.norm.weight", {c_.predictor.width});
    for (size_t g = 0; g + 1 < c_.codebooks; ++g) {
      w.code_heads.push_back(matrix(panels_.predictor, fmt::format("{}lm_head.{}", prefix, g), c_.predictor.width,
                                    c_.predictor_codes, false));
      w.code_embeddings.push_back(
          table(fmt::format("{}model.codec_embedding.{}", prefix, g), c_.predictor_codes, c_.talker.width));
    }
  }
  nn::DecoderWeights layers(const TransformerConfig& config, const std::string& model, PanelType panels) {
    const DType cache = precision_ == Precision::kF32 ? DType::kF32 : DType::kBF16;
    const nn::DecoderNames names = layer_names(model);
    return nn::DecoderWeights::load(reader_, decoder_shape(config, cache),
                                    [&](size_t layer) { return nn::numbered(names, layer); },
                                    {.attention = panels, .up = panels, .down = panels});
  }
  kernels::OwnedMatrix matrix(PanelType panels, const std::string& name, size_t channels, size_t columns, bool bias) {
    const nn::WeightReader::Columns only{
        .weight = name + ".weight", .bias = bias ? name + ".bias" : "", .columns = columns};
    return reader_.matrix(name, panels, {&only, 1}, channels);
  }
  nn::RowTable table(const std::string& name, size_t rows, size_t width) {
    return reader_.table(name + "#rows", name + ".weight", rows, rows, width);
  }

  nn::WeightReader& reader_;
  const Config& c_;
  const Precision precision_;
  const Panels panels_;
};

Status finish(nn::WeightReader& reader, std::span<const TensorRef> tensors, const std::string& name) {
  if (!reader.faults().empty())
    return fail(Code::kDataLoss, "'{}' does not hold the model that its config.json describes: {}; download it again",
                name, reader.faults().text());
  TensorFaults unknown;
  for (const TensorRef& tensor : tensors)
    if (!reader.knows(std::string(tensor.name))) unknown.note(in_quotes(tensor.name));
  if (unknown.empty()) return {};
  return fail(Code::kUnsupported, "'{}' holds tensors that are not known of Qwen3-TTS: {}", name, unknown.text());
}

}  // namespace

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
  Weights weights = Reading(reader, config, options.precision).read();
  reader.know_prefix("speaker_encoder.");
  SYRINX_TRY_VOID(finish(reader, tensors, name));
  if (options.store != nullptr) weights.packed = options.store->file();
  return weights;
}

Result<std::shared_ptr<const Weights>> load_weights(const Checkpoint& checkpoint, const LoadOptions& options) {
  const std::span<const MappedFile> files = checkpoint.tensors().files;
  const TransformerConfig& talker = checkpoint.config().talker;
  std::string path, key;
  if (!options.cache_folder.empty()) {
    std::error_code ignored;  // what cannot be made cannot be written either, which is no error
    fs::create_directories(options.cache_folder, ignored);
    const char* const precision = precision_name(options.precision);
    const std::string content = content_key(files, options.cache_folder);
    path = fmt::format("{}/qwen-tts-{}-{}.packed", options.cache_folder, precision, content.substr(0, 16));
    // Heads decide on an order that no shape tells, and are in another file than the weights.
    const TransformerConfig& predictor = checkpoint.config().predictor;
    key = fmt::format("qwen-tts {} layout {} heads {} {} {} {} {} {} {} {}", precision, kPackedLayout, talker.heads,
                      talker.key_heads, talker.head_size, predictor.heads, predictor.key_heads, predictor.head_size,
                      kernels::chosen_target_name(), content);
  }
  const auto release = [files] {
    for (const MappedFile& file : files) file.release();
  };
  Weights weights;
  const auto read = [&](kernels::MatrixStore& store) -> Status {
    weights = {};
    SYRINX_TRY(weights,
               read_weights(checkpoint.tensors().tensors, checkpoint.config(),
                            {.precision = options.precision, .store = &store, .release = release, .team = options.team},
                            checkpoint.folder()));
    return {};
  };
  SYRINX_TRY_VOID(kernels::read_kept(path, key, read, kernels::Written::kGoes));
  release();
  return std::make_shared<const Weights>(std::move(weights));
}

}  // namespace syrinx::qwen_tts
