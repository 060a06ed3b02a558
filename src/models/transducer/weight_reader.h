// Reads a model's weights out of a checkpoint by name and shape, packs its matrices, and gathers all that is wrong, so
// that one message tells it.  Load time only; one thread.
#pragma once

#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/thread_team.h"
#include "kernels/matrix_store.h"
#include "models/transducer/checkpoint.h"
#include "nn/norm_weights.h"
#include "tensor/precision.h"
#include "tensor/tensor_faults.h"

namespace syrinx::transducer {

using nn::NormWeights;

class WeightReader {
 public:
  // Both are borrowed; matrices come out of `store` where it has them, and then their tensors are not looked at.
  WeightReader(const Checkpoint& checkpoint, Precision precision, kernels::MatrixStore* store = nullptr);

  Precision precision() const { return precision_; }
  bool has(std::string_view name) const { return checkpoint_.find(name) != nullptr; }
  // A tensor of exactly these dims; null, and noted, if there is no such one.
  const TensorRef* tensor(const std::string& name, const std::vector<size_t>& dims);
  // Its values; empty if there is no such tensor.
  std::vector<float> values(const std::string& name, const std::vector<size_t>& dims);
  // The same of a vector, and none is below 0.
  std::vector<float> variances(const std::string& name, size_t size);
  // NAME.weight and NAME.bias.
  NormWeights norm(const std::string& name, size_t width);

  // Some output columns of a matrix: NAME.weight [columns, channels], maybe with dims of 1 behind, and NAME.bias.
  struct Part {
    std::string name;
    size_t columns = 0;
  };
  // In f32 whatever the precision.
  kernels::OwnedMatrix exact(const std::string& name, size_t columns, size_t channels, bool bias);
  // In the precision.
  kernels::OwnedMatrix narrow(const std::string& name, size_t columns, size_t channels, bool bias);
  // The columns of several side by side.
  kernels::OwnedMatrix narrow(const std::vector<Part>& parts, size_t channels, bool bias);
  // A matrix made of `rows` [columns, channels] and `bias` [columns], kept under `name`; `make` is called unless the
  // store has it.  Empty rows stand for faulty tensors.
  struct Made {
    std::vector<float> rows, bias;
  };
  kernels::OwnedMatrix made(const std::string& name, size_t columns, size_t channels, bool narrow,
                            const std::function<Made()>& make);
  // Bytes of anything that `make` gives, kept under `name`; for what is looked at here and there (matrix_store.h).
  kernels::StoredBytes bytes(const std::string& name, size_t size_bytes,
                             const std::function<Buffer<std::byte>()>& make) {
    return store_.get_bytes(name, size_bytes, make);
  }

  // The file that the matrices are views of, if they are.
  std::shared_ptr<const PackedFile> packed() const { return store_.file(); }

  // Notes that a tensor is known, though nothing reads it now.
  void know(const std::string& name) { known_.insert(name); }
  void know_prefix(const std::string& prefix) { known_prefixes_.push_back(prefix); }

  // kDataLoss once something was wrong, or when the file has tensors that nobody knows: one sentence names them.
  Status finish();

 private:
  kernels::OwnedMatrix matrix(PanelType type, const std::vector<Part>& parts, size_t channels, bool with_bias);
  kernels::OwnedMatrix pack(PanelType type, const std::vector<Part>& parts, size_t channels, bool with_bias);
  bool is_known(const std::string& name) const;
  std::nullptr_t note(const std::string& fault);

  const Checkpoint& checkpoint_;
  const Precision precision_;
  kernels::MatrixStore nothing_;
  kernels::MatrixStore& store_;
  ThreadTeam team_;
  std::set<std::string, std::less<>> known_;
  std::vector<std::string> known_prefixes_;
  TensorFaults faults_;
};

}  // namespace syrinx::transducer
