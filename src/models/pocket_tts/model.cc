#include "models/pocket_tts/model.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "kernels/dispatch.h"
#include "kernels/matrix_store.h"
#include "models/pocket_tts/config_file.h"
#include "tensor/content_key.h"
#include "text/tokens/sentencepiece_file.h"
#include "text/tokens/tokenizer_json.h"

namespace syrinx::pocket {
namespace {

namespace fs = std::filesystem;

constexpr const char* kConfigName = "config.yaml";
// Part of the key of a packed cache: raise it whenever the packed form or what goes into it changes.
constexpr int kPackedLayout = 3;
constexpr size_t kMaxListed = 10000;  // entries of a folder that are looked at

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

bool is_config_name(const fs::path& path) { return path.extension() == ".yaml" || path.extension() == ".yml"; }

// config.yaml, else the folder's only configuration.
Result<std::string> config_in(const fs::path& folder) {
  if (is_there(folder / kConfigName)) return (folder / kConfigName).string();
  std::vector<std::string> found;
  std::error_code error;
  size_t looked = 0;
  for (fs::directory_iterator entry(folder, error); !error && entry != fs::directory_iterator() && looked < kMaxListed;
       entry.increment(error), ++looked)
    if (is_config_name(entry->path())) found.push_back(entry->path().string());
  if (found.empty())
    return fail(Code::kNotFound, "the folder '{}' holds no configuration of Pocket TTS; put its {} beside the weights",
                folder.string(), kConfigName);
  if (found.size() > 1)
    return fail(Code::kInvalidArgument, "the folder '{}' holds {} configurations; name the one that is meant",
                folder.string(), found.size());
  return found.front();
}

fs::path folder_of(const fs::path& file) { return file.has_parent_path() ? file.parent_path() : fs::path("."); }

// hf:// and http(s)://; everything else is a path.
bool is_remote(std::string_view place) { return place.find("://") != std::string_view::npos; }

// "hf://kyutai/pocket-tts/languages/english/model.safetensors@db04f0e6" -> "model.safetensors".
std::string last_name(std::string_view place) {
  place = place.substr(0, place.find_first_of("?#"));
  place = place.substr(place.find_last_of('/') + 1);
  return std::string(place.substr(0, place.find('@')));
}

// The local file of a place that the configuration names under `key`.
Result<std::string> resolve(const std::string& place, const char* key, const std::string& config_path,
                            const LoadOptions& options) {
  const fs::path folder = folder_of(config_path);
  if (!is_remote(place)) {
    const fs::path path = folder / place;  // an absolute path stays
    if (!is_there(path))
      return fail(Code::kNotFound, "'{}': {} names '{}', but there is no '{}'", config_path, key, place, path.string());
    return path.string();
  }
  const std::string name = last_name(place);
  const fs::path path = folder / name;
  if (!name.empty() && is_there(path)) return path.string();
  if (options.locate) return options.locate(place);
  return fail(Code::kNotFound, "'{}': {} names '{}'; fetch that file and put it beside the configuration", config_path,
              key, place);
}

std::string_view text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

bool holds(const Safetensors& tensors, std::string_view prefix) {
  return std::any_of(tensors.tensors().begin(), tensors.tensors().end(),
                     [&](const TensorRef& tensor) { return tensor.name.starts_with(prefix); });
}

}  // namespace

Result<CheckpointPath> find_checkpoint(const std::string& path) {
  const fs::path place(path);
  std::error_code error;
  if (!is_there(place)) return fail(Code::kNotFound, "there is no file or folder '{}'", path);
  if (fs::is_directory(place, error)) {
    SYRINX_TRY(std::string config, config_in(place));
    return CheckpointPath{.config = std::move(config), .weights = {}};
  }
  if (is_config_name(place)) return CheckpointPath{.config = path, .weights = {}};
  if (place.extension() != ".safetensors")
    return fail(Code::kInvalidArgument,
                "'{}' is not a checkpoint of Pocket TTS: give a folder, a .yaml or a .safetensors", path);
  for (const char* extension : {".yaml", ".yml"}) {
    const fs::path config = fs::path(place).replace_extension(extension);
    if (is_there(config)) return CheckpointPath{.config = config.string(), .weights = path};
  }
  SYRINX_TRY(std::string config, config_in(folder_of(place)));
  return CheckpointPath{.config = std::move(config), .weights = path};
}

Result<Model::Tensors> Model::open(const std::string& path) {
  Tensors out;
  SYRINX_TRY(out.file, MappedFile::open(path));
  SYRINX_TRY(out.tensors, Safetensors::parse(out.file.bytes(), path));
  return out;
}

Result<std::shared_ptr<const Model>> Model::load(const std::string& path, const LoadOptions& options) {
  SYRINX_TRY(const CheckpointPath place, find_checkpoint(path));
  std::shared_ptr<Model> model(new Model());
  model->config_path_ = place.config;
  model->precision_ = options.precision;
  {
    SYRINX_TRY(const MappedFile file, MappedFile::open(place.config));
    SYRINX_TRY(ConfigFile read, parse_config(text_of(file), place.config));
    model->config_ = std::move(read.config);
    model->warnings_ = std::move(read.warnings);
  }
  if (model->config_.mimi.sample_rate != kSampleRateHz)
    return fail(Code::kUnsupported, "'{}': the codec makes {} samples a second, only {} can be spoken", place.config,
                model->config_.mimi.sample_rate, kSampleRateHz);
  // The tokenizer first: it is small, and what is wrong with it need not wait for the weights.
  SYRINX_TRY_VOID(model->load_tokenizer(options));
  SYRINX_TRY_VOID(model->load_weights(place, options));
  return std::shared_ptr<const Model>(std::move(model));
}

Status Model::load_tokenizer(const LoadOptions& options) {
  const FlowLmConfig& c = config_.flow_lm;
  SYRINX_TRY(const std::string path, resolve(c.tokenizer_path, "tokenizer_path", config_path_, options));
  SYRINX_TRY(const MappedFile file, MappedFile::open(path));
  auto tokenizer = c.tokenizer == TokenizerKind::kJson ? text::read_tokenizer_json(text_of(file), path)
                                                       : text::read_sentencepiece(file.bytes(), path);
  if (!tokenizer) return tl::unexpected(std::move(tokenizer).error());
  if (tokenizer->size() != c.text_bins)
    return fail(Code::kDataLoss,
                "the tokenizer '{}' has {} pieces, but '{}' says n_bins: {}; the two must come from one download", path,
                tokenizer->size(), config_path_, c.text_bins);
  tokenizer_ = std::move(*tokenizer);
  return {};
}

Model::PackedPlace Model::packed_place(const LoadOptions& options) const {
  if (options.cache_dir.empty()) return {};
  std::error_code ignored;  // what cannot be made cannot be written either, which is no error
  fs::create_directories(options.cache_dir, ignored);
  const char* const precision = precision_name(options.precision);
  std::string content = content_key(weights_.file, options.cache_dir);
  const std::string name = fmt::format("pocket-tts-{}-{}", precision, content.substr(0, 16));
  if (codec_) content += " " + content_key(codec_->file, options.cache_dir);
  return {.path = fmt::format("{}/{}.packed", options.cache_dir, name),
          .key = fmt::format("pocket-tts {} layout {} {} {}", precision, kPackedLayout, kernels::chosen_target_name(),
                             content)};
}

Status Model::load_weights(const CheckpointPath& path, const LoadOptions& options) {
  std::string weights = path.weights;
  if (weights.empty() && !config_.weights_path.empty()) {
    auto found = resolve(config_.weights_path, "weights_path", config_path_, options);
    // As the maker does where the terms of the gated weights have not been accepted.
    if (!found && !config_.weights_path_without_voice_cloning.empty()) {
      auto other = resolve(config_.weights_path_without_voice_cloning, "weights_path_without_voice_cloning",
                           config_path_, options);
      without_cloning_ = other.has_value();
      if (other) found = std::move(other);
    }
    if (!found) return tl::unexpected(std::move(found).error());
    weights = std::move(*found);
  } else if (weights.empty() && !config_.weights_path_without_voice_cloning.empty()) {
    SYRINX_TRY(weights, resolve(config_.weights_path_without_voice_cloning, "weights_path_without_voice_cloning",
                                config_path_, options));
    without_cloning_ = true;
  }
  if (weights.empty() && config_.flow_lm_weights_path.empty())
    return fail(Code::kDataLoss, "'{}' names no weights; it needs a weights_path", config_path_);
  if (weights.empty())
    return fail(Code::kUnsupported,
                "'{}' names files of training only; save the model in the published form and give its weights_path",
                config_path_);
  SYRINX_TRY(weights_, open(weights));
  if (path.weights.empty() && !config_.mimi_weights_path.empty()) {
    SYRINX_TRY(const std::string codec, resolve(config_.mimi_weights_path, "mimi.weights_path", config_path_, options));
    SYRINX_TRY(codec_, open(codec));
    if (!holds(codec_->tensors, "mimi."))
      return fail(Code::kUnsupported, "'{}' holds no tensor mimi.*: files of training are not read, published ones are",
                  codec);
  }
  const PackedPlace packed = packed_place(options);
  SYRINX_TRY_VOID(kernels::read_kept(packed.path, packed.key, [&](kernels::MatrixStore& store) -> Status {
    flow_lm_ = nullptr;
    decoder_ = nullptr;
    SYRINX_TRY(FlowLmWeights flow_lm,
               read_flow_lm(weights_.tensors, config_.flow_lm, config_.mimi.latent, config_.mimi.inner_width, weights,
                            options.precision, &store, &weights_.file, options.team));
    SYRINX_TRY(mimi::DecoderWeights decoder, mimi::DecoderWeights::load(codec().tensors, codec().file.path(),
                                                                        config_.mimi, options.precision, &store));
    flow_lm_ = std::make_shared<const FlowLmWeights>(std::move(flow_lm));
    decoder_ = std::make_shared<const mimi::DecoderWeights>(std::move(decoder));
    return {};
  }));
  // All that is needed to speak has been packed; the pages would count as this process's memory.
  weights_.file.release();
  if (codec_) codec_->file.release();
  return {};
}

Result<std::shared_ptr<const mimi::EncoderWeights>> Model::load_encoder() const {
  if (without_cloning_)
    return fail(Code::kUnsupported,
                "'{}' are the weights without voice cloning; use a voice file, or the weights with cloning",
                weights_path());
  SYRINX_TRY(mimi::EncoderWeights encoder,
             mimi::EncoderWeights::load(codec().tensors, codec().file.path(), config_.mimi, precision_));
  codec().file.release();
  return std::make_shared<const mimi::EncoderWeights>(std::move(encoder));
}

}  // namespace syrinx::pocket
