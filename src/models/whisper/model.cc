#include "models/whisper/model.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "base/mapped_file.h"
#include "kernels/dispatch.h"
#include "kernels/matrix_store.h"
#include "tensor/content_key.h"

namespace syrinx::whisper {
namespace {

namespace fs = std::filesystem;

constexpr const char* kWeightNames[] = {"model.bin", "model.safetensors", "model.safetensors.index.json", "model.pt"};
constexpr const char* kConfigNames[] = {"config.json", "generation_config.json"};
// Part of the key of a packed cache: raise it whenever the packed form or what goes into it changes.
constexpr int kPackedLayout = 1;

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

Result<fs::path> find_weights(const std::string& path) {
  const fs::path place(path);
  std::error_code error;
  if (!is_there(place)) return fail(Code::kNotFound, "there is no file or folder '{}'", path);
  if (!fs::is_directory(place, error)) return place;
  for (const char* name : kWeightNames)
    if (is_there(place / name)) return place / name;
  return fail(Code::kNotFound, "the folder '{}' holds no Whisper model; it needs {}", path,
              fmt::join(kWeightNames, ", or "));
}

struct PackedPlace {
  std::string path, key;  // empty: nothing is kept
};

PackedPlace packed_place(const Checkpoint& checkpoint, const LoadOptions& options) {
  if (options.cache_folder.empty()) return {};
  std::error_code ignored;  // what cannot be made cannot be written either, which is no error
  fs::create_directories(options.cache_folder, ignored);
  const char* const precision = precision_name(options.precision);
  const std::string content = content_key(checkpoint.files(), options.cache_folder);
  return {.path = fmt::format("{}/whisper-{}-{}.packed", options.cache_folder, precision, content.substr(0, 16)),
          .key = fmt::format("whisper {} layout {} {} {}", precision, kPackedLayout, kernels::chosen_target_name(),
                             content)};
}

}  // namespace

Result<std::shared_ptr<const Model>> Model::load(const std::string& path, const LoadOptions& options) {
  if (options.precision == Precision::kInt4)
    return fail(Code::kUnsupported, "Whisper is computed in f32, bf16 or int8, not in int4");
  SYRINX_TRY(const fs::path place, find_weights(path));
  std::shared_ptr<Model> model(new Model());
  model->path_ = place.string();
  model->folder_ = place.has_parent_path() ? place.parent_path().string() : ".";
  SYRINX_TRY(const Checkpoint checkpoint, Checkpoint::open(model->path_));
  SYRINX_TRY_VOID(model->read(checkpoint, options));
  return std::shared_ptr<const Model>(std::move(model));
}

std::shared_ptr<const Model> Model::of(Weights weights) {
  std::shared_ptr<Model> model(new Model());
  model->weights_ = std::move(weights);
  return model;
}

Status Model::read(const Checkpoint& checkpoint, const LoadOptions& options) {
  SYRINX_TRY(Config config, config_of(checkpoint));
  for (const char* name : kConfigNames) {
    const std::string path = (fs::path(folder_) / name).string();
    if (!is_there(path)) continue;
    SYRINX_TRY(const MappedFile file, MappedFile::open(path));
    SYRINX_TRY_VOID(add_json({reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()}, path, config));
  }
  SYRINX_TRY_VOID(check_config(config, path_));
  const PackedPlace packed = packed_place(checkpoint, options);
  SYRINX_TRY_VOID(kernels::read_kept(packed.path, packed.key, [&](kernels::MatrixStore& store) -> Status {
    weights_ = {};
    SYRINX_TRY(weights_, read_weights(checkpoint, config, options.precision, store, options.team));
    return {};
  }));
  // All that is needed has been packed; the pages would count as this process's memory.
  for (const MappedFile& file : checkpoint.files()) file.release();
  return {};
}

}  // namespace syrinx::whisper
