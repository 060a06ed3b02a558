#include "tensor/ct2_file.h"

#include <algorithm>

#include "base/byte_reader.h"

namespace syrinx {
namespace {

constexpr uint32_t kVersion = 6;
constexpr size_t kMaxNameBytes = 1024;
constexpr uint32_t kMaxVariables = 1 << 20;
// The least that a variable and an alias take: so a count that the rest of the file cannot hold is refused at once.
constexpr size_t kLeastVariableBytes = 2 + 1 + 1 + 4, kLeastAliasBytes = 2 + 2;
constexpr DType kTypes[] = {DType::kF32, DType::kI8, DType::kI16, DType::kI32, DType::kF16, DType::kBF16};

// The text before the final NUL.  Empty, and the reader fails, where there is no NUL or the string is too long.
std::string_view read_string(ByteReader& reader) {
  const size_t size = reader.u16();
  const std::string_view text = reader.text(size);
  if (reader.failed() || text.empty() || text.size() > kMaxNameBytes || text.find('\0') != text.size() - 1) {
    reader.take(~uint64_t{0});
    return {};
  }
  return text.substr(0, text.size() - 1);
}

Result<TensorRef> read_variable(ByteReader& reader, const std::string& file) {
  TensorRef variable;
  variable.name = read_string(reader);
  const size_t rank = reader.u8();
  if (!reader.failed() && rank > kMaxRank)
    return fail(Code::kLimitExceeded, "'{}': variable '{}' has {} dimensions, the limit is {}", file, variable.name,
                rank, kMaxRank);
  for (size_t i = 0; i < rank; ++i) variable.dims.push_back(reader.u32());
  const size_t type = reader.u8(), size_bytes = reader.u32();
  variable.bytes = reader.take(size_bytes);
  if (reader.failed()) return fail(Code::kDataLoss, "'{}' ends or is damaged in variable '{}'", file, variable.name);
  if (type >= std::size(kTypes))
    return fail(Code::kUnsupported, "'{}': variable '{}' has the type {}, the known ones are 0 to {}", file,
                variable.name, type, std::size(kTypes) - 1);
  variable.dtype = kTypes[type];
  const auto count = element_count(variable.dims);
  if (!count || *count * dtype_size(variable.dtype) != size_bytes)
    return fail(Code::kDataLoss, "'{}': variable '{}' of shape {} and type {} does not fill its {} bytes", file,
                variable.name, dims_text(variable.dims), dtype_name(variable.dtype), size_bytes);
  return variable;
}

}  // namespace

Result<Ct2File> Ct2File::parse(std::span<const std::byte> bytes, const std::string& name) {
  ByteReader reader(bytes);
  Ct2File file;
  const uint32_t version = reader.u32();
  if (!reader.failed() && version != kVersion)
    return fail(
        Code::kUnsupported,
        "'{}' is not a model.bin of CTranslate2 in binary version {} (its first number is {}); convert the model "
        "again with a current converter",
        name, kVersion, version);
  file.specification_ = read_string(reader);
  file.revision_ = reader.u32();
  const uint32_t variables = reader.u32();
  if (reader.failed()) return fail(Code::kDataLoss, "'{}' is not a model.bin of CTranslate2, or is truncated", name);
  if (variables > kMaxVariables || variables > reader.remaining() / kLeastVariableBytes)
    return fail(Code::kDataLoss, "'{}' speaks of {} variables, more than its {} bytes can hold", name, variables,
                bytes.size());
  for (uint32_t i = 0; i < variables; ++i) {
    SYRINX_TRY(TensorRef variable, read_variable(reader, name));
    file.names_.push_back({variable.name, i});
    file.variables_.push_back(std::move(variable));
  }
  const auto by_text = [](const Name& a, const Name& b) { return a.text < b.text; };
  std::sort(file.names_.begin(), file.names_.end(), by_text);
  const uint32_t aliases = reader.u32();
  if (reader.failed() || aliases > reader.remaining() / kLeastAliasBytes)
    return fail(Code::kDataLoss, "'{}' ends before its aliases; the file is truncated", name);
  std::vector<Name> more;
  for (uint32_t i = 0; i < aliases; ++i) {
    const std::string_view alias = read_string(reader), variable = read_string(reader);
    if (reader.failed()) return fail(Code::kDataLoss, "'{}' ends or is damaged in its aliases", name);
    const TensorRef* const found = file.find(variable);
    if (found == nullptr)
      return fail(Code::kDataLoss, "'{}': '{}' stands for '{}', which is not there", name, alias, variable);
    more.push_back({std::string(alias), static_cast<size_t>(found - file.variables_.data())});
  }
  file.names_.insert(file.names_.end(), more.begin(), more.end());
  std::sort(file.names_.begin(), file.names_.end(), by_text);
  const auto twice = std::adjacent_find(file.names_.begin(), file.names_.end(),
                                        [](const Name& a, const Name& b) { return a.text == b.text; });
  if (twice != file.names_.end())
    return fail(Code::kDataLoss, "'{}' has the variable '{}' twice; the file is damaged", name, twice->text);
  if (!reader.at_end())
    return fail(Code::kDataLoss, "'{}' goes on for {} bytes behind its end; the file is damaged", name,
                reader.remaining());
  return file;
}

const TensorRef* Ct2File::find(std::string_view name) const {
  const auto at = std::lower_bound(names_.begin(), names_.end(), name,
                                   [](const Name& entry, std::string_view text) { return entry.text < text; });
  return at != names_.end() && at->text == name ? &variables_[at->variable] : nullptr;
}

}  // namespace syrinx
