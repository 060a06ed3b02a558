#include "engine/families/qwen_tts/qwen_remote.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <string_view>

#include "base/mapped_file.h"
#include "engine/speech/remote_files.h"
#include "models/qwen_tts/checkpoint.h"
#include "store/paths.h"
#include "tensor/safetensors_shards.h"

namespace syrinx {
namespace {

namespace fs = std::filesystem;

constexpr const char* kWeights = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";
constexpr const char* kParts[] = {"generation_config.json",
                                  "vocab.json",
                                  "merges.txt",
                                  "tokenizer_config.json",
                                  "speech_tokenizer/config.json",
                                  "speech_tokenizer/model.safetensors"};

// The place of a file that lies beside the configuration; a revision and what follows stays behind it.
std::string beside(const std::string& model, std::string_view file) {
  const size_t end = std::min(model.find('@', model.find("://") + 3), model.find_first_of("?#"));
  const std::string_view path = std::string_view(model).substr(0, end);
  const size_t slash = path.rfind('/');
  std::string place(path.substr(0, slash + 1));
  place += file;
  if (end < model.size()) place += model.substr(end);
  return place;
}

// The weights are one file, or those that an index names.
Result<std::vector<std::string>> weight_files(const std::string& model) {
  auto index = fetch(beside(model, kIndex));
  if (!index && index.error().code == Code::kCancelled) return tl::unexpected(std::move(index).error());
  if (!index) return std::vector<std::string>{kWeights};
  SYRINX_TRY(const MappedFile file, MappedFile::open(*index));
  const std::string_view json(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  SYRINX_TRY(const SafetensorsIndex parsed, parse_safetensors_index(json, *index));
  return parsed.files;
}

}  // namespace

Result<std::vector<std::string>> qwen_remote_parts(const std::string& config, const std::string& model) {
  std::vector<std::string> parts;
  if (!is_remote(model) || fs::path(config).filename() != "config.json") return parts;
  if (!qwen_tts::Checkpoint::recognises(config)) return parts;
  const fs::path folder = fs::path(config).parent_path();
  for (const char* const name : kParts)
    if (!is_there((folder / name).string())) parts.push_back(beside(model, name));
  if (is_there((folder / kWeights).string())) return parts;
  SYRINX_TRY(const std::vector<std::string> weights, weight_files(model));
  for (const std::string& name : weights)
    if (!is_there((folder / name).string())) parts.push_back(beside(model, name));
  return parts;
}

Status fetch_qwen_parts(const std::string& config, const std::string& model) {
  SYRINX_TRY(const std::vector<std::string> parts, qwen_remote_parts(config, model));
  for (const std::string& part : parts) SYRINX_TRY_VOID(fetch(part));
  return {};
}

}  // namespace syrinx
