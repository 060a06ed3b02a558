// The two archives that visit Kokoro's weights (Weights::each): PackArchive reads a checkpoint and packs, BindArchive
// points at what was packed.  Load time only.  The first error sticks and the rest is skipped.
#pragma once

#include <string>
#include <vector>

#include "models/kokoro/checkpoint.h"
#include "models/kokoro/model.h"
#include "tensor/packed_file.h"
#include "tensor/packed_matrix.h"

namespace syrinx::kokoro {

// How a stored weight lies: linear [out, in]; conv [out, in, k]; transposed conv [in, out, k], packed as two taps whose
// columns are the phases of one stride, each padded to 32 channels.
enum class WeightLayout { kLinear, kConv, kTransposedConv };

struct MatrixRecipe {
  std::string key;                                    // name in the packed file
  std::vector<std::string> weights = {};              // their columns stand side by side
  std::vector<std::vector<std::string>> biases = {};  // for each weight, those that are summed
  WeightLayout layout = WeightLayout::kLinear;
  size_t out = 0;  // of one weight
  size_t in = 0;
  size_t kernel = 1;
  bool keep_f32 = false;  // in every precision
  bool fine = false;      // in int8, activations in two bytes (PackedMatrix::fine)
};

class PackArchive {
 public:
  PackArchive(const Checkpoint& checkpoint, Precision precision, PackedFileWriter& writer)
      : checkpoint_(checkpoint), precision_(precision), writer_(writer) {}
  void matrix(PackedMatrix& unused, const MatrixRecipe& recipe);
  // A vector or table as it is; with `pad`, its last axis is padded to 32 with zeros.
  void values(const float*& unused, const std::string& name, const std::vector<size_t>& shape, bool pad = false);
  // [out, in, taps] -> [taps, padded out]: depthwise weights, tap-major.
  void depthwise(const float*& unused, const std::string& name, size_t channels, size_t taps);
  // A snake's alpha -> alpha / pi, then 1 / alpha, each padded to 32.
  void snake(const float*& unused, const std::string& name, size_t channels);
  // A tiny convolution or linear layer to one value: its weights, then its bias.
  void small(const float*& unused, const std::string& name, const std::vector<size_t>& shape);
  const Status& status() const { return status_; }

 private:
  Result<std::vector<float>> read_values(const std::string& name, const std::vector<size_t>& shape) const;
  Status pack_matrix(const MatrixRecipe& recipe) const;
  tl::unexpected<Error> not_finite(const std::string& name) const;
  void keep(Status status) {
    if (status_ && !status) status_ = std::move(status);
  }

  const Checkpoint& checkpoint_;
  const Precision precision_;
  PackedFileWriter& writer_;
  Status status_;
};

class BindArchive {
 public:
  explicit BindArchive(const PackedFile& file) : file_(file) {}
  void matrix(PackedMatrix& matrix, const MatrixRecipe& recipe);
  void values(const float*& values, const std::string& name, const std::vector<size_t>& shape, bool pad = false);
  void depthwise(const float*& values, const std::string& name, size_t channels, size_t taps);
  void snake(const float*& values, const std::string& name, size_t channels);
  void small(const float*& values, const std::string& name, const std::vector<size_t>& shape);
  const Status& status() const { return status_; }

 private:
  Status bind_matrix(PackedMatrix& matrix, const MatrixRecipe& recipe) const;
  void bind_values(const float*& values, const std::string& name, size_t count);
  void keep(Status status) {
    if (status_ && !status) status_ = std::move(status);
  }

  const PackedFile& file_;
  Status status_;
};

}  // namespace syrinx::kokoro
