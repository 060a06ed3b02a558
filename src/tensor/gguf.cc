#include "tensor/gguf.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <numeric>

#include "base/byte_reader.h"
#include "base/in_quotes.h"

namespace syrinx {
namespace {

constexpr uint32_t kMagic = 0x46554747;  // "GGUF"
constexpr uint32_t kOldest = 2, kNewest = 3;
constexpr uint64_t kAlignment = 32;
// The least that an entry and a tensor take: so a count that the file cannot hold is refused at once.
constexpr size_t kLeastEntryBytes = 8 + 4 + 1, kLeastTensorBytes = 8 + 4 + 4 + 8;

template <class T>
T value_at(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

}  // namespace

class GgufFile::Parser {
 public:
  Parser(std::span<const std::byte> bytes, const std::string& name) : bytes_(bytes), name_(name), reader_(bytes) {}

  Result<GgufFile> run() {
    file_.name_ = name_;
    SYRINX_TRY_VOID(head());
    for (uint64_t i = 0; i < entries_; ++i) SYRINX_TRY_VOID(entry());
    const auto by_key = [](const Entry& a, const Entry& b) { return a.key < b.key; };
    std::sort(file_.entries_.begin(), file_.entries_.end(), by_key);
    const auto twice = std::adjacent_find(file_.entries_.begin(), file_.entries_.end(),
                                          [](const Entry& a, const Entry& b) { return a.key == b.key; });
    if (twice != file_.entries_.end()) return damaged(fmt::format("has the entry {} twice", in_quotes(twice->key)));
    if (const auto parts = file_.whole("split.count"); parts && parts->value_or(1) > 1)
      return fail(Code::kUnsupported,
                  "'{}' is one of {} files that hold a model together; join them with `gguf-split --merge`", name_,
                  **parts);
    SYRINX_TRY_VOID(find_alignment());
    for (uint64_t i = 0; i < tensors_; ++i) SYRINX_TRY_VOID(tensor());
    SYRINX_TRY_VOID(place_tensors());
    SYRINX_TRY_VOID(index_tensors());
    return std::move(file_);
  }

 private:
  tl::unexpected<Error> damaged(std::string_view fault) const {
    return fail(Code::kDataLoss, "'{}' {}; the file is damaged, download it again", name_, fault);
  }
  tl::unexpected<Error> truncated(std::string_view where) const {
    return fail(Code::kDataLoss, "'{}' ends or is damaged in {}; download it again", name_, where);
  }

  Status head() {
    const uint32_t magic = reader_.u32(), version = reader_.u32();
    if (reader_.failed() || magic != kMagic) return fail(Code::kDataLoss, "'{}' is not a GGUF file", name_);
    if (const uint32_t swapped = __builtin_bswap32(version); swapped >= kOldest && swapped <= kNewest)
      return fail(Code::kUnsupported, "'{}' is a GGUF file of big-endian numbers; take the little-endian one", name_);
    if (version < kOldest || version > kNewest)
      return fail(Code::kUnsupported, "'{}' is a GGUF file of version {}, known are {} and {}; convert the model again",
                  name_, version, kOldest, kNewest);
    file_.version_ = version;
    tensors_ = reader_.u64();
    entries_ = reader_.u64();
    if (reader_.failed()) return truncated("its head");
    if (entries_ > kMaxEntries)
      return fail(Code::kLimitExceeded, "'{}' has {} entries, the limit is {}", name_, entries_, kMaxEntries);
    if (tensors_ > kMaxTensors)
      return fail(Code::kLimitExceeded, "'{}' has {} tensors, the limit is {}", name_, tensors_, kMaxTensors);
    if (entries_ * kLeastEntryBytes + tensors_ * kLeastTensorBytes > reader_.remaining())
      return damaged(fmt::format("speaks of {} entries and {} tensors, more than its {} bytes can hold", entries_,
                                 tensors_, bytes_.size()));
    return {};
  }

  Status entry() {
    Entry entry;
    const uint64_t size = reader_.u64();
    if (!reader_.failed() && size > kMaxKeyBytes)
      return fail(Code::kLimitExceeded, "'{}' has a key of {} bytes, the limit is {}", name_, size, kMaxKeyBytes);
    entry.key = reader_.text(size);
    uint32_t kind = reader_.u32();
    entry.array = kind == kArray;
    if (entry.array) {
      kind = reader_.u32();
      entry.count = reader_.u64();
    }
    if (reader_.failed()) return truncated("its entries");
    if (kind >= kKinds)
      return damaged(fmt::format("has the entry {} of the unknown kind {}", in_quotes(entry.key), kind));
    if (kind == kArray)
      return fail(Code::kUnsupported, "'{}': the entry {} is an array of arrays, which is not read", name_,
                  in_quotes(entry.key));
    entry.kind = static_cast<Kind>(kind);
    const size_t begin = reader_.position();
    SYRINX_TRY_VOID(pass_over(entry));
    entry.bytes = bytes_.subspan(begin, reader_.position() - begin);
    file_.entries_.push_back(entry);
    return {};
  }

  // Behind the value, which is whole.
  Status pass_over(const Entry& entry) {
    const size_t size = kind_size(entry.kind), least = size == 0 ? sizeof(uint64_t) : size;
    if (entry.count > reader_.remaining() / least) return truncated(fmt::format("the entry {}", in_quotes(entry.key)));
    if (size != 0) {
      const auto values = reader_.take(entry.count * size);
      if (entry.kind == kBool &&
          std::any_of(values.begin(), values.end(), [](std::byte value) { return value > std::byte{1}; }))
        return damaged(fmt::format("has the entry {} that is neither true nor false", in_quotes(entry.key)));
      return {};
    }
    for (uint64_t i = 0; i < entry.count; ++i) reader_.text(reader_.u64());
    if (reader_.failed()) return truncated(fmt::format("the entry {}", in_quotes(entry.key)));
    return {};
  }

  Status find_alignment() {
    SYRINX_TRY(const std::optional<uint64_t> found, file_.whole("general.alignment"));
    alignment_ = found.value_or(kAlignment);
    if (!std::has_single_bit(alignment_) || alignment_ < 8 || alignment_ > kMaxAlignment)
      return damaged(fmt::format("asks for an alignment of {} bytes", alignment_));
    return {};
  }

  Status tensor() {
    GgufTensor tensor;
    const uint64_t size = reader_.u64();
    if (!reader_.failed() && size > kMaxNameBytes)
      return fail(Code::kLimitExceeded, "'{}' has a tensor's name of {} bytes, the limit is {}", name_, size,
                  kMaxNameBytes);
    tensor.name = reader_.text(size);
    const uint32_t rank = reader_.u32();
    if (!reader_.failed() && rank > kMaxDims)
      return fail(Code::kLimitExceeded, "'{}': tensor {} has {} dimensions, the limit is {}", name_,
                  in_quotes(tensor.name), rank, kMaxDims);
    for (uint32_t i = 0; i < rank; ++i) tensor.dims.insert(tensor.dims.begin(), reader_.u64());
    const uint32_t type = reader_.u32();
    offsets_.push_back(reader_.u64());
    if (reader_.failed()) return truncated("its list of tensors");
    const std::optional<GgmlType> known = find_ggml_type(type);
    if (!known) return unknown_type(tensor, type);
    tensor.type = *known;
    file_.tensors_.push_back(std::move(tensor));
    return {};
  }

  tl::unexpected<Error> unknown_type(const GgufTensor& tensor, uint32_t type) const {
    std::string known;
    for (const GgmlType each : kAllGgmlTypes) known += fmt::format("{}{}", known.empty() ? "" : ", ", ggml_name(each));
    const std::optional<std::string_view> called = ggml_number_name(type);
    return fail(Code::kUnsupported, "'{}': tensor {} has the type {}, known are {}; take a file in one of those", name_,
                in_quotes(tensor.name), called ? std::string(*called) : fmt::format("number {}", type), known);
  }

  // Behind the list of tensors, their blocks.
  Status place_tensors() {
    const size_t begin = std::min(round_up(reader_.position()), bytes_.size());
    const auto data = bytes_.subspan(begin);
    for (size_t i = 0; i < file_.tensors_.size(); ++i) {
      GgufTensor& tensor = file_.tensors_[i];
      const auto quoted = in_quotes(tensor.name);
      const GgmlBlock block = ggml_block(tensor.type);
      const std::optional<size_t> count = element_count(tensor.dims);
      if (!count || *count == 0)
        return damaged(fmt::format("has the tensor {} of shape {}", quoted, dims_text(tensor.dims)));
      if (const size_t row = tensor.dims.empty() ? 1 : tensor.dims.back(); row % block.weights != 0)
        return damaged(fmt::format("has the tensor {} with rows of {} weights, which are no whole blocks of {}", quoted,
                                   row, ggml_name(tensor.type)));
      const uint64_t size_bytes = uint64_t{*count} / block.weights * block.bytes;
      if (offsets_[i] % alignment_ != 0)
        return damaged(
            fmt::format("has the tensor {} at {}, which is not aligned to {} bytes", quoted, offsets_[i], alignment_));
      if (offsets_[i] > data.size() || size_bytes > data.size() - offsets_[i])
        return fail(Code::kDataLoss,
                    "'{}': tensor {} needs {} bytes from {} on, the file ends before; download it again", name_, quoted,
                    size_bytes, begin + offsets_[i]);
      tensor.bytes = data.subspan(static_cast<size_t>(offsets_[i]), static_cast<size_t>(size_bytes));
    }
    return {};
  }
  size_t round_up(size_t position) const {
    const auto rest = position % static_cast<size_t>(alignment_);
    return rest == 0 ? position : position + static_cast<size_t>(alignment_) - rest;
  }

  Status index_tensors() {
    std::vector<uint32_t>& order = file_.by_name_;
    order.resize(file_.tensors_.size());
    std::iota(order.begin(), order.end(), 0u);
    const auto at = [&](uint32_t index) -> const GgufTensor& { return file_.tensors_[index]; };
    std::sort(order.begin(), order.end(),
              [&](uint32_t a, uint32_t b) { return at(a).bytes.data() < at(b).bytes.data(); });
    for (size_t i = 1; i < order.size(); ++i)
      if (const auto& before = at(order[i - 1]); before.bytes.data() + before.bytes.size() > at(order[i]).bytes.data())
        return damaged(
            fmt::format("has tensors {} and {} overlap", in_quotes(before.name), in_quotes(at(order[i]).name)));
    std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return at(a).name < at(b).name; });
    for (size_t i = 1; i < order.size(); ++i)
      if (at(order[i - 1]).name == at(order[i]).name)
        return damaged(fmt::format("has the tensor {} twice", in_quotes(at(order[i]).name)));
    return {};
  }

  const std::span<const std::byte> bytes_;
  const std::string& name_;
  ByteReader reader_;
  GgufFile file_;
  uint64_t tensors_ = 0, entries_ = 0, alignment_ = kAlignment;
  std::vector<uint64_t> offsets_;  // of the tensors, in the order of the file
};

Result<GgufFile> GgufFile::parse(std::span<const std::byte> bytes, const std::string& name) {
  return Parser(bytes, name).run();
}

const GgufTensor* GgufFile::find(std::string_view name) const {
  const auto at = std::lower_bound(by_name_.begin(), by_name_.end(), name,
                                   [&](uint32_t index, std::string_view key) { return tensors_[index].name < key; });
  return at != by_name_.end() && tensors_[*at].name == name ? &tensors_[*at] : nullptr;
}

size_t GgufFile::kind_size(Kind kind) {
  switch (kind) {
    case kU8:
    case kI8:
    case kBool: return 1;
    case kU16:
    case kI16: return 2;
    case kU32:
    case kI32:
    case kF32: return 4;
    case kU64:
    case kI64:
    case kF64: return 8;
    default: return 0;
  }
}

std::optional<int64_t> GgufFile::as_whole(Kind kind, const std::byte* value) {
  switch (kind) {
    case kU8: return value_at<uint8_t>(value);
    case kI8: return value_at<int8_t>(value);
    case kU16: return value_at<uint16_t>(value);
    case kI16: return value_at<int16_t>(value);
    case kU32: return value_at<uint32_t>(value);
    case kI32: return value_at<int32_t>(value);
    case kI64: return value_at<int64_t>(value);
    case kU64: {
      const auto read = value_at<uint64_t>(value);
      if (read > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return std::nullopt;
      return static_cast<int64_t>(read);
    }
    default: return std::nullopt;
  }
}

double GgufFile::as_double(Kind kind, const std::byte* value) {
  if (kind == kF32) return value_at<float>(value);
  if (kind == kF64) return value_at<double>(value);
  if (kind == kU64) return static_cast<double>(value_at<uint64_t>(value));
  return static_cast<double>(as_whole(kind, value).value_or(0));
}

const GgufFile::Entry* GgufFile::find_entry(std::string_view key) const {
  const auto at = std::lower_bound(entries_.begin(), entries_.end(), key,
                                   [](const Entry& entry, std::string_view text) { return entry.key < text; });
  return at != entries_.end() && at->key == key ? &*at : nullptr;
}

tl::unexpected<Error> GgufFile::wrong_kind(std::string_view key, std::string_view wanted) const {
  return fail(Code::kDataLoss, "'{}': the entry {} is not {}", name_, in_quotes(key), wanted);
}

Result<const GgufFile::Entry*> GgufFile::entry(std::string_view key, bool array, size_t most) const {
  const Entry* const found = find_entry(key);
  if (found == nullptr) return nullptr;
  if (found->array != array) return wrong_kind(key, array ? "an array" : "a single value");
  if (found->count > most)
    return fail(Code::kLimitExceeded, "'{}': the entry {} has {} elements, the limit is {}", name_, in_quotes(key),
                found->count, most);
  return found;
}

Result<std::optional<uint64_t>> GgufFile::whole(std::string_view key) const {
  SYRINX_TRY(const Entry* const found, entry(key, false));
  if (found == nullptr) return std::nullopt;
  const std::optional<int64_t> value = as_whole(found->kind, found->bytes.data());
  if (!value || *value < 0) return wrong_kind(key, "a whole number");
  return static_cast<uint64_t>(*value);
}

Result<std::optional<double>> GgufFile::number(std::string_view key) const {
  SYRINX_TRY(const Entry* const found, entry(key, false));
  if (found == nullptr) return std::nullopt;
  if (found->kind == kString || found->kind == kBool) return wrong_kind(key, "a number");
  return as_double(found->kind, found->bytes.data());
}

Result<std::optional<bool>> GgufFile::flag(std::string_view key) const {
  SYRINX_TRY(const Entry* const found, entry(key, false));
  if (found == nullptr) return std::nullopt;
  if (found->kind != kBool) return wrong_kind(key, "true or false");
  return found->bytes.front() != std::byte{0};
}

Result<std::optional<std::string_view>> GgufFile::text(std::string_view key) const {
  SYRINX_TRY(const Entry* const found, entry(key, false));
  if (found == nullptr) return std::nullopt;
  if (found->kind != kString) return wrong_kind(key, "a text");
  ByteReader reader(found->bytes);
  return reader.text(reader.u64());
}

Result<std::vector<std::string_view>> GgufFile::texts(std::string_view key, size_t most) const {
  SYRINX_TRY(const Entry* const found, entry(key, true, most));
  std::vector<std::string_view> read;
  if (found == nullptr) return read;
  if (found->kind != kString) return wrong_kind(key, "an array of texts");
  read.reserve(static_cast<size_t>(found->count));
  ByteReader reader(found->bytes);
  for (uint64_t i = 0; i < found->count; ++i) read.push_back(reader.text(reader.u64()));
  return read;
}

Result<std::vector<int64_t>> GgufFile::wholes(std::string_view key, size_t most) const {
  SYRINX_TRY(const Entry* const found, entry(key, true, most));
  std::vector<int64_t> read;
  if (found == nullptr) return read;
  for (uint64_t i = 0; i < found->count; ++i) {
    const auto value = as_whole(found->kind, found->bytes.data() + i * kind_size(found->kind));
    if (!value) return wrong_kind(key, "an array of whole numbers");
    read.push_back(*value);
  }
  return read;
}

Result<std::vector<double>> GgufFile::numbers(std::string_view key, size_t most) const {
  SYRINX_TRY(const Entry* const found, entry(key, true, most));
  std::vector<double> read;
  if (found == nullptr) return read;
  if (found->kind == kString || found->kind == kBool) return wrong_kind(key, "an array of numbers");
  for (uint64_t i = 0; i < found->count; ++i)
    read.push_back(as_double(found->kind, found->bytes.data() + i * kind_size(found->kind)));
  return read;
}

}  // namespace syrinx
