#include "models/transducer/model.h"

#include <filesystem>

#include "kernels/dispatch.h"
#include "kernels/matrix_store.h"

namespace syrinx::transducer {
namespace {

// Goes up when what is packed, or how, changes.
constexpr int kPackedLayout = 1;

struct PackedPlace {
  std::string path, key;
};

PackedPlace packed_place(const Checkpoint& checkpoint, const LoadOptions& options) {
  if (options.cache_folder.empty()) return {};
  std::error_code ignored;  // what cannot be made cannot be written either, which is no error
  std::filesystem::create_directories(options.cache_folder, ignored);
  const char* const precision = precision_name(options.precision);
  const std::string content = checkpoint.key(options.cache_folder);
  return {.path = fmt::format("{}/transducer-{}-{}.packed", options.cache_folder, precision, content.substr(0, 16)),
          .key = fmt::format("transducer {} layout {} {} {}", precision, kPackedLayout, kernels::chosen_target_name(),
                             content)};
}

}  // namespace

Result<std::shared_ptr<const Model>> Model::load(const std::string& path, const LoadOptions& options) {
  if (options.precision == Precision::kInt4)
    return fail(Code::kUnsupported, "FastConformer models run in f32, bf16 and int8, not in int4");
  SYRINX_TRY(const Checkpoint checkpoint, Checkpoint::open(path));
  std::shared_ptr<Model> model(new Model(checkpoint, options.precision));
  SYRINX_TRY_VOID(model->read(checkpoint, options));
  return std::shared_ptr<const Model>(std::move(model));
}

// What had to be packed is packed into the cache, and then taken from there: so all lies in one run of memory.  A
// damaged cache is found in the first pass and made anew in the second.
Status Model::read(const Checkpoint& checkpoint, const LoadOptions& options) {
  constexpr int kPasses = 3;
  const PackedPlace packed = packed_place(checkpoint, options);
  bool again = true;
  for (int pass = 0; again && pass < kPasses; ++pass) {
    encoder_ = nullptr;
    decoder_ = nullptr;
    kernels::MatrixStore store = kernels::MatrixStore::open(packed.path, packed.key);
    WeightReader reader(checkpoint, options.precision, &store);
    SYRINX_TRY(Features features, Features::make(reader, config_.features));
    EncoderWeights encoder = read_encoder(reader, config_.encoder);
    DecoderWeights decoder = read_decoder(reader, config_);
    SYRINX_TRY_VOID(reader.finish());
    decoder.packed = encoder.packed = store.file();
    features_ = std::make_shared<const Features>(std::move(features));
    encoder_ = std::make_shared<const EncoderWeights>(std::move(encoder));
    decoder_ = std::make_shared<const DecoderWeights>(std::move(decoder));
    again = store.finish();
  }
  checkpoint.release();
  return {};
}

}  // namespace syrinx::transducer
