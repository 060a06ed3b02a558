#include "engine/families/llama/llama_family.h"

#include <filesystem>
#include <utility>

#include "base/json.h"
#include "base/mapped_file.h"
#include "engine/families/llama/llama_engine.h"
#include "engine/recognition/recognition_family.h"
#include "models/llama/model.h"
#include "tensor/gguf.h"

namespace syrinx {
namespace {

constexpr Precision kPrecisions[] = {LlamaEngine::kDefaultPrecision, Precision::kInt4, Precision::kBf16,
                                     Precision::kF32};
constexpr size_t kMaxConfigBytes = size_t{1} << 20;

std::string_view text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

// A GGUF file holds a language model, whatever its architecture: the loader says which it knows.  Other weights are
// described by the config.json beside them.
bool recognise(const ModelPlace& place) {
  const auto checkpoint = llama::find_checkpoint(place.path);
  if (!checkpoint) return false;
  const auto file = MappedFile::open(*checkpoint);
  if (!file) return false;
  if (text_of(*file).starts_with("GGUF")) return true;
  const auto config = MappedFile::open((std::filesystem::path(*checkpoint).parent_path() / "config.json").string());
  if (!config) return false;
  const auto json = parse_json(text_of(*config), "config.json", {.max_bytes = kMaxConfigBytes});
  if (!json) return false;
  const std::string kind = model_type(*json);
  return kind == "llama" || kind == "qwen2" || kind == "qwen3";
}

Result<ChatFiles> find_files(const ModelPlace& place) {
  ChatFiles files;
  SYRINX_TRY(files.checkpoint, llama::find_checkpoint(place.path));
  return files;
}

Result<bool> describe(const InspectedFile& inspected, FileDescription& out) {
  if (out.kind != "gguf") return false;
  SYRINX_TRY(const GgufFile file, GgufFile::parse(inspected.bytes, out.path));
  if (!llama::read_config(file, out.path)) return false;
  out.model = "llama";
  return true;
}

}  // namespace

const ChatFamily& llama_family() {
  static const ChatFamily family{
      .kind = "llama",
      .title = "Llama",
      .maker = "Meta, Alibaba, Hugging Face and others",
      .url = "https://github.com/ggml-org/llama.cpp",
      .files = "a .gguf, or model.safetensors with config.json, of Llama's kind",
      .recognise = recognise,
      .find_files = find_files,
      .load = [](ChatEngineOptions options) { return LlamaEngine::load(std::move(options)); },
      .describe = describe,
      .precisions = kPrecisions};
  return family;
}

}  // namespace syrinx
