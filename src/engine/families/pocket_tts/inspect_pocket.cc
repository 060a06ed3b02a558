#include "engine/families/pocket_tts/inspect_pocket.h"

#include <filesystem>
#include <system_error>

#include "base/mapped_file.h"
#include "models/pocket_tts/config_file.h"
#include "models/pocket_tts/model.h"
#include "models/pocket_tts/speech_end.h"

namespace syrinx {
namespace {

constexpr const char* kModelName = "pocket-tts";

const char* head_name(pocket::HeadType head) {
  switch (head) {
    case pocket::HeadType::kLsd: return "lsd";
    case pocket::HeadType::kFlowMatching: return "flow_matching";
    case pocket::HeadType::kDrifting: return "drifting";
    case pocket::HeadType::kPointwise: return "pointwise";
  }
  return "unknown";
}

size_t count_numbers(const Safetensors& tensors, std::string_view prefix) {
  size_t count = 0;
  for (const TensorRef& tensor : tensors.tensors())
    if (tensor.name.starts_with(prefix)) count += element_count(tensor.dims).value_or(0);
  return count;
}

void add_facts(const pocket::Config& config, FileDescription& out) {
  const auto add = [&](const char* name, std::string value) { out.facts.emplace_back(name, std::move(value)); };
  const auto& transformer = config.flow_lm.transformer;
  add("layers", std::to_string(transformer.layers));
  add("width", std::to_string(transformer.width));
  add("heads", fmt::format("{}, keys of {}", transformer.heads, transformer.key_heads));
  add("flow_head", fmt::format("{}, {} blocks of {}", head_name(config.flow_lm.head), config.flow_lm.head_depth,
                               config.flow_lm.head_width));
  add("tokens", std::to_string(config.flow_lm.text_bins));
  add("latent", std::to_string(config.mimi.latent));
  add("rate_hz", std::to_string(config.mimi.sample_rate));
  add("frame_ms", fmt::format("{:g}", 1000 / config.mimi.frame_rate));
  add("temperature", fmt::format("{:g}", config.temperature));
  add("eos_threshold", fmt::format("{:g}", config.eos_threshold));
  add("tokenizer", config.flow_lm.tokenizer_path);
  if (!config.weights_path.empty()) add("weights", config.weights_path);
  if (!config.weights_path_without_voice_cloning.empty())
    add("weights_without_voice_cloning", config.weights_path_without_voice_cloning);
  if (!config.mimi_weights_path.empty()) add("codec_weights", config.mimi_weights_path);
}

}  // namespace

Result<FileDescription> describe_pocket_config(const std::string& path) {
  SYRINX_TRY(const pocket::CheckpointPath found, pocket::find_checkpoint(path));
  SYRINX_TRY(const MappedFile file, MappedFile::open(found.config));
  const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  SYRINX_TRY(const pocket::ConfigFile read, pocket::parse_config(text, found.config));
  FileDescription out;
  out.path = found.config;
  out.kind = "yaml";
  out.model = kModelName;
  out.size_bytes = file.bytes().size();
  add_facts(read.config, out);
  for (const std::string& warning : read.warnings) out.facts.emplace_back("warning", warning);
  return out;
}

void describe_pocket_tensors(const Safetensors& tensors, FileDescription& out) {
  const size_t language_model = count_numbers(tensors, "flow_lm."), codec = count_numbers(tensors, "mimi.");
  if (language_model > 0) {
    out.model = kModelName;
    out.facts.emplace_back("language_model_numbers", std::to_string(language_model));
    out.facts.emplace_back("codec_numbers", std::to_string(codec));
  }
  const TensorRef* const cache = tensors.find("transformer.layers.0.self_attn/cache");
  if (cache == nullptr || cache->dims.size() != 5) return;
  out.model = kModelName;
  size_t layers = 0;
  while (tensors.find(fmt::format("transformer.layers.{}.self_attn/cache", layers)) != nullptr) ++layers;
  out.facts.emplace_back("voice_layers", std::to_string(layers));
  out.facts.emplace_back("voice_positions", std::to_string(cache->dims[2]));
  out.facts.emplace_back("voice_seconds",
                         fmt::format("{:.1f}", static_cast<double>(cache->dims[2]) / pocket::kFramesPerSecond));
}

}  // namespace syrinx
