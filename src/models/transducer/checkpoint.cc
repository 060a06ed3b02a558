#include "models/transducer/checkpoint.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/in_quotes.h"
#include "base/sha256.h"
#include "models/transducer/config_file.h"
#include "models/transducer/transformers_names.h"
#include "tensor/content_key.h"
#include "tensor/safetensors.h"
#include "tensor/safetensors_shards.h"
#include "tensor/tar.h"
#include "tensor/torch_file.h"
#include "tensor/zip.h"
#include "text/tokens/pieces_json.h"

namespace syrinx::transducer {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxArchiveBytes = size_t{16} << 30;  // unpacked; the largest published one has 4.3 GB
// Values that are turned round take at most so many times the bytes of their file: tensors may share them.
constexpr size_t kMaxTurnedShare = 4;
constexpr std::string_view kConfigName = "model_config.yaml", kJsonName = "config.json";
constexpr std::string_view kWeightsName = "model_weights.ckpt", kTokenizerName = "tokenizer.model";
constexpr std::string_view kJsonTokenizerName = "tokenizer.json";
constexpr std::string_view kProcessorName = "processor_config.json", kPreprocessorName = "preprocessor_config.json";
constexpr std::string_view kNested = "state_dict.";

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Files beside the weights: members of the archive, or files of the folder.
struct Members {
  std::vector<TarMember> members;
  std::vector<MappedFile> files;  // that the bytes belong to

  const TarMember* find(std::string_view name) const {
    const auto at = std::find_if(members.begin(), members.end(), [&](const TarMember& m) { return m.name == name; });
    return at == members.end() ? nullptr : &*at;
  }
  const TarMember* find_end(std::string_view end) const {
    const auto at =
        std::find_if(members.begin(), members.end(), [&](const TarMember& m) { return m.name.ends_with(end); });
    return at == members.end() ? nullptr : &*at;
  }
};

// The file with the weights that a path means.
Result<std::string> weights_path(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return path;
  std::vector<std::string> archives;
  for (fs::directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error))
    if (entry->path().extension() == ".nemo") archives.push_back(entry->path().string());
  if (archives.size() == 1) return archives.front();
  if (archives.size() > 1)
    return fail(Code::kInvalidArgument, "'{}' holds {} .nemo files; name one of them", path, archives.size());
  for (const std::string_view name :
       {std::string_view("model.safetensors"), std::string_view("model.safetensors.index.json"), kWeightsName}) {
    const std::string candidate = (fs::path(path) / name).string();
    if (fs::exists(candidate, error)) return candidate;
  }
  return fail(Code::kNotFound, "'{}' holds no .nemo file, no model.safetensors and no {}", path, kWeightsName);
}

bool is_beside(std::string_view name) {
  for (const std::string_view known : {kConfigName, kJsonName, kJsonTokenizerName, kProcessorName, kPreprocessorName})
    if (name == known) return true;
  return name.ends_with(kTokenizerName);
}

// The configuration and the tokenizers in the folder of a file of weights, in the order of their names.
Result<Members> members_beside(const std::string& path) {
  Members out;
  std::error_code error;
  const fs::path file(path), folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
  std::vector<std::string> names;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (is_beside(name)) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    SYRINX_TRY(MappedFile mapped, MappedFile::open((folder / name).string()));
    out.members.push_back({.name = name, .bytes = mapped.bytes()});
    out.files.push_back(std::move(mapped));
  }
  return out;
}

Result<Vocabulary> read_vocabulary(const Config& config, const Members& members, const std::string& name) {
  const TarMember* tokenizer = config.tokenizer.empty() ? nullptr : members.find(config.tokenizer);
  if (tokenizer == nullptr && !config.character_model) tokenizer = members.find_end(kTokenizerName);
  const TarMember* const json = members.find(kJsonTokenizerName);
  std::optional<Vocabulary> out;
  if (tokenizer != nullptr) {
    SYRINX_TRY(text::StoredPieces pieces,
               text::read_sentencepiece_pieces(tokenizer->bytes, name + ":" + shortened(tokenizer->name)));
    out = Vocabulary::from_pieces(std::move(pieces));
  } else if (json != nullptr) {
    SYRINX_TRY(text::StoredPieces pieces,
               text::read_pieces_json(text_of(json->bytes), name + ":" + shortened(json->name)));
    // The blank, and padding that only training sees, stand behind the labels.
    if (pieces.pieces.size() > config.decoder.vocabulary) pieces.pieces.resize(config.decoder.vocabulary);
    out = Vocabulary::from_pieces(std::move(pieces));
  } else if (!config.labels.empty()) {
    out = Vocabulary::from_labels(config.labels, config.character_model);
  } else {
    return fail(Code::kDataLoss, "'{}' has neither a tokenizer nor a list of labels", name);
  }
  if (out->size() != config.decoder.vocabulary)
    return fail(Code::kDataLoss, "'{}' has {} pieces, but its head knows {} labels", name, out->size(),
                config.decoder.vocabulary);
  return std::move(*out);
}

// [O, k..., I] to [O, I, k...].
std::vector<float> channels_first(const std::vector<float>& values, const std::vector<size_t>& dims) {
  const size_t outer = dims.front(), inner = dims.back();
  const size_t taps = inner == 0 || outer == 0 ? 0 : values.size() / (outer * inner);
  std::vector<float> out(values.size());
  for (size_t o = 0; o < outer; ++o)
    for (size_t t = 0; t < taps; ++t)
      for (size_t i = 0; i < inner; ++i) out[(o * inner + i) * taps + t] = values[(o * taps + t) * inner + i];
  return out;
}

const TensorRef* find_in(std::span<const TensorRef> tensors, std::string_view name) {
  const auto at = std::find_if(tensors.begin(), tensors.end(), [&](const TensorRef& t) { return t.name == name; });
  return at == tensors.end() ? nullptr : &*at;
}

// parakeet-mlx keeps channels last; a first convolution of one channel shows it.
bool is_mlx(std::span<const TensorRef> tensors) {
  const TensorRef* const first = find_in(tensors, "encoder.pre_encode.conv.0.weight");
  return first != nullptr && first->dims.size() == 4 && first->dims[3] == 1 && first->dims[1] != 1;
}

// Processor settings of transformers: newer versions keep all in one file, older ones the features alone.
ConfigText processor_of(const Members& members, const std::string& file) {
  for (const std::string_view name : {kProcessorName, kPreprocessorName})
    if (const TarMember* const found = members.find(name); found != nullptr)
      return {.text = text_of(found->bytes), .name = file + ":" + shortened(name)};
  return {.text = {}, .name = file};
}

}  // namespace

Result<Checkpoint> Checkpoint::open(const std::string& path) {
  SYRINX_TRY(const std::string file, weights_path(path));
  Checkpoint out;
  out.name_ = file;
  std::span<const std::byte> bytes;
  std::vector<TensorRef> sharded;
  if (is_safetensors_index(file)) {
    SYRINX_TRY(SafetensorsShards shards, open_safetensors_shards(file));
    out.files_ = std::move(shards.files);
    sharded = std::move(shards.tensors);
  } else {
    SYRINX_TRY(MappedFile mapped, MappedFile::open(file));
    bytes = mapped.bytes();
    out.files_.push_back(std::move(mapped));
  }
  if (looks_like_gzip(bytes)) {
    SYRINX_TRY(out.inflated_, inflate_gzip(bytes, kMaxArchiveBytes, file));
    bytes = out.inflated_.bytes();
  }
  Members members;
  if (TarArchive::looks_like(bytes)) {
    SYRINX_TRY(const TarArchive archive, TarArchive::parse(bytes, file));
    members.members = archive.members();
    const TarMember* const weights = members.find_end(kWeightsName);
    if (weights == nullptr)
      return fail(Code::kDataLoss, "'{}' holds no {}; it must come whole from one download", file, kWeightsName);
    bytes = weights->bytes;
  } else {
    SYRINX_TRY(members, members_beside(file));
  }
  const TarMember* config = members.find_end(kConfigName);
  if (config == nullptr) config = members.find(kJsonName);
  if (config == nullptr)
    return fail(Code::kNotFound, "'{}' has neither {} nor {} in or beside it", file, kConfigName, kJsonName);
  const ConfigText processor = processor_of(members, file);
  SYRINX_TRY(out.config_, parse_config(text_of(config->bytes), file + ":" + shortened(config->name), processor));
  const std::string texts = std::string(text_of(config->bytes)) + std::string(processor.text);
  out.config_digest_ = sha256_hex(std::as_bytes(std::span(texts)));
  if (is_safetensors_index(file)) {
    out.take_all(sharded);
  } else {
    SYRINX_TRY_VOID(out.read_tensors(bytes));
  }
  for (size_t i = 0; i < out.tensors_.size(); ++i) out.by_name_.emplace(out.tensors_[i].name, i);
  SYRINX_TRY(Vocabulary vocabulary, read_vocabulary(out.config_, members, file));
  out.vocabulary_ = std::make_shared<const Vocabulary>(std::move(vocabulary));
  // A hybrid's configuration may speak of a head that the file lacks.
  out.config_.decoder.ctc |= out.find("ctc_decoder.decoder_layers.0.weight") != nullptr;
  return out;
}

Status Checkpoint::read_tensors(std::span<const std::byte> bytes) {
  if (ZipArchive::looks_like(bytes)) return read_torch(bytes);
  SYRINX_TRY(const Safetensors file, Safetensors::parse(bytes, name()));
  take_all(file.tensors());
  return {};
}

Status Checkpoint::read_torch(std::span<const std::byte> bytes) {
  SYRINX_TRY(const TorchFile file, TorchFile::parse(bytes, name()));
  const bool nested = std::any_of(file.tensors().begin(), file.tensors().end(),
                                  [](const TorchTensor& t) { return t.name.starts_with(kNested); });
  size_t turned_bytes = 0;
  for (const TorchTensor& tensor : file.tensors()) {
    if (nested && !tensor.name.starts_with(kNested)) continue;
    const std::string name = nested ? tensor.name.substr(kNested.size()) : tensor.name;
    if (tensor.contiguous) {
      take(name, tensor.dtype, tensor.dims, tensor.storage);
    } else {
      turned_bytes += std::max(element_count(tensor.dims).value_or(0) * sizeof(float), tensor.storage.size());
      if (turned_bytes > kMaxTurnedShare * bytes.size())
        return fail(Code::kLimitExceeded,
                    "'{}': the tensors up to {} that are not stored row by row are more than {} times the file; "
                    "save it with tensors of their own",
                    this->name(), in_quotes(name), kMaxTurnedShare);
      keep(name, tensor.dims, read_f32(tensor));
    }
  }
  return {};
}

void Checkpoint::take_all(std::span<const TensorRef> tensors) {
  const bool mlx = is_mlx(tensors), transformers = find_in(tensors, kTransformersTensor) != nullptr;
  for (const TensorRef& tensor : tensors) {
    if (mlx) {
      take_mlx(tensor);
    } else {
      take(transformers ? maker_name(tensor.name) : tensor.name, tensor.dtype, tensor.dims, tensor.bytes);
    }
  }
}

void Checkpoint::take(std::string name, DType dtype, std::vector<size_t> dims, std::span<const std::byte> bytes) {
  tensors_.push_back({.name = std::move(name), .dtype = dtype, .dims = std::move(dims), .bytes = bytes});
}

void Checkpoint::keep(std::string name, std::vector<size_t> dims, std::vector<float> values) {
  turned_.push_back(std::make_unique<std::vector<float>>(std::move(values)));
  take(std::move(name), DType::kF32, std::move(dims), std::as_bytes(std::span(*turned_.back())));
}

// Convolutions turned round; an LSTM's sum of biases as the first of two.
void Checkpoint::take_mlx(const TensorRef& tensor) {
  constexpr std::string_view kLstm = "decoder.prediction.dec_rnn.lstm.";
  std::string name = tensor.name;
  const size_t dot = name.rfind('.');
  if (name.starts_with(kLstm) && dot > kLstm.size()) {
    const std::string layer = name.substr(kLstm.size(), dot - kLstm.size()), part = name.substr(dot + 1);
    if (part == "bias") {
      keep(fmt::format("{}bias_hh_l{}", kLstm, layer), tensor.dims,
           std::vector<float>(element_count(tensor.dims).value_or(0)));
      name = fmt::format("{}bias_ih_l{}", kLstm, layer);
    } else if (part == "Wx" || part == "Wh") {
      name = fmt::format("{}weight_{}_l{}", kLstm, part == "Wx" ? "ih" : "hh", layer);
    }
    return take(std::move(name), tensor.dtype, tensor.dims, tensor.bytes);
  }
  if (tensor.dims.size() < 3 || !name.ends_with(".weight")) return take(name, tensor.dtype, tensor.dims, tensor.bytes);
  std::vector<size_t> dims = tensor.dims;
  dims.insert(dims.begin() + 1, dims.back());
  dims.pop_back();
  const bool one_tap = std::all_of(dims.begin() + 2, dims.end(), [](size_t n) { return n == 1; });
  if (one_tap || dims[1] == 1) return take(std::move(name), tensor.dtype, std::move(dims), tensor.bytes);
  keep(std::move(name), std::move(dims), channels_first(to_f32(tensor.bytes, tensor.dtype), tensor.dims));
}

const TensorRef* Checkpoint::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &tensors_[found->second];
}

std::string Checkpoint::key(const std::string& cache_folder) const {
  return content_key(files_, cache_folder) + " " + config_digest_;
}

void Checkpoint::release() const {
  for (const MappedFile& file : files_) file.release();
}

}  // namespace syrinx::transducer
