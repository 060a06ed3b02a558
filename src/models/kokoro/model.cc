#include "models/kokoro/model.h"

#include <fmt/format.h>

#include "models/kokoro/checkpoint.h"
#include "models/kokoro/weights.h"
#include "tensor/content_key.h"

namespace syrinx::kokoro {
namespace {
// Part of the key of a packed cache: raise it whenever the packed form or what goes into it changes.
constexpr int kPackedLayout = 3;
}  // namespace

const char* precision_name(Precision precision) { return precision == Precision::kF32 ? "f32" : "int8"; }

Model::Model() = default;
Model::~Model() = default;
Precision Model::precision() const { return weights_->precision; }
size_t Model::weight_bytes() const { return weights_->file.size_bytes(); }
size_t Model::style_width() const { return 2 * size_t{weights_->config.style}; }

namespace {

// The packed form that an earlier load left, if it is whole and made from the same content.
std::unique_ptr<Weights> cached(const std::string& path, const std::string& key, Precision precision) {
  auto mapped = MappedFile::open(path);
  if (!mapped) return nullptr;
  auto packed = PackedFile::open(std::move(*mapped), key);
  if (!packed || !packed->check_all()) return nullptr;
  auto bound = Weights::bind(std::move(*packed), precision);
  return bound ? std::move(*bound) : nullptr;
}

}  // namespace

Result<std::shared_ptr<const Model>> Model::load(MappedFile file, const LoadOptions& options) {
  std::shared_ptr<Model> model(new Model());
  std::string path, key = "unnamed";
  if (!options.cache_dir.empty()) {
    const std::string hash = content_key(file, options.cache_dir);
    key = fmt::format("kokoro {} layout {} {}", precision_name(options.precision), kPackedLayout, hash);
    path =
        fmt::format("{}/kokoro-{}-{}.packed", options.cache_dir, precision_name(options.precision), hash.substr(0, 16));
    model->weights_ = cached(path, key, options.precision);
    if (model->weights_ != nullptr) return model;
  }
  SYRINX_TRY(const std::unique_ptr<Checkpoint> checkpoint, Checkpoint::open(std::move(file)));
  auto packed = Weights::pack(*checkpoint, options.precision, path, key);
  // A cache that cannot be written (read-only home, full disk) must not stop the voice: pack in memory instead.
  if (!packed && packed.error().code == Code::kIo && !path.empty())
    packed = Weights::pack(*checkpoint, options.precision, "", key);
  if (!packed) return tl::unexpected(packed.error());
  model->weights_ = std::move(*packed);
  return model;
}

}  // namespace syrinx::kokoro
