#include "nn/weight_reader.h"

#include <algorithm>
#include <utility>

namespace syrinx::nn {
namespace {

constexpr size_t kTableCopyBytes = size_t{16} << 20;

}  // namespace

WeightReader::WeightReader(TensorSource source, kernels::MatrixStore* store)
    : source_(std::move(source)),
      store_(store != nullptr ? *store : nothing_),
      team_(source_.team != nullptr ? *source_.team : alone_) {}

const TensorRef* WeightReader::tensor(const std::string& name, const std::vector<size_t>& dims) {
  know(name);
  const TensorRef* const found = find(name);
  return faults_.accept(name, found, dims) ? found : nullptr;
}

WeightReader::Stored WeightReader::stored(const std::string& name, const std::vector<size_t>& dims) {
  const TensorRef* const found = tensor(name, dims);
  if (found == nullptr) return {};
  return {.rows = {.bytes = found->bytes, .dtype = found->dtype, .columns = dims.front()}, .widened = {}};
}

std::vector<float> WeightReader::values(const std::string& name, const std::vector<size_t>& dims) {
  Stored found = stored(name, dims);
  if (!found.widened.empty() || found.rows.bytes.empty()) return std::move(found.widened);
  std::vector<float> read = to_f32(found.rows.bytes, found.rows.dtype);
  release();
  return read;
}

NormWeights WeightReader::norm(const std::string& gamma, const std::string& beta, size_t width) {
  return {values(gamma, {width}), values(beta, {width})};
}

kernels::OwnedMatrix WeightReader::matrix(const std::string& key, PanelType type, std::span<const Columns> parts,
                                          size_t channels, kernels::Place place) {
  kernels::MatrixShape shape{.columns = 0, .channels = channels};
  for (const Columns& part : parts) {
    shape.columns += part.columns;
    know(part.weight);
    if (!part.bias.empty()) know(part.bias);
  }
  return store_.get(
      key, shape, {type}, [&] { return pack(type, parts, channels); }, place);
}

// Nothing is packed once something is wrong.
kernels::OwnedMatrix WeightReader::pack(PanelType type, std::span<const Columns> parts, size_t channels) {
  std::vector<Stored> found;
  std::vector<float> bias;
  for (const Columns& part : parts) {
    found.push_back(stored(part.weight, {part.columns, channels}));
    const std::vector<float> more =
        part.bias.empty() ? std::vector<float>(part.columns) : values(part.bias, {part.columns});
    bias.insert(bias.end(), more.begin(), more.end());
  }
  if (!faults_.empty()) return {};
  std::vector<kernels::StoredRows> rows;
  rows.reserve(found.size());
  for (const Stored& one : found) rows.push_back(one.rows);
  kernels::OwnedMatrix packed = kernels::pack_rows(type, channels, rows, bias, team_);
  release();
  return packed;
}

kernels::OwnedMatrix WeightReader::made(const std::string& key, PanelType type, const kernels::MatrixShape& shape,
                                        const std::function<Made()>& make) {
  return store_.get(key, shape, {type}, [&] {
    const Made made = make();
    if (!faults_.empty() || made.rows.size() != shape.columns * shape.channels) return kernels::OwnedMatrix();
    const kernels::StoredRows rows{
        .bytes = std::as_bytes(std::span(made.rows)), .dtype = DType::kF32, .columns = shape.columns};
    return kernels::pack_rows(type, shape.channels, {&rows, 1}, made.bias, team_);
  });
}

RowTable WeightReader::read_table(const std::string& key, const std::string& name, size_t rows, size_t stored_rows,
                                  size_t width) {
  know(name);
  const TensorRef* const found = find(name);
  RowTable table{.width = width, .type = GgmlType::kF32, .bytes = {}};
  if (found != nullptr && found->dtype == DType::kF16) table.type = GgmlType::kF16;
  if (found != nullptr && found->dtype == DType::kBF16) table.type = GgmlType::kBF16;
  const size_t size_bytes = rows * table.row_bytes();
  table.bytes = bytes(key, size_bytes, [&] {
    const Stored read = stored(name, {stored_rows, width});
    if (read.rows.bytes.empty()) return Buffer<std::byte>();
    Buffer<std::byte> made(size_bytes);
    // The file's pages leave memory on the way: a table may be a third of the model.
    for (size_t first = 0; first < size_bytes; first += kTableCopyBytes) {
      std::copy_n(read.rows.bytes.data() + first, std::min(kTableCopyBytes, size_bytes - first), made.data() + first);
      release();
    }
    return made;
  });
  return table;
}

bool WeightReader::knows(const std::string& name) const {
  return known_.contains(name) || std::any_of(known_prefixes_.begin(), known_prefixes_.end(),
                                              [&](const std::string& prefix) { return name.starts_with(prefix); });
}

}  // namespace syrinx::nn
