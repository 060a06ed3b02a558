#include "models/transducer/weight_reader.h"

#include <algorithm>
#include <utility>

#include "base/cpu_info.h"
#include "base/in_quotes.h"
#include "kernels/pack_rows.h"
#include "tensor/tensor_faults.h"

namespace syrinx::transducer {
namespace {

constexpr int kMaxPackThreads = 8;
// Prefixes of tensors that only training uses.
constexpr std::string_view kTrainingPrefixes[] = {"loss.",    "joint._loss.", "joint._wer.", "spec_augmentation.",
                                                  "wer.",     "ctc_loss.",    "ctc_wer.",    "joint.loss",
                                                  "joint.wer"};
constexpr std::string_view kTrainingSuffix = "num_batches_tracked";

}  // namespace

WeightReader::WeightReader(const Checkpoint& checkpoint, Precision precision, kernels::MatrixStore* store)
    : checkpoint_(checkpoint),
      precision_(precision),
      store_(store != nullptr ? *store : nothing_),
      team_(std::min(cpu_info().logical_cores, kMaxPackThreads)) {}

const TensorRef* WeightReader::tensor(const std::string& name, const std::vector<size_t>& dims) {
  known_.insert(name);
  const TensorRef* const found = checkpoint_.find(name);
  return faults_.accept(name, found, dims) ? found : nullptr;
}

std::vector<float> WeightReader::values(const std::string& name, const std::vector<size_t>& dims) {
  const TensorRef* const found = tensor(name, dims);
  return found == nullptr ? std::vector<float>() : to_f32(found->bytes, found->dtype);
}

std::vector<float> WeightReader::variances(const std::string& name, size_t size) {
  std::vector<float> found = values(name, {size});
  if (std::all_of(found.begin(), found.end(), [](float value) { return value >= 0; })) return found;
  note(name + " holds a variance below 0");
  return {};
}

NormWeights WeightReader::norm(const std::string& name, size_t width) {
  return {values(name + ".weight", {width}), values(name + ".bias", {width})};
}

kernels::OwnedMatrix WeightReader::exact(const std::string& name, size_t columns, size_t channels, bool bias) {
  return matrix(PanelType::kF32, {{.name = name, .columns = columns}}, channels, bias);
}

kernels::OwnedMatrix WeightReader::narrow(const std::string& name, size_t columns, size_t channels, bool bias) {
  return matrix(panel_type(precision_), {{.name = name, .columns = columns}}, channels, bias);
}

kernels::OwnedMatrix WeightReader::narrow(const std::vector<Part>& parts, size_t channels, bool bias) {
  return matrix(panel_type(precision_), parts, channels, bias);
}

kernels::OwnedMatrix WeightReader::made(const std::string& name, size_t columns, size_t channels, bool narrow,
                                        const std::function<Made()>& make) {
  const PanelType type = narrow ? panel_type(precision_) : PanelType::kF32;
  return store_.get(name, {.columns = columns, .channels = channels}, {type}, [&] {
    const Made made = make();
    if (!faults_.empty() || made.rows.size() != columns * channels) return kernels::OwnedMatrix();
    const kernels::StoredRows rows{
        .bytes = std::as_bytes(std::span(made.rows)), .dtype = DType::kF32, .columns = columns};
    return kernels::pack_rows(type, channels, {&rows, 1}, made.bias, team_);
  });
}

kernels::OwnedMatrix WeightReader::matrix(PanelType type, const std::vector<Part>& parts, size_t channels,
                                          bool with_bias) {
  kernels::MatrixShape shape{.columns = 0, .channels = channels};
  for (const Part& part : parts) {
    shape.columns += part.columns;
    known_.insert(part.name + ".weight");
    if (with_bias) known_.insert(part.name + ".bias");
  }
  return store_.get(parts.front().name, shape, {type}, [&] { return pack(type, parts, channels, with_bias); });
}

// Nothing is packed once something is wrong.
kernels::OwnedMatrix WeightReader::pack(PanelType type, const std::vector<Part>& parts, size_t channels,
                                        bool with_bias) {
  std::vector<kernels::StoredRows> stored;
  std::vector<float> bias;
  for (const Part& part : parts) {
    std::vector<size_t> dims = {part.columns, channels};
    const TensorRef* const rank = checkpoint_.find(part.name + ".weight");
    // A convolution of one tap is a matrix with dims of 1 behind.
    while (rank != nullptr && dims.size() < std::min<size_t>(rank->dims.size(), 4)) dims.push_back(1);
    const TensorRef* const rows = tensor(part.name + ".weight", dims);
    if (rows != nullptr) stored.push_back({.bytes = rows->bytes, .dtype = rows->dtype, .columns = part.columns});
    if (!with_bias) continue;
    const std::vector<float> more = values(part.name + ".bias", {part.columns});
    bias.insert(bias.end(), more.begin(), more.end());
  }
  if (!faults_.empty()) return {};
  kernels::OwnedMatrix packed = kernels::pack_rows(type, channels, stored, bias, team_);
  checkpoint_.release();
  return packed;
}

bool WeightReader::is_known(const std::string& name) const {
  const auto begins = [&](std::string_view prefix) { return name.starts_with(prefix); };
  return known_.contains(name) || name.ends_with(kTrainingSuffix) ||
         std::any_of(std::begin(kTrainingPrefixes), std::end(kTrainingPrefixes), begins) ||
         std::any_of(known_prefixes_.begin(), known_prefixes_.end(), begins);
}

Status WeightReader::finish() {
  for (const TensorRef& tensor : checkpoint_.tensors())
    if (!is_known(tensor.name)) note(shortened(tensor.name) + " is not known");
  if (faults_.empty()) return {};
  return fail(Code::kDataLoss, "'{}' does not hold the model that its configuration describes: {}", checkpoint_.name(),
              faults_.text());
}

std::nullptr_t WeightReader::note(const std::string& fault) {
  faults_.note(fault);
  return nullptr;
}

}  // namespace syrinx::transducer
