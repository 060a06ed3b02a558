// Shared by both sources of a checkpoint: the mapping, the answers about names, and the tests of shape.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "models/kokoro/checkpoint.h"

namespace syrinx::kokoro {

// A checkpoint whose names are the keys of a map to `Binding`, which says where the values lie and has a member
// `std::vector<size_t> shape`.
template <class Binding>
class CheckpointFile : public Checkpoint {
 public:
  const std::string& path() const override { return file_.path(); }
  bool contains(std::string_view name) const override { return bindings_.find(name) != bindings_.end(); }
  std::vector<std::string> names() const override {
    std::vector<std::string> out;
    for (const auto& [name, binding] : bindings_) out.push_back(name);
    return out;
  }
  Result<std::vector<size_t>> shape(std::string_view name) const override {
    SYRINX_TRY(const Binding* const binding, find(name));
    return binding->shape;
  }
  Result<StoredWeight> read(std::string_view name, const std::vector<size_t>& shape) const override {
    SYRINX_TRY(const Binding* const binding, find(name));
    SYRINX_TRY_VOID(check_shape(name, binding->shape, shape));
    SYRINX_TRY(StoredWeight weight, load(name, *binding));
    weight.shape = shape;
    return weight;
  }
  Result<std::string> content_hash() const override;

 protected:
  explicit CheckpointFile(MappedFile file) : file_(std::move(file)) {}
  // The values of a binding; the shape is filled in by read().
  virtual Result<StoredWeight> load(std::string_view name, const Binding& binding) const = 0;

  Result<const Binding*> find(std::string_view name) const {
    const auto found = bindings_.find(name);
    if (found == bindings_.end())
      return fail(Code::kDataLoss, "'{}' holds no weight '{}'; it is damaged or another model", path(), name);
    return &found->second;
  }
  // Lets the pages under `bytes` go, if they are the file's.
  void release(std::span<const std::byte> bytes) const {
    const std::byte* const base = file_.bytes().data();
    if (bytes.empty() || std::less<>()(bytes.data(), base) || !std::less<>()(bytes.data(), base + file_.bytes().size()))
      return;
    file_.release(static_cast<size_t>(bytes.data() - base), bytes.size());
  }
  Status check_shape(std::string_view name, const std::vector<size_t>& stored, const std::vector<size_t>& wanted) const;

  MappedFile file_;
  std::map<std::string, Binding, std::less<>> bindings_;
};

std::string content_hash_of(const MappedFile& file);
Status shape_error(const std::string& path, std::string_view name, const std::vector<size_t>& stored,
                   const std::vector<size_t>& wanted);

template <class Binding>
Result<std::string> CheckpointFile<Binding>::content_hash() const {
  return content_hash_of(file_);
}
template <class Binding>
Status CheckpointFile<Binding>::check_shape(std::string_view name, const std::vector<size_t>& stored,
                                            const std::vector<size_t>& wanted) const {
  return stored == wanted ? Status{} : shape_error(path(), name, stored, wanted);
}

// The two sources.  They take the file over.
Result<std::unique_ptr<Checkpoint>> open_onnx_checkpoint(MappedFile file);
Result<std::unique_ptr<Checkpoint>> open_torch_checkpoint(MappedFile file);

}  // namespace syrinx::kokoro
