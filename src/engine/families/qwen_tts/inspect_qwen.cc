#include "engine/families/qwen_tts/inspect_qwen.h"

#include <filesystem>
#include <string_view>

#include "base/in_quotes.h"
#include "base/json.h"
#include "base/mapped_file.h"
#include "models/qwen_tts/checkpoint.h"
#include "models/qwen_tts/codec_config.h"
#include "models/qwen_tts/config.h"
#include "store/paths.h"

namespace syrinx {
namespace {

namespace fs = std::filesystem;

constexpr const char* kModelName = "qwen-tts";
constexpr size_t kMaxConfigBytes = size_t{1} << 20;

std::string_view text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

std::string model_type(const MappedFile& file) {
  const auto json = parse_json(text_of(file), file.path(), {.max_bytes = kMaxConfigBytes});
  const Json* const type = json ? json->find("model_type") : nullptr;
  return type != nullptr && type->string() != nullptr ? *type->string() : std::string();
}

void add(const char* name, std::string value, FileDescription& out) { out.facts.emplace_back(name, std::move(value)); }

std::string shape_of(const qwen_tts::TransformerConfig& config) {
  return fmt::format("{} layers of {}, {} heads, keys of {}", config.layers, config.width, config.heads,
                     config.key_heads);
}

template <class Named>
std::string names_of(const std::vector<Named>& all) {
  std::string names;
  for (const Named& each : all) names += (names.empty() ? "" : ", ") + shortened(each.name);
  return names.empty() ? "none" : names;
}

void add_facts(const qwen_tts::Config& config, const std::string& folder, FileDescription& out) {
  add("kind", qwen_tts::kind_name(config.kind), out);
  if (!config.size.empty()) add("size", shortened(config.size), out);
  add("talker", shape_of(config.talker), out);
  add("code_predictor", shape_of(config.predictor), out);
  add("codes", fmt::format("{} a frame, of {} and {}", config.codebooks, config.codes(), config.predictor_codes), out);
  add("text_tokens", std::to_string(config.text_vocabulary), out);
  add("speakers", names_of(config.speakers), out);
  add("languages", names_of(config.languages), out);
  add("instructions", config.takes_instruction() ? "taken" : "not taken", out);
  const auto codec = qwen_tts::find_codec(folder);
  add("codec", codec ? *codec : "missing", out);
}

void add_facts(const qwen_tts::CodecConfig& config, FileDescription& out) {
  add("rate_hz", std::to_string(config.sample_rate), out);
  add("frame_samples", std::to_string(config.frame_samples), out);
  add("codebooks", fmt::format("{} of {}", config.decoder.codebooks, config.decoder.codebook_size), out);
  add("decoder_width", std::to_string(config.decoder.width), out);
}

size_t count_numbers(const Safetensors& tensors, std::string_view prefix) {
  size_t count = 0;
  for (const TensorRef& tensor : tensors.tensors())
    if (tensor.name.starts_with(prefix)) count += element_count(tensor.dims).value_or(0);
  return count;
}

}  // namespace

Result<bool> describe_qwen_config(const std::string& path, FileDescription& out) {
  const fs::path place(path);
  const bool folder = is_folder(path);
  if (!folder && place.filename() != "config.json") return false;
  const std::string name = folder ? (place / "config.json").string() : path;
  const auto file = MappedFile::open(name);
  if (!file) return false;
  const std::string type = model_type(*file);
  const bool is_codec = type == "qwen3_tts_tokenizer_12hz";
  if (type != "qwen3_tts" && !is_codec) return false;
  out.path = name;
  out.kind = "json";
  out.size_bytes = file->bytes().size();
  out.model = kModelName;
  if (is_codec) {
    SYRINX_TRY(const qwen_tts::CodecConfig config, qwen_tts::read_codec_config(text_of(*file), name));
    add_facts(config, out);
  } else {
    SYRINX_TRY(const qwen_tts::Config config, qwen_tts::read_config(text_of(*file), name));
    const fs::path parent = fs::path(name).parent_path();
    add_facts(config, parent.empty() ? "." : parent.string(), out);
  }
  return true;
}

void describe_qwen_tensors(const Safetensors& tensors, FileDescription& out) {
  const size_t talker = count_numbers(tensors, "talker."), speaker = count_numbers(tensors, "speaker_encoder.");
  const bool is_codec = tensors.find("decoder.pre_conv.conv.weight") != nullptr &&
                        tensors.find("decoder.quantizer.rvq_first.output_proj.weight") != nullptr;
  if (talker == 0 && speaker == 0 && !is_codec) return;
  out.model = kModelName;
  if (talker > 0) {
    const size_t predictor = count_numbers(tensors, "talker.code_predictor.");
    add("talker_numbers", std::to_string(talker - predictor), out);
    add("code_predictor_numbers", std::to_string(predictor), out);
  }
  if (speaker > 0) add("speaker_encoder_numbers", std::to_string(speaker), out);
  if (!is_codec) return;
  add("codec_decoder_numbers", std::to_string(count_numbers(tensors, "decoder.")), out);
  add("codec_encoder_numbers", std::to_string(count_numbers(tensors, "encoder.")), out);
}

}  // namespace syrinx
