// The initialisers and the wiring of an ONNX file, read without any ONNX or protobuf library.
// Source of the facts: onnx.proto3 (field numbers, IR version 3 and later) and the Protocol Buffers wire format.
//
// Tensors of Constant nodes are listed with the initialisers.  Values lie in the file's bytes, which must outlive the
// object, except where the file stores integers one varint each: those are decoded.  Subgraphs are skipped, external
// data files are refused.  Thread-safe once made.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tensor/dtype.h"

namespace syrinx {

struct OnnxAttribute {
  std::string name;
  int64_t whole = 0;
  float real = 0;
  std::string text;
  std::vector<int64_t> wholes;
};

struct OnnxNode {
  std::string name;
  std::string op_type;
  std::vector<std::string> inputs;  // an empty name is an input left out
  std::vector<std::string> outputs;
  std::vector<OnnxAttribute> attributes;

  // The attribute, or null.
  const OnnxAttribute* attribute(std::string_view attribute_name) const;
};

class OnnxFile {
 public:
  static constexpr size_t kMaxNodes = 200000;
  static constexpr size_t kMaxTensors = 200000;

  // `name` stands in messages.  kDataLoss, kUnsupported, kLimitExceeded.
  static Result<OnnxFile> parse(std::span<const std::byte> bytes, const std::string& name);

  OnnxFile(OnnxFile&&) noexcept = default;
  OnnxFile& operator=(OnnxFile&&) noexcept = default;
  OnnxFile(const OnnxFile&) = delete;  // a copy's tensors would point into the original
  OnnxFile& operator=(const OnnxFile&) = delete;

  const std::vector<TensorRef>& tensors() const { return tensors_; }
  const std::vector<OnnxNode>& nodes() const { return nodes_; }  // in the order of the file
  const std::vector<std::string>& inputs() const { return inputs_; }
  const std::vector<std::string>& outputs() const { return outputs_; }
  const std::string& producer() const { return producer_; }
  const TensorRef* find(std::string_view name) const;
  // The node that writes this value, or null.
  const OnnxNode* producer_of(std::string_view value) const;

 private:
  friend class OnnxParser;
  OnnxFile() = default;
  std::vector<TensorRef> tensors_;
  std::vector<std::vector<std::byte>> decoded_;  // values that the file stores as varints
  std::vector<OnnxNode> nodes_;
  std::vector<std::string> inputs_, outputs_;
  std::string producer_;
  std::unordered_map<std::string_view, size_t> tensor_by_name_;  // keys point into tensors_ and nodes_
  std::unordered_map<std::string_view, size_t> node_by_output_;
};

}  // namespace syrinx
