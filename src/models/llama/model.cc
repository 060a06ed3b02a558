#include "models/llama/model.h"

#include <filesystem>
#include <functional>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "base/mapped_file.h"
#include "kernels/dispatch.h"
#include "kernels/matrix_store.h"
#include "tensor/content_key.h"
#include "tensor/safetensors.h"
#include "tensor/safetensors_shards.h"

namespace syrinx::llama {
namespace {

namespace fs = std::filesystem;

constexpr const char *kWeights = "model.safetensors", *kIndex = "model.safetensors.index.json",
                     *kConfig = "config.json";
constexpr const char* kGguf = ".gguf";
// Part of the key of a packed cache: raise it whenever the packed form or what goes into it changes.
constexpr int kPackedLayout = 2;
constexpr size_t kMaxListed = 10000;  // entries of a folder that are looked at

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

std::vector<std::string> gguf_files(const fs::path& folder) {
  std::vector<std::string> found;
  std::error_code error;
  size_t looked = 0;
  for (fs::directory_iterator entry(folder, error); !error && entry != fs::directory_iterator() && looked < kMaxListed;
       entry.increment(error), ++looked)
    if (entry->path().extension() == kGguf) found.push_back(entry->path().string());
  return found;
}

using Read = std::function<Result<Weights>(const ReadOptions& options)>;
Result<Weights> read_packed(std::span<const MappedFile> files, const Config& config, const LoadOptions& options,
                            const Read& read) {
  std::string path, key;
  if (!options.cache_folder.empty()) {
    std::error_code ignored;  // what cannot be made cannot be written either, which is no error
    fs::create_directories(options.cache_folder, ignored);
    const char* const precision = precision_name(options.precision);
    const std::string content = content_key(files, options.cache_folder);
    path = fmt::format("{}/llama-{}-{}.packed", options.cache_folder, precision, content.substr(0, 16));
    // Heads decide on an order that no shape tells; of a folder they are in another file than the weights.
    key = fmt::format("llama {} layout {} heads {} {} {} {} {}", precision, kPackedLayout, config.heads,
                      config.key_heads, config.head_size, kernels::chosen_target_name(), content);
  }
  const auto release = [files] {
    for (const MappedFile& file : files) file.release();
  };
  Weights weights;
  SYRINX_TRY_VOID(kernels::read_kept(path, key, [&](kernels::MatrixStore& store) -> Status {
    weights = {};
    SYRINX_TRY(weights,
               read({.precision = options.precision, .store = &store, .release = release, .team = options.team}));
    return {};
  }));
  release();
  return weights;
}

}  // namespace

Result<std::string> find_checkpoint(const std::string& path) {
  const fs::path place(path);
  std::error_code error;
  if (!is_there(place)) return fail(Code::kNotFound, "there is no file or folder '{}'", path);
  if (!fs::is_directory(place, error)) {
    if (place.extension() == kGguf || place.extension() == ".safetensors" || path.ends_with(kIndex)) return path;
    return fail(Code::kInvalidArgument, "'{}' is not a language model: give a folder, a .gguf or a .safetensors", path);
  }
  std::vector<std::string> found = gguf_files(place);
  if (found.size() > 1)
    return fail(Code::kInvalidArgument, "the folder '{}' holds {} files of GGUF; name the one that is meant", path,
                found.size());
  if (found.size() == 1) return std::move(found.front());
  for (const char* const name : {kWeights, kIndex})
    if (is_there(place / name)) return (place / name).string();
  return fail(Code::kNotFound, "the folder '{}' holds no language model; it needs a .gguf, or {} and {}", path,
              kWeights, kConfig);
}

Result<std::shared_ptr<const Model>> Model::load(const std::string& path, const LoadOptions& options) {
  std::shared_ptr<Model> model(new Model());
  SYRINX_TRY(model->path_, find_checkpoint(path));
  SYRINX_TRY_VOID(model->path_.ends_with(kGguf) ? model->load_gguf(options) : model->load_folder(options));
  return std::shared_ptr<const Model>(std::move(model));
}

Status Model::load_gguf(const LoadOptions& options) {
  SYRINX_TRY(const MappedFile file, MappedFile::open(path_));
  SYRINX_TRY(const GgufFile parsed, GgufFile::parse(file.bytes(), path_));
  SYRINX_TRY(const Config config, read_config(parsed, path_));
  SYRINX_TRY(Weights weights, read_packed({&file, 1}, config, options, [&](const ReadOptions& read) {
               return read_weights(parsed, config, read, path_);
             }));
  weights_ = std::make_shared<const Weights>(std::move(weights));
  return {};
}

Status Model::load_folder(const LoadOptions& options) {
  const fs::path folder = fs::path(path_).has_parent_path() ? fs::path(path_).parent_path() : fs::path(".");
  const std::string config_path = (folder / kConfig).string();
  SYRINX_TRY(const MappedFile json, MappedFile::open(config_path));
  SYRINX_TRY(const Config config,
             read_config({reinterpret_cast<const char*>(json.bytes().data()), json.bytes().size()}, config_path));
  SafetensorsShards shards;
  if (is_safetensors_index(path_)) {
    SYRINX_TRY(shards, open_safetensors_shards(path_));
  } else {
    SYRINX_TRY(MappedFile file, MappedFile::open(path_));
    SYRINX_TRY(const Safetensors parsed, Safetensors::parse(file.bytes(), path_));
    shards.tensors = parsed.tensors();
    shards.files.push_back(std::move(file));
  }
  SYRINX_TRY(Weights weights, read_packed(shards.files, config, options, [&](const ReadOptions& read) {
               return read_weights(shards.tensors, config, read, path_);
             }));
  weights_ = std::make_shared<const Weights>(std::move(weights));
  return {};
}

}  // namespace syrinx::llama
