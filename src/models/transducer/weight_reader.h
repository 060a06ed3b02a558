// nn/weight_reader.h for the names and the leftovers of NeMo's checkpoints.  Load time only; one thread.
#pragma once

#include <string>
#include <vector>

#include "models/transducer/checkpoint.h"
#include "nn/weight_reader.h"
#include "tensor/precision.h"

namespace syrinx::transducer {

using nn::NormWeights;

class WeightReader : public nn::WeightReader {
 public:
  // Both are borrowed.
  WeightReader(const Checkpoint& checkpoint, Precision precision, kernels::MatrixStore* store = nullptr,
               ThreadTeam* team = nullptr);

  Precision precision() const { return precision_; }
  // The values of a vector, of which none is below 0.
  std::vector<float> variances(const std::string& name, size_t size);
  // NAME.weight and NAME.bias.
  NormWeights norm(const std::string& name, size_t width) {
    return nn::WeightReader::norm(name + ".weight", name + ".bias", width);
  }
  // NAME.weight [columns, channels], maybe with dims of 1 behind, and NAME.bias; kept under NAME.
  // In f32 whatever the precision.
  kernels::OwnedMatrix exact(const std::string& name, size_t columns, size_t channels, bool bias) {
    return one(PanelType::kF32, name, columns, channels, bias);
  }
  // In the precision.
  kernels::OwnedMatrix narrow(const std::string& name, size_t columns, size_t channels, bool bias) {
    return one(panel_type(precision_), name, columns, channels, bias);
  }
  kernels::OwnedMatrix made(const std::string& name, size_t columns, size_t channels, bool narrow,
                            const std::function<Made()>& make) {
    return nn::WeightReader::made(name, narrow ? panel_type(precision_) : PanelType::kF32,
                                  {.columns = columns, .channels = channels}, make);
  }

  // The file that the matrices are views of, or none.
  std::shared_ptr<const PackedFile> packed() { return store().file(); }

  // kDataLoss once something was wrong, or when the file has tensors that nobody knows: one sentence names them.
  Status finish();

 private:
  Stored stored(const std::string& name, const std::vector<size_t>& dims) override;
  kernels::OwnedMatrix one(PanelType type, const std::string& name, size_t columns, size_t channels, bool bias);

  const Checkpoint& checkpoint_;
  const Precision precision_;
};

}  // namespace syrinx::transducer
