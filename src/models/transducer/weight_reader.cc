#include "models/transducer/weight_reader.h"

#include <algorithm>
#include <string_view>

#include "base/in_quotes.h"

namespace syrinx::transducer {
namespace {

// Names that training leaves in a checkpoint.
constexpr std::string_view kTrainingPrefixes[] = {"loss.",    "joint._loss.", "joint._wer.", "spec_augmentation.",
                                                  "wer.",     "ctc_loss.",    "ctc_wer.",    "joint.loss",
                                                  "joint.wer"};
constexpr std::string_view kTrainingSuffix = "num_batches_tracked";

}  // namespace

WeightReader::WeightReader(const Checkpoint& checkpoint, Precision precision, kernels::MatrixStore* store,
                           ThreadTeam* team)
    : nn::WeightReader({.find = [&checkpoint](std::string_view name) { return checkpoint.find(name); },
                        .release = [&checkpoint] { checkpoint.release(); },
                        .team = team},
                       store),
      checkpoint_(checkpoint),
      precision_(precision) {
  for (const std::string_view prefix : kTrainingPrefixes) know_prefix(std::string(prefix));
}

std::vector<float> WeightReader::variances(const std::string& name, size_t size) {
  std::vector<float> found = values(name, {size});
  if (std::all_of(found.begin(), found.end(), [](float value) { return value >= 0; })) return found;
  faults().note(name + " holds a variance below 0");
  return {};
}

kernels::OwnedMatrix WeightReader::one(PanelType type, const std::string& name, size_t columns, size_t channels,
                                       bool bias) {
  const Columns part{.weight = name + ".weight", .bias = bias ? name + ".bias" : "", .columns = columns};
  return matrix(name, type, {&part, 1}, channels);
}

// A convolution of one tap is a matrix with dims of 1 behind.
WeightReader::Stored WeightReader::stored(const std::string& name, const std::vector<size_t>& dims) {
  std::vector<size_t> padded = dims;
  const TensorRef* const found = find(name);
  while (dims.size() == 2 && found != nullptr && padded.size() < std::min<size_t>(found->dims.size(), 4))
    padded.push_back(1);
  return nn::WeightReader::stored(name, padded);
}

Status WeightReader::finish() {
  for (const TensorRef& tensor : checkpoint_.tensors())
    if (!knows(tensor.name) && !tensor.name.ends_with(kTrainingSuffix))
      faults().note(shortened(tensor.name) + " is not known");
  if (faults().empty()) return {};
  return fail(Code::kDataLoss, "'{}' does not hold the model that its configuration describes: {}", checkpoint_.name(),
              faults().text());
}

}  // namespace syrinx::transducer
