#include "tensor/safetensors.h"

#include <algorithm>
#include <numeric>

#include "base/byte_reader.h"
#include "base/in_quotes.h"
#include "base/json.h"

namespace syrinx {
namespace {

constexpr size_t kMaxHeaderBytes = size_t{16} << 20;
constexpr const char* kMetadataKey = "__metadata__";

struct TypeName {
  const char* text;
  DType dtype;
};
constexpr TypeName kTypeNames[] = {
    {"F64", DType::kF64}, {"F32", DType::kF32}, {"F16", DType::kF16},  {"BF16", DType::kBF16}, {"I64", DType::kI64},
    {"I32", DType::kI32}, {"I16", DType::kI16}, {"I8", DType::kI8},    {"U64", DType::kU64},   {"U32", DType::kU32},
    {"U16", DType::kU16}, {"U8", DType::kU8},   {"BOOL", DType::kBool}};

// A JSON array of at most `max_size` whole numbers that are not negative.
std::optional<std::vector<size_t>> sizes(const Json* value, size_t max_size) {
  const Json::Array* const array = value == nullptr ? nullptr : value->array();
  if (array == nullptr || array->size() > max_size) return std::nullopt;
  std::vector<size_t> out;
  for (const Json& item : *array) {
    const int64_t* const number = item.whole();
    if (number == nullptr || *number < 0) return std::nullopt;
    out.push_back(static_cast<size_t>(*number));
  }
  return out;
}

Result<TensorRef> parse_entry(const JsonMember& entry, std::span<const std::byte> data, const std::string& file) {
  TensorRef tensor;
  tensor.name = entry.key;
  const Json* const type = entry.value.find("dtype");
  const auto dims = sizes(entry.value.find("shape"), kMaxRank);
  const auto range = sizes(entry.value.find("data_offsets"), 2);
  if (type == nullptr || type->string() == nullptr || !dims || !range || range->size() != 2)
    return fail(Code::kDataLoss, "'{}': tensor {} lacks a proper dtype, shape or data_offsets", file,
                in_quotes(entry.key));
  const auto* const known = std::find_if(std::begin(kTypeNames), std::end(kTypeNames),
                                         [&](const TypeName& candidate) { return candidate.text == *type->string(); });
  if (known == std::end(kTypeNames))
    return fail(Code::kUnsupported, "'{}': tensor {} has the type {}, which we cannot read", file, in_quotes(entry.key),
                in_quotes(*type->string()));
  tensor.dtype = known->dtype;
  tensor.dims = *dims;
  const size_t begin = (*range)[0];
  const size_t end = (*range)[1];
  if (begin > end || end > data.size())
    return fail(Code::kDataLoss, "'{}': tensor {} occupies bytes {} to {} of {}; the file is truncated or damaged",
                file, in_quotes(entry.key), begin, end, data.size());
  const auto count = element_count(tensor.dims);
  if (!count || *count * dtype_size(tensor.dtype) != end - begin)
    return fail(Code::kDataLoss, "'{}': tensor {} of shape {} and type {} does not fill its {} bytes", file,
                in_quotes(entry.key), dims_text(tensor.dims), dtype_name(tensor.dtype), end - begin);
  tensor.bytes = data.subspan(begin, end - begin);
  return tensor;
}

Status check_overlaps(const std::vector<TensorRef>& tensors, const std::string& file) {
  std::vector<const TensorRef*> order;
  for (const TensorRef& tensor : tensors)
    if (!tensor.bytes.empty()) order.push_back(&tensor);
  std::sort(order.begin(), order.end(),
            [](const TensorRef* a, const TensorRef* b) { return a->bytes.data() < b->bytes.data(); });
  for (size_t i = 1; i < order.size(); ++i)
    if (order[i - 1]->bytes.data() + order[i - 1]->bytes.size() > order[i]->bytes.data())
      return fail(Code::kDataLoss, "'{}': tensors {} and {} overlap", file, in_quotes(order[i - 1]->name),
                  in_quotes(order[i]->name));
  return {};
}

}  // namespace

Result<Safetensors> Safetensors::parse(std::span<const std::byte> bytes, const std::string& name) {
  ByteReader reader(bytes);
  const uint64_t header_size = reader.u64();
  if (!reader.failed() && header_size > kMaxHeaderBytes)
    return fail(Code::kLimitExceeded, "'{}': a safetensors header of {} bytes, the limit is {}", name, header_size,
                kMaxHeaderBytes);
  const std::string_view header = reader.text(header_size);
  if (reader.failed()) return fail(Code::kDataLoss, "'{}' is not a safetensors file, or is truncated", name);
  SYRINX_TRY(const Json root, parse_json(header, name, JsonLimits{.max_bytes = kMaxHeaderBytes, .max_depth = 8}));
  if (root.object() == nullptr) return fail(Code::kDataLoss, "'{}': the safetensors header is not an object", name);

  Safetensors file;
  const auto data = bytes.subspan(reader.position());
  for (const JsonMember& entry : *root.object()) {
    if (entry.key == kMetadataKey) {
      const Json::Object* const pairs = entry.value.object();
      if (pairs == nullptr) return fail(Code::kDataLoss, "'{}': {} is not an object", name, kMetadataKey);
      for (const JsonMember& pair : *pairs)
        if (pair.value.string() != nullptr) file.metadata_.emplace_back(pair.key, *pair.value.string());
      continue;
    }
    SYRINX_TRY(TensorRef tensor, parse_entry(entry, data, name));
    file.tensors_.push_back(std::move(tensor));
  }
  SYRINX_TRY_VOID(check_overlaps(file.tensors_, name));
  file.by_name_.resize(file.tensors_.size());
  std::iota(file.by_name_.begin(), file.by_name_.end(), size_t{0});
  std::sort(file.by_name_.begin(), file.by_name_.end(),
            [&](size_t a, size_t b) { return file.tensors_[a].name < file.tensors_[b].name; });
  return file;
}

const TensorRef* Safetensors::find(std::string_view name) const {
  const auto at = std::lower_bound(by_name_.begin(), by_name_.end(), name,
                                   [&](size_t index, std::string_view key) { return tensors_[index].name < key; });
  return at != by_name_.end() && tensors_[*at].name == name ? &tensors_[*at] : nullptr;
}

std::string write_safetensors(std::span<const TensorRef> tensors) {
  Json header{Json::Object{}};
  size_t offset = 0;
  for (const TensorRef& tensor : tensors) {
    Json::Array dims(tensor.dims.begin(), tensor.dims.end());
    Json entry;
    const auto* const known = std::find_if(std::begin(kTypeNames), std::end(kTypeNames),
                                           [&](const TypeName& candidate) { return candidate.dtype == tensor.dtype; });
    entry.set("dtype", known->text);
    entry.set("shape", std::move(dims));
    entry.set("data_offsets", Json::Array{offset, offset + tensor.bytes.size()});
    header.set(tensor.name, std::move(entry));
    offset += tensor.bytes.size();
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');  // so that the values start aligned
  const uint64_t size = text.size();
  std::string file(reinterpret_cast<const char*>(&size), sizeof size);
  file += text;
  for (const TensorRef& tensor : tensors)
    file.append(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size());
  return file;
}

}  // namespace syrinx
