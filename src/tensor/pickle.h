// A pickle machine for tensor files that executes nothing: it builds a graph of plain values and of descriptions of
// tensors, and knows the handful of names that torch.save writes (protocols 2 to 4; _rebuild_tensor_v2,
// _rebuild_parameter, the storage classes, OrderedDict, torch.Size).  The classes of settings that trainers keep beside
// the weights (OmegaConf's, NeMo's, Lightning's, plain ones of Python) stay names: whatever is made of them, called on
// them or put into them gives an object of which nothing is known but that name.  Any other name, opcode or call is
// refused.
// Source of the facts: Python's pickletools documentation of the opcodes; PyTorch's torch/_utils.py for the arguments.
//
// Values live in one table and refer to each other by index, so a hostile cycle is only a cycle of numbers: whoever
// walks the graph bounds depth and steps.  Texts point into the pickle, which must outlive the graph.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/dtype.h"

namespace syrinx {

struct PickleStorage {
  DType dtype = DType::kF32;
  std::string_view key;  // the member "data/KEY" of the archive
  size_t elements = 0;
};

struct PickleTensor {
  PickleStorage storage;
  size_t offset = 0;  // in elements, as are the strides
  std::vector<size_t> dims;
  std::vector<size_t> strides;
};

struct PickleValue {
  enum class Kind : uint8_t {
    kNone,
    kBool,
    kWhole,
    kReal,
    kText,
    kTuple,
    kList,
    kDict,
    kName,
    kStorage,
    kTensor,
    kObject
  };
  Kind kind = Kind::kNone;
  int64_t whole = 0;            // kBool, kWhole; the index into storages, tensors or objects; which allowed name
  double real = 0;              // kReal
  std::string_view text;        // kText (text or bytes)
  std::vector<uint32_t> items;  // kTuple, kList; kDict: key, value, key, value
};

// A class of settings, or anything made of it.
struct PickleObject {
  std::string_view module, name;
};

struct PickleGraph {
  std::vector<PickleValue> values;
  std::vector<PickleStorage> storages;
  std::vector<PickleTensor> tensors;
  std::vector<PickleObject> objects;
  uint32_t root = 0;
};

// `name` stands in messages.  kDataLoss (malformed), kUnsupported (asks for something we refuse), kLimitExceeded.
Result<PickleGraph> parse_pickle(std::span<const std::byte> bytes, const std::string& name);

}  // namespace syrinx
