// Reads a model's weights out of a checkpoint by name and shape, packs its matrices, and gathers all that is wrong, so
// that one message tells it.  Load time only; one thread.
#pragma once

#include <functional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/thread_team.h"
#include "kernels/matrix_store.h"
#include "kernels/pack_rows.h"
#include "nn/norm_weights.h"
#include "nn/row_table.h"
#include "tensor/tensor_faults.h"

namespace syrinx::nn {

// A checkpoint: its tensor of a name, or null; and what lets the pages that have been read leave memory, or nothing.
struct TensorSource {
  std::function<const TensorRef*(std::string_view name)> find;
  std::function<void()> release{};
  ThreadTeam* team = nullptr;  // packs the matrices, borrowed; null: the calling thread alone
};

class WeightReader {
 public:
  // Matrices come out of `store`, which is borrowed and may be null, where it has them; then their tensors are not
  // looked at.
  WeightReader(TensorSource source, kernels::MatrixStore* store);
  virtual ~WeightReader() = default;
  WeightReader(const WeightReader&) = delete;
  WeightReader& operator=(const WeightReader&) = delete;

  bool has(std::string_view name) const { return source_.find(name) != nullptr; }
  // A tensor of exactly these dims; null, and noted, if there is no such one.
  const TensorRef* tensor(const std::string& name, const std::vector<size_t>& dims);
  // Its values; empty if there is no such tensor.
  std::vector<float> values(const std::string& name, const std::vector<size_t>& dims);
  NormWeights norm(const std::string& gamma, const std::string& beta, size_t width);

  // Some output columns of a matrix: a tensor [columns, channels], and a bias [columns] unless its name is empty.
  struct Columns {
    std::string weight, bias;
    size_t columns = 0;
  };
  // The columns of several side by side, kept under `key`.  A part without a bias has zeros.
  kernels::OwnedMatrix matrix(const std::string& key, PanelType type, std::span<const Columns> parts, size_t channels,
                              kernels::Place place = kernels::Place::kMemory);
  // A matrix of `rows` [columns, channels] and `bias` [columns], kept under `key`; called unless the store has it.
  // Empty rows stand for tensors that are not as they should be.
  struct Made {
    std::vector<float> rows, bias;
  };
  kernels::OwnedMatrix made(const std::string& key, PanelType type, const kernels::MatrixShape& shape,
                            const std::function<Made()>& make);
  // The first `rows` rows of a tensor [stored_rows, width], kept under `key` in bf16, f16 or a GGUF file's blocks
  // where they are stored so, else in f32.
  RowTable table(const std::string& key, const std::string& name, size_t rows, size_t stored_rows, size_t width) {
    return read_table(key, name, rows, stored_rows, width);
  }
  // Bytes of anything that `make` gives, kept under `key`; for what is looked at here and there (matrix_store.h).
  kernels::StoredBytes bytes(const std::string& key, size_t size_bytes,
                             const std::function<Buffer<std::byte>()>& make) {
    return store_.get_bytes(key, size_bytes, make);
  }
  kernels::MatrixStore& store() { return store_; }

  // A tensor that is known, though nothing reads it now; and all whose names begin so.
  void know(const std::string& name) { known_.insert(name); }
  void know_prefix(const std::string& prefix) { known_prefixes_.push_back(prefix); }
  bool knows(const std::string& name) const;

  TensorFaults& faults() { return faults_; }
  ThreadTeam& team() { return team_; }

 protected:
  // A tensor of exactly these dims as rows, a row for each of dims[0]: views of the file, or of `widened` where the
  // file has them in a form that pack_rows() does not take.  No bytes, and noted, if there is no such tensor.
  struct Stored {
    kernels::StoredRows rows;
    std::vector<float> widened;
  };
  virtual Stored stored(const std::string& name, const std::vector<size_t>& dims);
  virtual RowTable read_table(const std::string& key, const std::string& name, size_t rows, size_t stored_rows,
                              size_t width);
  void release() const {
    if (source_.release) source_.release();
  }
  const TensorRef* find(std::string_view name) const { return source_.find(name); }

 private:
  kernels::OwnedMatrix pack(PanelType type, std::span<const Columns> parts, size_t channels);

  const TensorSource source_;
  kernels::MatrixStore nothing_;
  kernels::MatrixStore& store_;
  ThreadTeam alone_{1};
  ThreadTeam& team_;
  std::set<std::string, std::less<>> known_;
  std::vector<std::string> known_prefixes_;
  TensorFaults faults_;
};

}  // namespace syrinx::nn
