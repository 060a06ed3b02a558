#include "engine/families/inspect.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/byte_reader.h"
#include "base/mapped_file.h"
#include "engine/families/families.h"
#include "models/silero/container.h"
#include "store/paths.h"
#include "tensor/gguf.h"
#include "tensor/npy.h"
#include "tensor/onnx.h"
#include "tensor/safetensors.h"
#include "tensor/torch_file.h"
#include "tensor/zip.h"
#include "text/columns.h"

namespace syrinx {
namespace {

using Bytes = std::span<const std::byte>;

constexpr size_t kVoiceRows = 510;       // a row for each number of phonemes (specification: Kokoro, section 1.3)
constexpr size_t kMaxVoiceWidth = 4096;  // the published one is 256

std::string_view text_at(Bytes bytes, size_t offset, size_t size) {
  if (offset > bytes.size() || size > bytes.size() - offset) return {};
  return {reinterpret_cast<const char*>(bytes.data()) + offset, size};
}

TensorDescription describe(const TensorRef& tensor) {
  return {tensor.name, dtype_name(tensor.dtype), tensor.dims, tensor.bytes.size()};
}

TensorDescription describe(const std::string& name, const NpyArray& array) {
  uint64_t bytes = array.bytes.size();
  for (const std::string& text : array.texts) bytes += text.size();
  return {name, array.is_text ? "text" : dtype_name(array.dtype), array.dims, bytes};
}

Status describe_safetensors(Bytes bytes, FileDescription& out) {
  out.kind = "safetensors";
  SYRINX_TRY(const Safetensors file, Safetensors::parse(bytes, out.path));
  for (const TensorRef& tensor : file.tensors()) out.tensors.push_back(describe(tensor));
  out.facts = file.metadata();
  return {};
}

Status describe_onnx(Bytes bytes, FileDescription& out) {
  out.kind = "onnx";
  SYRINX_TRY(const OnnxFile file, OnnxFile::parse(bytes, out.path));
  for (const TensorRef& tensor : file.tensors()) out.tensors.push_back(describe(tensor));
  const auto join = [](const std::vector<std::string>& names) {
    std::string text;
    for (const std::string& name : names) text += (text.empty() ? "" : " ") + name;
    return text;
  };
  out.facts = {{"producer", file.producer()},
               {"nodes", std::to_string(file.nodes().size())},
               {"inputs", join(file.inputs())},
               {"outputs", join(file.outputs())}};
  return {};
}

Status describe_torch(Bytes bytes, FileDescription& out) {
  out.kind = "torch";
  SYRINX_TRY(const TorchFile file, TorchFile::parse(bytes, out.path));
  for (const TorchTensor& tensor : file.tensors())
    out.tensors.push_back({tensor.name, dtype_name(tensor.dtype), tensor.dims,
                           element_count(tensor.dims).value_or(0) * dtype_size(tensor.dtype)});
  return {};
}

Status describe_zip(Bytes bytes, FileDescription& out) {
  SYRINX_TRY(const NpzFile file, NpzFile::parse(bytes, out.path));
  if (file.names().empty()) return describe_torch(bytes, out);
  out.kind = "npz";
  for (const std::string& name : file.names()) {
    SYRINX_TRY(const NpyArray array, file.read(name));
    out.tensors.push_back(describe(name, array));
  }
  return {};
}

Status describe_npy(Bytes bytes, FileDescription& out) {
  out.kind = "npy";
  SYRINX_TRY(const NpyArray array, parse_npy(bytes, out.path));
  out.tensors.push_back(describe("", array));
  return {};
}

// RIFF chunks up to the data.  Source of the facts: Microsoft's multimedia file format, chunks "fmt " and "data".
Status describe_wav(Bytes bytes, FileDescription& out) {
  out.kind = "wav";
  ByteReader reader(bytes);
  reader.take(12);
  uint32_t bytes_per_second = 0;
  while (!reader.failed() && reader.remaining() >= 8) {
    const std::string id(reader.text(4));
    const uint32_t size = reader.u32();
    if (id == "data") {
      const uint64_t sound = std::min<uint64_t>(size, reader.remaining());
      out.facts.emplace_back("data_bytes", std::to_string(sound));
      if (bytes_per_second > 0)
        out.facts.emplace_back("seconds", fmt::format("{:.3f}", static_cast<double>(sound) / bytes_per_second));
      return {};
    }
    ByteReader chunk(reader.take(size + (size & 1)));
    if (id != "fmt ") continue;
    out.facts.emplace_back("format", std::to_string(chunk.u16()));
    out.facts.emplace_back("channels", std::to_string(chunk.u16()));
    out.facts.emplace_back("rate_hz", std::to_string(chunk.u32()));
    bytes_per_second = chunk.u32();
    chunk.u16();
    out.facts.emplace_back("bits", std::to_string(chunk.u16()));
  }
  return fail(Code::kDataLoss, "'{}' is a WAV file without sound, or is truncated", out.path);
}

// A voice has no header: 510 rows of finite numbers of moderate size.
bool looks_like_voice(Bytes bytes) {
  constexpr size_t kRowUnit = kVoiceRows * sizeof(float);
  if (bytes.empty() || bytes.size() % kRowUnit != 0 || bytes.size() / kRowUnit > kMaxVoiceWidth) return false;
  ByteReader reader(bytes);
  while (!reader.at_end())
    if (const float value = reader.number<float>(); !std::isfinite(value) || std::abs(value) > 1000.0f) return false;
  return true;
}

Status describe_voice(Bytes bytes, FileDescription& out) {
  out.kind = "voice";
  out.tensors.push_back({"style", "f32", {kVoiceRows, bytes.size() / sizeof(float) / kVoiceRows}, bytes.size()});
  return {};
}

// Version 1 of Silero's container: "ggml" as a little-endian number.
constexpr std::string_view kGgml = "lmgg";

Status describe_silero(Bytes bytes, FileDescription& out) {
  out.kind = "ggml";
  SYRINX_TRY(const silero::Tensors tensors, silero::parse_container(bytes, out.path));
  out.model = "silero-vad";
  out.facts = {{"rate_hz", "16000"}, {"window_samples", "512"}, {"hidden", std::to_string(silero::kHidden)}};
  return {};
}

// How many tensors are of each type, the most frequent first: "Q4_1 210, f32 61".
std::string count_types(const std::vector<TensorDescription>& tensors) {
  std::map<std::string, size_t> counts;
  for (const TensorDescription& tensor : tensors) ++counts[tensor.dtype];
  std::vector<std::pair<std::string, size_t>> sorted(counts.begin(), counts.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text;
  for (const auto& [type, count] : sorted) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", type, count);
  return text;
}

// A fact that is missing, or of a kind that it should not be, is left out.
void add_fact(std::string name, const Result<std::optional<std::string_view>>& text, FileDescription& out) {
  if (text && *text) out.facts.emplace_back(std::move(name), std::string(**text));
}
void add_fact(std::string name, const Result<std::optional<uint64_t>>& number, FileDescription& out) {
  if (number && *number) out.facts.emplace_back(std::move(name), std::to_string(**number));
}

// Source of the keys: ggml's docs/gguf.md, "Standardized key-value pairs".
Status describe_gguf(Bytes bytes, FileDescription& out) {
  out.kind = "gguf";
  SYRINX_TRY(const GgufFile file, GgufFile::parse(bytes, out.path));
  for (const GgufTensor& tensor : file.tensors()) {
    const std::optional<DType> plain = plain_dtype(tensor.type);
    out.tensors.push_back({std::string(tensor.name), plain ? dtype_name(*plain) : ggml_name(tensor.type), tensor.dims,
                           tensor.bytes.size()});
  }
  out.facts.emplace_back("version", std::to_string(file.version()));
  const auto architecture = file.text("general.architecture");
  add_fact("architecture", architecture, out);
  add_fact("name", file.text("general.name"), out);
  add_fact("licence", file.text("general.license"), out);
  if (architecture && *architecture) {
    const std::string prefix(**architecture);
    for (const auto& [name, key] : {std::pair{"context", ".context_length"},
                                    {"layers", ".block_count"},
                                    {"width", ".embedding_length"},
                                    {"heads", ".attention.head_count"},
                                    {"key_value_heads", ".attention.head_count_kv"}})
      add_fact(name, file.whole(prefix + key), out);
  }
  add_fact("tokenizer", file.text("tokenizer.ggml.pre"), out);
  if (!out.tensors.empty()) out.facts.emplace_back("types", count_types(out.tensors));
  return {};
}

// False where no family takes the file for its own.
Result<bool> describe_by_family(const InspectedFile& file, FileDescription& out) {
  for (const SpeechFamily* const family : speech_families()) {
    SYRINX_TRY(const bool is_its_own, family->describe(file, out));
    if (is_its_own) return true;
  }
  for (const RecognitionFamily* const family : recognition_families()) {
    SYRINX_TRY(const bool is_its_own, family->describe(file, out));
    if (is_its_own) return true;
  }
  for (const ChatFamily* const family : chat_families()) {
    SYRINX_TRY(const bool is_its_own, family->describe(file, out));
    if (is_its_own) return true;
  }
  return false;
}

Status describe_bytes(Bytes bytes, FileDescription& out) {
  const std::string_view head = text_at(bytes, 0, 4);
  if (ZipArchive::looks_like(bytes)) return describe_zip(bytes, out);
  if (text_at(bytes, 0, 6) == "\x93NUMPY") return describe_npy(bytes, out);
  if (head == "RIFF" && text_at(bytes, 8, 4) == "WAVE") return describe_wav(bytes, out);
  if (head == "GGUF") return describe_gguf(bytes, out);
  if (text_at(bytes, 8, 1) == "{") return describe_safetensors(bytes, out);
  if (head == kGgml) return describe_silero(bytes, out);
  if (looks_like_voice(bytes)) return describe_voice(bytes, out);
  // ONNX has no mark; its first field is nearly always the version of the format: number 1, a varint.
  if (text_at(bytes, 0, 1) == "\x08") return describe_onnx(bytes, out);
  return fail(
      Code::kUnsupported,
      "'{}' is not a file that Syrinx can read: it knows safetensors, ONNX, GGUF, PyTorch (.pth), NumPy (.npy, .npz), "
      "voices (.bin), recognisers (model.bin, .nemo), WAV and configurations of models (.yaml)",
      out.path);
}

// What a file says, in one line.
std::string in_line(std::string_view text) {
  std::string out = text::printable(text);
  std::replace(out.begin(), out.end(), '\n', ' ');
  return out;
}

Json list_json(const std::vector<TensorDescription>& tensors, bool with_values) {
  Json::Array list;
  for (const TensorDescription& tensor : tensors) {
    Json item;
    item.set("name", tensor.name);
    if (with_values) item.set("dtype", tensor.dtype);
    item.set("dims", Json::Array(tensor.dims.begin(), tensor.dims.end()));
    if (with_values) item.set("size_bytes", static_cast<size_t>(tensor.size_bytes));
    list.push_back(std::move(item));
  }
  return list;
}

}  // namespace

Result<FileDescription> describe_file(const std::string& path) {
  FileDescription out;
  out.path = path;
  const bool folder = is_folder(path);
  MappedFile mapped;
  if (!folder) {
    SYRINX_TRY(mapped, MappedFile::open(path));
  }
  const InspectedFile file{.path = path, .bytes = mapped.bytes(), .is_folder = folder};
  out.size_bytes = file.bytes.size();
  SYRINX_TRY(const bool has_own_format, describe_by_family(file, out));
  if (has_own_format) return out;
  if (folder) return fail(Code::kNotFound, "the folder '{}' holds no configuration (.yaml); name a file of it", path);
  SYRINX_TRY_VOID(describe_bytes(file.bytes, out));
  SYRINX_TRY_VOID(describe_by_family(file, out));
  return out;
}

Json to_json(const FileDescription& description) {
  Json facts{Json::Object{}};
  for (const auto& [name, value] : description.facts) facts.set(name, value);
  Json out;
  out.set("path", description.path).set("kind", description.kind).set("model", description.model);
  out.set("size_bytes", static_cast<size_t>(description.size_bytes)).set("facts", std::move(facts));
  out.set("tensors", list_json(description.tensors, true)).set("weights", list_json(description.weights, false));
  return out;
}

std::string to_text(const FileDescription& description) {
  std::string out =
      fmt::format("{}: {}, {} bytes", in_line(description.path), description.kind, description.size_bytes);
  if (!description.model.empty()) out += "\nmodel: " + description.model;
  if (!description.weights.empty()) out += fmt::format(", {} weights", description.weights.size());
  for (const auto& [name, value] : description.facts) out += fmt::format("\n{}: {}", in_line(name), in_line(value));
  if (!description.tensors.empty()) out += fmt::format("\ntensors: {}", description.tensors.size());
  for (const TensorDescription& tensor : description.tensors)
    out += fmt::format("\n  {:5} {:18} {}", tensor.dtype, dims_text(tensor.dims), in_line(tensor.name));
  return out;
}

}  // namespace syrinx
