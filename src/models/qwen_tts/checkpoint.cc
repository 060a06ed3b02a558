#include "models/qwen_tts/checkpoint.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/mapped_file.h"
#include "tensor/safetensors.h"

namespace syrinx::qwen_tts {
namespace {

namespace fs = std::filesystem;

constexpr const char *kConfig = "config.json", *kGeneration = "generation_config.json", *kCodec = "speech_tokenizer";
constexpr const char *kWeights = "model.safetensors", *kIndex = "model.safetensors.index.json";
constexpr const char* kCodecRepository = "Qwen3-TTS-Tokenizer";
constexpr size_t kMaxListed = 10000;  // entries of a folder that are looked at

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

bool is_codec(const fs::path& folder) { return is_there(folder / kConfig) && is_there(folder / kWeights); }

std::string_view text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

fs::path folder_of(const std::string& path) {
  std::error_code error;
  fs::path place(path);
  if (fs::is_directory(place, error)) return place;
  return place.has_parent_path() ? place.parent_path() : fs::path(".");
}

Result<SafetensorsShards> open_tensors(const fs::path& folder) {
  const fs::path whole = folder / kWeights, index = folder / kIndex;
  if (!is_there(whole) && is_there(index)) return open_safetensors_shards(index.string());
  if (!is_there(whole))
    return fail(Code::kNotFound, "the folder '{}' holds neither {} nor {}", folder.string(), kWeights, kIndex);
  SafetensorsShards shards;
  SYRINX_TRY(MappedFile file, MappedFile::open(whole.string()));
  SYRINX_TRY(const Safetensors parsed, Safetensors::parse(file.bytes(), whole.string()));
  shards.tensors = parsed.tensors();
  shards.files.push_back(std::move(file));
  return shards;
}

}  // namespace

Result<Checkpoint> Checkpoint::open(const std::string& path) {
  if (!is_there(path)) return fail(Code::kNotFound, "there is no file or folder '{}'", path);
  const fs::path folder = folder_of(path);
  Checkpoint opened;
  opened.folder_ = folder.string();
  const std::string config_path = (folder / kConfig).string(), generation_path = (folder / kGeneration).string();
  if (!is_there(config_path))
    return fail(Code::kNotFound, "the folder '{}' holds no {}, which must lie beside the weights", folder.string(),
                kConfig);
  SYRINX_TRY(const MappedFile config, MappedFile::open(config_path));
  SYRINX_TRY(opened.config_, read_config(text_of(config), config_path));
  if (is_there(generation_path)) {
    SYRINX_TRY(const MappedFile generation, MappedFile::open(generation_path));
    SYRINX_TRY(opened.generation_, read_generation_config(text_of(generation), generation_path));
  }
  SYRINX_TRY(opened.tensors_, open_tensors(folder));
  return opened;
}

bool Checkpoint::recognises(const std::string& path) {
  const auto file = MappedFile::open((folder_of(path) / kConfig).string());
  if (!file) return false;
  constexpr size_t kMaxBytes = size_t{1} << 20;
  const auto json = parse_json(text_of(*file), kConfig, {.max_bytes = kMaxBytes, .max_depth = 16});
  const Json* const type = json ? json->find("model_type") : nullptr;
  return type != nullptr && type->string() != nullptr && *type->string() == "qwen3_tts";
}

Result<std::string> find_codec(const std::string& folder) {
  std::error_code error;
  const fs::path own(folder), whole = fs::weakly_canonical(own, error);
  const fs::path beside = error ? own / ".." : whole.parent_path();
  for (const fs::path& place : {own / kCodec, beside / kCodec})
    if (is_codec(place)) return place.string();
  std::vector<fs::path> found;
  size_t looked = 0;
  for (fs::directory_iterator entry(beside, error); !error && entry != fs::directory_iterator() && looked < kMaxListed;
       entry.increment(error), ++looked)
    if (entry->path().filename().string().starts_with(kCodecRepository) && is_codec(entry->path()))
      found.push_back(entry->path());
  if (!found.empty()) return std::min_element(found.begin(), found.end())->string();
  return fail(Code::kNotFound,
              "'{}' holds no codec; its folder {} with {} and {} must lie in it or beside it, or {}-12Hz beside it",
              folder, kCodec, kConfig, kWeights, kCodecRepository);
}

}  // namespace syrinx::qwen_tts
