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

PackedPlace packed_place(const Checkpoint& checkpoint, HeadKind head, const LoadOptions& options) {
  if (options.cache_folder.empty()) return {};
  std::error_code ignored;  // what cannot be made cannot be written either, which is no error
  std::filesystem::create_directories(options.cache_folder, ignored);
  const char* const precision = precision_name(options.precision);
  // A hybrid decoded by its CTC head needs fewer weights.
  const bool less = head == HeadKind::kCtc && checkpoint.config().decoder.kind != HeadKind::kCtc;
  const char* const what = less ? "ctc" : "transducer";
  const std::string content = checkpoint.key(options.cache_folder);
  return {.path = fmt::format("{}/{}-{}-{}.packed", options.cache_folder, what, precision, content.substr(0, 16)),
          .key = fmt::format("{} {} layout {} {} {}", what, precision, kPackedLayout, kernels::chosen_target_name(),
                             content)};
}

}  // namespace

Result<std::shared_ptr<const Model>> Model::load(const std::string& path, const LoadOptions& options) {
  if (options.precision == Precision::kInt4)
    return fail(Code::kUnsupported, "FastConformer models run in f32, bf16 and int8, not in int4");
  SYRINX_TRY(const Checkpoint checkpoint, Checkpoint::open(path));
  std::shared_ptr<Model> model(new Model(checkpoint, options.precision));
  SYRINX_TRY_VOID(model->choose_head(options.head, checkpoint.name()));
  SYRINX_TRY_VOID(model->read(checkpoint, options));
  return std::shared_ptr<const Model>(std::move(model));
}

Status Model::choose_head(std::optional<HeadChoice> head, const std::string& name) {
  DecoderConfig& decoder = config_.decoder;
  if (head == HeadChoice::kTransducer && decoder.kind == HeadKind::kCtc)
    return fail(Code::kUnsupported, "'{}' has a CTC head and no transducer's; leave the choice of a head out", name);
  if (head != HeadChoice::kCtc) return {};
  if (!decoder.ctc)
    return fail(Code::kUnsupported, "'{}' has a transducer's head and none of CTC; leave the choice of a head out",
                name);
  decoder.kind = HeadKind::kCtc;
  return {};
}

Status Model::read(const Checkpoint& checkpoint, const LoadOptions& options) {
  const PackedPlace packed = packed_place(checkpoint, config_.decoder.kind, options);
  SYRINX_TRY_VOID(kernels::read_kept(packed.path, packed.key, [&](kernels::MatrixStore& store) -> Status {
    encoder_ = nullptr;
    decoder_ = nullptr;
    WeightReader reader(checkpoint, options.precision, &store, options.team);
    // The head of a hybrid that nobody asked for.
    if (config_.decoder.kind != checkpoint.config().decoder.kind)
      for (const char* const prefix : {"decoder.prediction.", "joint."}) reader.know_prefix(prefix);
    SYRINX_TRY(Features features, Features::make(reader, config_.features));
    EncoderWeights encoder = read_encoder(reader, config_.encoder);
    DecoderWeights decoder = read_decoder(reader, config_);
    SYRINX_TRY_VOID(reader.finish());
    decoder.packed = encoder.packed = store.file();
    features_ = std::make_shared<const Features>(std::move(features));
    encoder_ = std::make_shared<const EncoderWeights>(std::move(encoder));
    decoder_ = std::make_shared<const DecoderWeights>(std::move(decoder));
    return {};
  }));
  checkpoint.release();
  return {};
}

}  // namespace syrinx::transducer
