#include "tensor/torch_file.h"

#include <algorithm>
#include <cstring>

#include "base/byte_reader.h"
#include "base/in_quotes.h"
#include "tensor/pickle.h"
#include "tensor/zip.h"

namespace syrinx {
namespace {

constexpr size_t kMaxDepth = 16;
constexpr size_t kMaxSteps = size_t{1} << 20;
constexpr size_t kMaxTensors = 65536;
constexpr size_t kMaxNameBytes = 1024;
constexpr std::string_view kPickleName = "data.pkl", kWeightsKey = "state_dict";

// One more than the index of the last element that the strides reach; nothing on overflow or when there is none.
std::optional<size_t> reach(const std::vector<size_t>& dims, const std::vector<size_t>& strides) {
  size_t last = 0;
  for (size_t i = 0; i < dims.size(); ++i) {
    size_t step = 0;
    if (dims[i] == 0) return 0;
    if (__builtin_mul_overflow(dims[i] - 1, strides[i], &step) || __builtin_add_overflow(last, step, &last))
      return std::nullopt;
  }
  return last == SIZE_MAX ? std::nullopt : std::optional<size_t>(last + 1);
}

bool is_row_major(const std::vector<size_t>& dims, const std::vector<size_t>& strides) {
  size_t expected = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    if (dims[i] != 1 && strides[i] != expected) return false;
    expected *= dims[i];
  }
  return true;
}

// Walks the values and collects the tensors, bounded in depth and steps: the graph may have cycles.
class Collector {
 public:
  Collector(const PickleGraph& graph, const ZipArchive& archive, const std::string& prefix, const std::string& file)
      : graph_(graph), archive_(archive), prefix_(prefix), file_(file) {}

  // From the root; of a dictionary with weights those alone, as what a trainer keeps beside them is no tensor of the
  // model.
  Status collect() {
    const PickleValue& root = graph_.values[graph_.root];
    const auto is_weights = [&](size_t key) { return graph_.values[root.items[key]].text == kWeightsKey; };
    bool has_weights = false;
    if (root.kind == PickleValue::Kind::kDict)
      for (size_t i = 0; i + 1 < root.items.size(); i += 2) has_weights |= is_weights(i);
    if (!has_weights) return walk(graph_.root, "", 0);
    for (size_t i = 0; i + 1 < root.items.size(); i += 2) {
      if (!is_weights(i)) continue;
      SYRINX_TRY_VOID(walk(root.items[i + 1], std::string(kWeightsKey), 1));
    }
    return {};
  }

  std::vector<TorchTensor> take() { return std::move(tensors_); }

 private:
  Status walk(uint32_t index, const std::string& name, size_t depth) {
    if (depth > kMaxDepth || ++steps_ > kMaxSteps || name.size() > kMaxNameBytes)
      return fail(Code::kLimitExceeded, "'{}': its objects are nested too deeply or are too many", file_);
    const PickleValue& value = graph_.values[index];
    const std::string before = name.empty() ? "" : name + ".";
    if (value.kind == PickleValue::Kind::kTensor) return add(graph_.tensors[static_cast<size_t>(value.whole)], name);
    if (value.kind == PickleValue::Kind::kDict) {
      for (size_t i = 0; i + 1 < value.items.size(); i += 2) {
        SYRINX_TRY_VOID(walk(value.items[i + 1], before + key_text(value.items[i]), depth + 1));
      }
    } else if (value.kind == PickleValue::Kind::kList || value.kind == PickleValue::Kind::kTuple) {
      for (size_t i = 0; i < value.items.size(); ++i)
        SYRINX_TRY_VOID(walk(value.items[i], before + std::to_string(i), depth + 1));
    } else if (value.kind == PickleValue::Kind::kObject) {
      const PickleObject& object = graph_.objects[static_cast<size_t>(value.whole)];
      return fail(Code::kUnsupported, "'{}': {} is a '{}.{}' among the tensors", file_, in_quotes(name),
                  object.module.substr(0, 80), object.name.substr(0, 80));
    }
    return {};
  }
  std::string key_text(uint32_t index) const {
    const PickleValue& key = graph_.values[index];
    return key.kind == PickleValue::Kind::kWhole ? std::to_string(key.whole) : std::string(key.text);
  }

  Status add(const PickleTensor& tensor, const std::string& name) {
    if (tensors_.size() >= kMaxTensors)
      return fail(Code::kLimitExceeded, "'{}': more than {} tensors", file_, kMaxTensors);
    const std::string member_name = prefix_ + "data/" + std::string(tensor.storage.key);
    const ZipMember* const member = archive_.find(member_name);
    if (member == nullptr)
      return fail(Code::kDataLoss, "'{}': tensor {} needs the member {}, which is missing", file_, in_quotes(name),
                  in_quotes(member_name));
    SYRINX_TRY(const auto bytes, archive_.stored(*member));
    const size_t width = dtype_size(tensor.storage.dtype);
    const auto count = element_count(tensor.dims);
    const auto reached = reach(tensor.dims, tensor.strides);
    const size_t available = bytes.size() / width;
    if (!count || !reached || tensor.offset > available || *reached > available - tensor.offset)
      return fail(Code::kDataLoss, "'{}': tensor {} of shape {} leaves its storage of {} values", file_,
                  in_quotes(name), dims_text(tensor.dims), available);
    if (*count > available)
      return fail(Code::kUnsupported, "'{}': tensor {} repeats its values by strides of zero", file_, in_quotes(name));
    TorchTensor out;
    out.name = name;
    out.dtype = tensor.storage.dtype;
    out.dims = tensor.dims;
    out.strides = tensor.strides;
    out.storage = bytes.subspan(tensor.offset * width, *reached * width);
    out.contiguous = is_row_major(tensor.dims, tensor.strides);
    tensors_.push_back(std::move(out));
    return {};
  }

  const PickleGraph& graph_;
  const ZipArchive& archive_;
  const std::string& prefix_;
  const std::string& file_;
  std::vector<TorchTensor> tensors_;
  size_t steps_ = 0;
};

// The folder in front of data.pkl, with its slash.
Result<std::string> find_prefix(const ZipArchive& archive, const std::string& file) {
  for (const ZipMember& member : archive.members()) {
    const size_t slash = member.name.find('/');
    if (slash != std::string::npos && std::string_view(member.name).substr(slash + 1) == kPickleName)
      return member.name.substr(0, slash + 1);
  }
  return fail(Code::kUnsupported, "'{}' is a zip archive, but not one that torch.save wrote: no {} inside", file,
              kPickleName);
}

}  // namespace

Result<TorchFile> TorchFile::parse(std::span<const std::byte> bytes, const std::string& name) {
  if (!ZipArchive::looks_like(bytes))
    return fail(Code::kUnsupported, "'{}' is not a zip archive; save it again with PyTorch 1.6 or later", name);
  SYRINX_TRY(const ZipArchive archive, ZipArchive::parse(bytes, name));
  SYRINX_TRY(const std::string prefix, find_prefix(archive, name));
  if (const ZipMember* order = archive.find(prefix + "byteorder"); order != nullptr) {
    SYRINX_TRY(const auto word, archive.stored(*order));
    if (ByteReader(word).text(word.size()) != "little")
      return fail(Code::kUnsupported, "'{}' holds big-endian values", name);
  }
  SYRINX_TRY(const auto pickle, archive.stored(*archive.find(prefix + std::string(kPickleName))));
  SYRINX_TRY(const PickleGraph graph, parse_pickle(pickle, name));
  Collector collector(graph, archive, prefix, name);
  SYRINX_TRY_VOID(collector.collect());
  TorchFile file;
  file.tensors_ = collector.take();
  std::sort(file.tensors_.begin(), file.tensors_.end(),
            [](const TorchTensor& a, const TorchTensor& b) { return a.name < b.name; });
  for (size_t i = 1; i < file.tensors_.size(); ++i)
    if (file.tensors_[i - 1].name == file.tensors_[i].name)
      return fail(Code::kDataLoss, "'{}': the tensor {} stands twice", name, in_quotes(file.tensors_[i].name));
  return file;
}

const TorchTensor* TorchFile::find(std::string_view name) const {
  const auto at = std::lower_bound(tensors_.begin(), tensors_.end(), name,
                                   [](const TorchTensor& tensor, std::string_view key) { return tensor.name < key; });
  return at != tensors_.end() && at->name == name ? &*at : nullptr;
}

std::vector<float> read_f32(const TorchTensor& tensor) {
  std::vector<float> stored = to_f32(tensor.storage, tensor.dtype);
  if (tensor.contiguous) return stored;
  std::vector<float> out(element_count(tensor.dims).value_or(0));
  std::vector<size_t> at(tensor.dims.size(), 0);
  size_t from = 0;
  for (float& value : out) {
    value = stored[from];
    for (size_t axis = at.size(); axis-- > 0;) {  // the next index, like an odometer
      from += tensor.strides[axis];
      if (++at[axis] < tensor.dims[axis]) break;
      from -= tensor.strides[axis] * tensor.dims[axis];
      at[axis] = 0;
    }
  }
  return out;
}

}  // namespace syrinx
