// Weights out of a GGUF file (tensor/gguf.h), whose blocks are widened to f32 before they are packed; a table of rows
// keeps the file's blocks.  Load time only; one thread.
#pragma once

#include "nn/weight_reader.h"
#include "tensor/gguf.h"

namespace syrinx::nn {

class GgufReader : public WeightReader {
 public:
  // `file` outlives the reader; `release` and `team` as in TensorSource, `store` as in WeightReader.
  GgufReader(const GgufFile& file, kernels::MatrixStore* store, std::function<void()> release = {},
             ThreadTeam* team = nullptr);

 protected:
  Stored stored(const std::string& name, const std::vector<size_t>& dims) override;
  RowTable read_table(const std::string& key, const std::string& name, size_t rows, size_t stored_rows,
                      size_t width) override;

 private:
  // Whether it has these dims; noted otherwise.
  bool accept(const GgufTensor& tensor, const std::vector<size_t>& dims);
  // visit(row, values) for each row in f32, shared out among the team; false, and noted, if a number is not finite.
  template <class Visit>
  bool each_row(const GgufTensor& tensor, Visit&& visit);

  const GgufFile& file_;
};

}  // namespace syrinx::nn
