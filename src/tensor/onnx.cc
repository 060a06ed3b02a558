#include "tensor/onnx.h"

#include <cstring>

#include "base/protobuf.h"

namespace syrinx {
namespace {

constexpr size_t kMaxNameBytes = 4096;
constexpr size_t kMaxListItems = 65536;  // inputs, outputs or attributes of a node; whole numbers of an attribute

// The element types of TensorProto, by their numbers.
std::optional<DType> element_type(uint64_t number) {
  switch (number) {
    case 1: return DType::kF32;
    case 2: return DType::kU8;
    case 3: return DType::kI8;
    case 4: return DType::kU16;
    case 5: return DType::kI16;
    case 6: return DType::kI32;
    case 7: return DType::kI64;
    case 9: return DType::kBool;
    case 10: return DType::kF16;
    case 11: return DType::kF64;
    case 12: return DType::kU32;
    case 13: return DType::kU64;
    case 16: return DType::kBF16;
    default: return std::nullopt;
  }
}

// A repeated number: packed in one field, or one field each.
bool read_varints(const ProtoField& field, size_t limit, std::vector<uint64_t>& out) {
  if (!field.is_bytes()) {
    out.push_back(field.varint);
    return field.wire == ProtoField::kVarint && out.size() <= limit;
  }
  ByteReader reader(field.bytes);
  while (!reader.at_end() && !reader.failed()) {
    if (out.size() >= limit) return false;
    out.push_back(reader.varint());
  }
  return !reader.failed();
}

}  // namespace

class OnnxParser {
 public:
  OnnxParser(OnnxFile& file, const std::string& name) : file_(file), name_(name) {}

  Status model(std::span<const std::byte> bytes) {
    bool has_graph = false;
    SYRINX_TRY_VOID(each(bytes, [&](const ProtoField& field) -> Status {
      if (field.number == 2 && field.is_bytes()) file_.producer_ = field.text().substr(0, kMaxNameBytes);
      if (field.number != 7 || !field.is_bytes()) return {};
      if (has_graph) return damaged("it has two graphs");
      has_graph = true;
      return graph(field.bytes);
    }));
    return has_graph ? Status{} : damaged("it has no graph");
  }

  Status index() {
    for (size_t i = 0; i < file_.tensors_.size(); ++i)
      if (!file_.tensor_by_name_.emplace(file_.tensors_[i].name, i).second)
        return fail(Code::kDataLoss, "'{}': the tensor '{}' stands twice", name_, file_.tensors_[i].name);
    for (size_t i = 0; i < file_.nodes_.size(); ++i)
      for (const std::string& output : file_.nodes_[i].outputs)
        if (!output.empty() && !file_.node_by_output_.emplace(output, i).second)
          return fail(Code::kDataLoss, "'{}': two nodes write '{}'", name_, output);
    return {};
  }

 private:
  tl::unexpected<Error> damaged(std::string_view what) const {
    return fail(Code::kDataLoss, "'{}' is not an ONNX file, or is damaged or truncated: {}", name_, what);
  }

  template <class Handler>
  Status each(std::span<const std::byte> message, Handler&& handle) {
    return each_field(message, handle, [this] { return damaged("a field does not fit"); });
  }

  Status read_name(const ProtoField& field, std::string& out) {
    if (!field.is_bytes() || field.bytes.size() > kMaxNameBytes) return damaged("a name is malformed or too long");
    out = field.text();
    return {};
  }

  Status graph(std::span<const std::byte> bytes) {
    return each(bytes, [&](const ProtoField& field) -> Status {
      if (!field.is_bytes()) return {};
      switch (field.number) {
        case 1: return node(field.bytes);
        case 5: return tensor(field.bytes, "");
        case 11: return value_info(field.bytes, file_.inputs_);
        case 12: return value_info(field.bytes, file_.outputs_);
        case 15: return fail(Code::kUnsupported, "'{}' holds sparse tensors, which we cannot read", name_);
        default: return {};
      }
    });
  }

  Status value_info(std::span<const std::byte> bytes, std::vector<std::string>& names) {
    if (names.size() >= kMaxListItems) return too_many("graph inputs or outputs", kMaxListItems);
    names.emplace_back();
    return each(bytes, [&](const ProtoField& field) -> Status {
      return field.number == 1 ? read_name(field, names.back()) : Status{};
    });
  }

  tl::unexpected<Error> too_many(const char* things, size_t limit) const {
    return fail(Code::kLimitExceeded, "'{}' has more than {} {}", name_, limit, things);
  }

  Status node(std::span<const std::byte> bytes) {
    if (file_.nodes_.size() >= OnnxFile::kMaxNodes) return too_many("nodes", OnnxFile::kMaxNodes);
    OnnxNode node;
    std::span<const std::byte> constant;
    SYRINX_TRY_VOID(each(bytes, [&](const ProtoField& field) -> Status {
      switch (field.number) {
        case 1:
        case 2: {
          auto& list = field.number == 1 ? node.inputs : node.outputs;
          if (list.size() >= kMaxListItems) return too_many("inputs of a node", kMaxListItems);
          list.emplace_back();
          return read_name(field, list.back());
        }
        case 3: return read_name(field, node.name);
        case 4: return read_name(field, node.op_type);
        case 5:
          if (node.attributes.size() >= kMaxListItems) return too_many("attributes of a node", kMaxListItems);
          node.attributes.emplace_back();
          return attribute(field, node.attributes.back(), constant);
        default: return {};
      }
    }));
    if (node.op_type == "Constant" && node.outputs.size() == 1 && !constant.empty())
      SYRINX_TRY_VOID(tensor(constant, node.outputs[0]));
    file_.nodes_.push_back(std::move(node));
    return {};
  }

  Status attribute(const ProtoField& whole, OnnxAttribute& out, std::span<const std::byte>& constant) {
    if (!whole.is_bytes()) return damaged("an attribute is malformed");
    std::vector<uint64_t> wholes;
    SYRINX_TRY_VOID(each(whole.bytes, [&](const ProtoField& field) -> Status {
      switch (field.number) {
        case 1: return read_name(field, out.name);
        case 2:
          if (field.bytes.size() == sizeof(float)) std::memcpy(&out.real, field.bytes.data(), sizeof(float));
          return {};
        case 3: out.whole = static_cast<int64_t>(field.varint); return {};
        case 4: return read_name(field, out.text);
        case 5: constant = field.bytes; return {};
        case 8:
          if (!read_varints(field, kMaxListItems, wholes)) return damaged("the numbers of an attribute are malformed");
          return {};
        default: return {};
      }
    }));
    out.wholes.assign(wholes.begin(), wholes.end());
    return {};
  }

  // Where the values of a tensor may stand; exactly one of the forms is used.
  struct Values {
    std::span<const std::byte> raw;
    bool has_raw = false;
    std::vector<std::span<const std::byte>> fixed;  // float_data, double_data: packed runs, or one value each
    std::vector<ProtoField> varints;                // int32_data, int64_data, uint64_data
  };

  // `forced_name` names the tensor of a Constant node; initialisers carry their own.
  Status tensor(std::span<const std::byte> bytes, const std::string& forced_name) {
    if (file_.tensors_.size() >= OnnxFile::kMaxTensors) return too_many("tensors", OnnxFile::kMaxTensors);
    TensorRef tensor;
    Values values;
    std::vector<uint64_t> dims;
    uint64_t type = 0;
    bool external = false;
    SYRINX_TRY_VOID(each(bytes, [&](const ProtoField& field) -> Status {
      switch (field.number) {
        case 1:
          if (!read_varints(field, kMaxRank, dims)) return damaged("the dims of a tensor are malformed");
          return {};
        case 2: type = field.varint; return {};
        case 4:
        case 10: values.fixed.push_back(field.bytes); return {};
        case 5:
        case 7:
        case 11: values.varints.push_back(field); return {};
        case 8: return read_name(field, tensor.name);
        case 9:
          values.raw = field.bytes;
          values.has_raw = true;
          return {};
        case 13: external = true; return {};
        case 14: external = external || field.varint == 1; return {};
        default: return {};
      }
    }));
    if (!forced_name.empty()) tensor.name = forced_name;
    if (external)
      return fail(Code::kUnsupported, "'{}': tensor '{}' lies in another file; save the model with its data inside",
                  name_, tensor.name);
    const auto dtype = element_type(type);
    // Strings (8) and rarer types: constants that no weight has.  They keep their place in the wiring only.
    if (!dtype) return {};
    tensor.dtype = *dtype;
    tensor.dims.assign(dims.begin(), dims.end());
    return finish_tensor(std::move(tensor), values);
  }

  Status finish_tensor(TensorRef tensor, const Values& values) {
    const auto count = element_count(tensor.dims);
    if (!count) return damaged(fmt::format("tensor '{}' has impossible dims", tensor.name));
    const size_t width = dtype_size(tensor.dtype);
    const bool floating = tensor.dtype == DType::kF32 || tensor.dtype == DType::kF64;
    if (values.has_raw) {
      tensor.bytes = values.raw;
    } else if (floating && values.fixed.size() == 1) {
      tensor.bytes = values.fixed[0];
    } else {
      std::vector<std::byte> decoded;
      if (floating)
        for (const auto run : values.fixed) decoded.insert(decoded.end(), run.begin(), run.end());
      else
        SYRINX_TRY_VOID(decode_varints(values, *count, width, decoded));
      file_.decoded_.push_back(std::move(decoded));
      tensor.bytes = file_.decoded_.back();
    }
    if (tensor.bytes.size() % width != 0 || tensor.bytes.size() / width != *count)
      return damaged(fmt::format("tensor '{}' of shape {} and type {} has {} bytes of values", tensor.name,
                                 dims_text(tensor.dims), dtype_name(tensor.dtype), tensor.bytes.size()));
    file_.tensors_.push_back(std::move(tensor));
    return {};
  }

  // A varint holds one element of any width: also the bits of an f16 (onnx.proto, int32_data).
  Status decode_varints(const Values& values, size_t count, size_t width, std::vector<std::byte>& out) {
    std::vector<uint64_t> numbers;
    for (const ProtoField& field : values.varints)
      if (!read_varints(field, count, numbers)) return damaged("the numbers of a tensor are malformed");
    out.resize(numbers.size() * width);
    for (size_t i = 0; i < numbers.size(); ++i) std::memcpy(out.data() + i * width, &numbers[i], width);
    return {};
  }

  OnnxFile& file_;
  const std::string& name_;
};

const OnnxAttribute* OnnxNode::attribute(std::string_view attribute_name) const {
  for (const OnnxAttribute& candidate : attributes)
    if (candidate.name == attribute_name) return &candidate;
  return nullptr;
}

Result<OnnxFile> OnnxFile::parse(std::span<const std::byte> bytes, const std::string& name) {
  OnnxFile file;
  OnnxParser parser(file, name);
  SYRINX_TRY_VOID(parser.model(bytes));
  SYRINX_TRY_VOID(parser.index());
  return file;
}

const TensorRef* OnnxFile::find(std::string_view name) const {
  const auto found = tensor_by_name_.find(name);
  return found == tensor_by_name_.end() ? nullptr : &tensors_[found->second];
}

const OnnxNode* OnnxFile::producer_of(std::string_view value) const {
  const auto found = node_by_output_.find(value);
  return found == node_by_output_.end() ? nullptr : &nodes_[found->second];
}

}  // namespace syrinx
