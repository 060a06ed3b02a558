#include "seen_stages.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace syrinx {
namespace {

constexpr double kNothingAlike = std::numeric_limits<double>::infinity();

}  // namespace

double largest_difference(std::span<const float> ours, std::span<const float> theirs) {
  if (ours.size() != theirs.size()) return kNothingAlike;
  double worst = 0, largest = 0;
  for (size_t i = 0; i < ours.size(); ++i) {
    if (!std::isfinite(ours[i]) || !std::isfinite(theirs[i])) return kNothingAlike;
    worst = std::max(worst, std::fabs(static_cast<double>(ours[i]) - theirs[i]));
    largest = std::max(largest, std::fabs(static_cast<double>(theirs[i])));
  }
  return largest > 0 ? worst / largest : kNothingAlike;
}

void SeenStages::add(const std::string& stage, std::span<const float> row) {
  Rows& rows = stages_[stage];
  rows.width = row.size();
  rows.values.insert(rows.values.end(), row.begin(), row.end());
}

void SeenStages::add(const std::string& stage, View<const float, 2> rows) {
  for (size_t n = 0; n < rows.extent(0); ++n) add(stage, {rows.row(n), rows.extent(1)});
}

// Row `row`, as many columns as the maker has: layers may pad theirs.
std::span<const float> SeenStages::Rows::row(size_t row, size_t columns) const {
  if (columns > width || row >= values.size() / width) return {};
  return {&values[row * width], columns};
}

double SeenStages::Rows::difference(const Safetensors& reference, const std::string& name) const {
  const auto theirs = f32_array(reference, name);
  const std::vector<size_t>& dims = reference.find(name)->dims;
  if (!theirs) return kNothingAlike;
  if (dims.size() != 2) return largest_difference(values, *theirs);
  std::vector<float> ours;
  const auto append = [&](size_t index) {
    const std::span<const float> columns = row(index, dims[1]);
    ours.insert(ours.end(), columns.begin(), columns.end());
  };
  if (const auto kept = i32_array(reference, name + ".rows")) {
    for (const int32_t index : *kept) append(static_cast<size_t>(index));
  } else {
    for (size_t index = 0; index < values.size() / width; ++index) append(index);
  }
  return largest_difference(ours, *theirs);
}

std::vector<StageDifference> SeenStages::differences(const Safetensors& reference) const {
  std::vector<StageDifference> all;
  for (const auto& [name, rows] : stages_) {
    if (reference.find(name) != nullptr) all.push_back({name, rows.difference(reference, name)});
  }
  return all;
}

Result<ReferenceFiles> ReferenceFiles::open(const std::string& folder) {
  ReferenceFiles files;
  SYRINX_TRY(files.file, MappedFile::open(folder + "/reference.safetensors"));
  SYRINX_TRY(files.arrays, Safetensors::parse(files.file.bytes(), files.file.path()));
  SYRINX_TRY(const MappedFile text, MappedFile::open(folder + "/reference.json"));
  const std::string_view json(reinterpret_cast<const char*>(text.bytes().data()), text.bytes().size());
  SYRINX_TRY(files.facts, parse_json(json, text.path()));
  return files;
}

Result<std::vector<float>> f32_array(const Safetensors& reference, const std::string& name) {
  const TensorRef* const tensor = reference.find(name);
  if (tensor == nullptr) return fail(Code::kNotFound, "the reference has no array '{}'", name);
  if (tensor->dtype != DType::kF32) return fail(Code::kDataLoss, "array '{}' of the reference is not f32", name);
  return to_f32(tensor->bytes, tensor->dtype);
}

Result<std::vector<int32_t>> i32_array(const Safetensors& reference, const std::string& name) {
  const TensorRef* const tensor = reference.find(name);
  if (tensor == nullptr) return fail(Code::kNotFound, "the reference has no array '{}'", name);
  if (tensor->dtype != DType::kI32) return fail(Code::kDataLoss, "array '{}' of the reference is not i32", name);
  std::vector<int32_t> values(tensor->bytes.size() / sizeof(int32_t));
  std::memcpy(values.data(), tensor->bytes.data(), values.size() * sizeof(int32_t));
  return values;
}

}  // namespace syrinx
