// A model's results, stage by stage, and their distance from a maker's arrays of the same names.  For tests, and for
// the programs of bench/.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/mapped_file.h"
#include "base/result.h"
#include "tensor/safetensors.h"
#include "tensor/view.h"

namespace syrinx {

struct StageDifference {
  std::string stage;
  // The largest, in parts of the stage's largest value; infinity where either has a value that is not finite, or ours
  // has another shape or is compared with nothing but zeros.
  double worst = 0;
};

// The largest difference of two arrays in parts of theirs' largest value, as above.
double largest_difference(std::span<const float> ours, std::span<const float> theirs);

class SeenStages {
 public:
  void add(const std::string& stage, std::span<const float> row);
  void add(const std::string& stage, View<const float, 2> rows);
  // For the stages that the reference has, in the order of their names.  Where there is NAME.rows, NAME holds only
  // those rows of the stage.  Our rows may be longer: layers pad theirs.
  std::vector<StageDifference> differences(const Safetensors& reference) const;
  size_t size() const { return stages_.size(); }

 private:
  struct Rows {
    std::span<const float> row(size_t row, size_t columns) const;
    double difference(const Safetensors& reference, const std::string& name) const;

    size_t width = 0;
    std::vector<float> values;
  };
  std::map<std::string, Rows> stages_;
};

// A maker's arrays: FOLDER/reference.safetensors, and what reference.json says of them.
struct ReferenceFiles {
  static Result<ReferenceFiles> open(const std::string& folder);

  MappedFile file;
  Safetensors arrays;
  Json facts;
};

// Values as f32; kNotFound, kDataLoss for an array of another type.
Result<std::vector<float>> f32_array(const Safetensors& reference, const std::string& name);
Result<std::vector<int32_t>> i32_array(const Safetensors& reference, const std::string& name);

}  // namespace syrinx
