#include "engine/families/qwen_tts/qwen_model.h"

#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/mapped_file.h"
#include "kernels/dispatch.h"
#include "kernels/matrix_store.h"
#include "store/paths.h"
#include "tensor/content_key.h"
#include "tensor/safetensors.h"

namespace syrinx {
namespace {

namespace fs = std::filesystem;

constexpr int kPackedLayout = 1;

std::string_view text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

std::string config_path(const std::string& path) {
  const fs::path place(path);
  const fs::path folder = is_folder(path) ? place : place.has_parent_path() ? place.parent_path() : fs::path(".");
  return (folder / "config.json").string();
}

// The codec computes in f32 or in bf16.
Precision codec_precision(Precision precision) {
  return precision == Precision::kF32 ? Precision::kF32 : Precision::kBf16;
}

// Where the packed matrices are kept, and what they belong to; empty: nowhere.
struct PackedCodec {
  std::string path, key;
};

PackedCodec packed_codec(const MappedFile& file, Precision precision, const std::string& cache_folder) {
  if (cache_folder.empty()) return {};
  std::error_code ignored;  // what cannot be made cannot be written either, which is no error
  fs::create_directories(cache_folder, ignored);
  const char* const name = precision_name(precision);
  const std::string content = content_key(file, cache_folder);
  return {
      .path = fmt::format("{}/qwen-codec-{}-{}.packed", cache_folder, name, content.substr(0, 16)),
      .key = fmt::format("qwen-codec {} layout {} {} {}", name, kPackedLayout, kernels::chosen_target_name(), content)};
}

}  // namespace

Result<qwen_tts::Config> read_qwen_config(const std::string& path) {
  const std::string name = config_path(path);
  SYRINX_TRY(const MappedFile file, MappedFile::open(name));
  return qwen_tts::read_config(text_of(file), name);
}

Result<std::shared_ptr<const QwenModel>> QwenModel::load(const std::string& path, const Options& options) {
  SYRINX_TRY(qwen_tts::Checkpoint checkpoint, qwen_tts::Checkpoint::open(path));
  SYRINX_TRY(qwen_tts::Tokenizer tokenizer, qwen_tts::Tokenizer::load(checkpoint.folder(), checkpoint.config()));
  std::shared_ptr<QwenModel> model(new QwenModel(std::move(checkpoint), std::move(tokenizer)));
  SYRINX_TRY_VOID(model->load_codec(options));
  SYRINX_TRY_VOID(model->check_codec());
  SYRINX_TRY(model->weights_, qwen_tts::load_weights(model->checkpoint_, {.precision = options.precision,
                                                                          .cache_folder = options.cache_folder,
                                                                          .team = options.team}));
  return std::shared_ptr<const QwenModel>(std::move(model));
}

Status QwenModel::load_codec(const Options& options) {
  SYRINX_TRY(codec_folder_, qwen_tts::find_codec(checkpoint_.folder()));
  const std::string config_name = codec_folder_ + "/config.json", name = codec_folder_ + "/model.safetensors";
  SYRINX_TRY(const MappedFile config, MappedFile::open(config_name));
  SYRINX_TRY(codec_config_, qwen_tts::read_codec_config(text_of(config), config_name));
  SYRINX_TRY(const MappedFile file, MappedFile::open(name));
  SYRINX_TRY(const Safetensors tensors, Safetensors::parse(file.bytes(), name));
  const Precision precision = codec_precision(options.precision);
  const PackedCodec packed = packed_codec(file, precision, options.cache_folder);
  std::shared_ptr<qwen_tts::CodecDecoderWeights> weights;
  const auto read = [&](kernels::MatrixStore& store) -> Status {
    weights = nullptr;
    SYRINX_TRY(
        qwen_tts::CodecDecoderWeights loaded,
        qwen_tts::CodecDecoderWeights::load({.find = [&](std::string_view tensor) { return tensors.find(tensor); },
                                             .release = [&file] { file.release(); },
                                             .team = options.team},
                                            name, codec_config_, precision, &store));
    weights = std::make_shared<qwen_tts::CodecDecoderWeights>(std::move(loaded));
    return {};
  };
  SYRINX_TRY_VOID(kernels::read_kept(packed.path, packed.key, read, kernels::Written::kGoes));
  file.release();
  codec_ = std::move(weights);
  return {};
}

// The codec decodes all that the talker draws.
Status QwenModel::check_codec() const {
  const qwen_tts::Config& talker = config();
  const qwen_tts::CodecDecoderConfig& codec = codec_->config;
  if (codec_config_.sample_rate != kSampleRateHz)
    return fail(Code::kUnsupported, "the codec in '{}' has {} Hz; this build speaks at {} Hz", codec_folder_,
                codec_config_.sample_rate, kSampleRateHz);
  if (talker.codebooks != codec.codebooks)
    return fail(Code::kUnsupported,
                "'{}' makes frames of {} codes, and the codec in '{}' takes {}; fetch both of one model",
                checkpoint_.folder(), talker.codebooks, codec_folder_, codec.codebooks);
  if (talker.codes() > codec.codebook_size || talker.predictor_codes > codec.codebook_size)
    return fail(
        Code::kUnsupported, "'{}' draws codes up to {}, and the codec in '{}' knows {}; fetch both of one model",
        checkpoint_.folder(), std::max(talker.codes(), talker.predictor_codes), codec_folder_, codec.codebook_size);
  return {};
}

}  // namespace syrinx
