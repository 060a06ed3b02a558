#include "nn/gguf_reader.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <memory>

namespace syrinx::nn {
namespace {

// Plain tensors as they are; of blocks the bytes of each row, which are read elsewhere.
TensorRef plain_view(const GgufTensor& tensor) {
  TensorRef ref{.name = std::string(tensor.name), .dims = tensor.dims, .bytes = tensor.bytes};
  if (const std::optional<DType> plain = plain_dtype(tensor.type)) {
    ref.dtype = *plain;
  } else {
    const GgmlBlock block = ggml_block(tensor.type);
    ref.dtype = DType::kU8;
    ref.dims.back() = ref.dims.back() / block.weights * block.bytes;
  }
  return ref;
}

TensorSource source_of(const GgufFile& file, std::function<void()> release, ThreadTeam* team) {
  const auto tensors = std::make_shared<std::map<std::string_view, TensorRef>>();
  for (const GgufTensor& tensor : file.tensors()) tensors->emplace(tensor.name, plain_view(tensor));
  return {.find = [tensors](std::string_view name) -> const TensorRef* {
            const auto found = tensors->find(name);
            return found == tensors->end() ? nullptr : &found->second;
          },
          .release = std::move(release),
          .team = team};
}

bool is_blocks(const GgufTensor* tensor) { return tensor != nullptr && !plain_dtype(tensor->type); }

}  // namespace

GgufReader::GgufReader(const GgufFile& file, kernels::MatrixStore* store, std::function<void()> release,
                       ThreadTeam* team)
    : WeightReader(source_of(file, std::move(release), team), store), file_(file) {}

bool GgufReader::accept(const GgufTensor& tensor, const std::vector<size_t>& dims) {
  know(std::string(tensor.name));
  if (tensor.dims == dims) return true;
  faults().note(fmt::format("{} has the shape {}, not {}", tensor.name, dims_text(tensor.dims), dims_text(dims)));
  return false;
}

template <class Visit>
bool GgufReader::each_row(const GgufTensor& tensor, Visit&& visit) {
  const size_t width = tensor.dims.back(), rows = *element_count(tensor.dims) / width;
  const size_t row_bytes = tensor.bytes.size() / rows;
  std::atomic<bool> finite = true;
  team().run([&](int member) {
    std::vector<float> values(width);
    const Range own = split_range(rows, member, team().size());
    for (size_t row = own.begin; row < own.end; ++row) {
      ggml_to_f32(tensor.bytes.subspan(row * row_bytes, row_bytes), tensor.type, values.data());
      if (!std::all_of(values.begin(), values.end(), [](float value) { return std::isfinite(value); })) finite = false;
      visit(row, values);
    }
  });
  if (!finite) faults().note(fmt::format("{} holds values that are not finite", tensor.name));
  return finite;
}

WeightReader::Stored GgufReader::stored(const std::string& name, const std::vector<size_t>& dims) {
  const GgufTensor* const found = file_.find(name);
  if (!is_blocks(found)) return WeightReader::stored(name, dims);
  if (!accept(*found, dims)) return {};
  Stored made;
  made.widened.resize(*element_count(dims));
  const bool finite = each_row(*found, [&](size_t row, const std::vector<float>& values) {
    std::copy(values.begin(), values.end(), made.widened.begin() + static_cast<ptrdiff_t>(row * values.size()));
  });
  release();
  if (!finite) return {};
  made.rows = {
      .bytes = std::as_bytes(std::span<const float>(made.widened)), .dtype = DType::kF32, .columns = dims.front()};
  return made;
}

RowTable GgufReader::read_table(const std::string& key, const std::string& name, size_t rows, size_t stored_rows,
                                size_t width) {
  const GgufTensor* const found = file_.find(name);
  if (!is_blocks(found)) return WeightReader::read_table(key, name, rows, stored_rows, width);
  RowTable table{.width = width, .type = found->type, .bytes = {}};
  if (!accept(*found, {stored_rows, width})) return table;
  const size_t size_bytes = rows * table.row_bytes();
  table.bytes = bytes(key, size_bytes, [&] {
    if (!each_row(*found, [](size_t, const std::vector<float>&) {})) return Buffer<std::byte>();
    Buffer<std::byte> made(size_bytes);
    std::copy_n(found->bytes.begin(), size_bytes, made.data());
    release();
    return made;
  });
  return table;
}

}  // namespace syrinx::nn
