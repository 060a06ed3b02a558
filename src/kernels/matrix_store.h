// Packed matrices kept in a file, so that a start maps them instead of packing again.
//
//   MatrixStore store = MatrixStore::open(path, key);
//   OwnedMatrix m = store.get("layer.0.in_proj", shape, types, [&] { return pack...; });    for each matrix
//   SYRINX_TRY(bool saved, store.finish());
//
// A store that finds its file bound to the key gives views into the mapping, large matrices copied into huge pages, and
// makes nothing; else every matrix is made, given, and written on the way.  After a finish() that saved, a second pass
// over a store opened anew gives views, and what was made can go.  The file is a PackedFile: written under another name
// and moved, so two processes at once are safe; refused and made again when its key, its index or a matrix's shape is
// not what is expected.
//
// Load time only; one thread.  Views live as long as mapping().
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "kernels/pack.h"
#include "tensor/packed_file.h"

namespace syrinx::kernels {

class MatrixStore {
 public:
  // Keeps nothing and finds nothing.
  MatrixStore() = default;
  // A file that is not there or not whole, or a folder that cannot be written, is no error: matrices are made.
  static MatrixStore open(const std::string& path, const std::string& key);

  // `make` is called unless the file has a matrix of this name, this shape and one of these types.  What it makes
  // without panels is given but not kept.
  OwnedMatrix get(const std::string& name, const MatrixShape& shape, std::initializer_list<PanelType> types,
                  const std::function<OwnedMatrix()>& make);
  // True for a store that has just written its file.  A file in which a matrix was missing is removed.
  bool finish();
  std::shared_ptr<const PackedFile> mapping() const { return file_; }

 private:
  std::optional<OwnedMatrix> find(const std::string& name, const MatrixShape& shape,
                                  std::initializer_list<PanelType> types) const;
  void keep(const std::string& name, const OwnedMatrix& matrix);

  std::string path_, key_;
  std::shared_ptr<const PackedFile> file_;
  std::optional<PackedFileWriter> writer_;
  bool incomplete_ = false;  // the file lacks a matrix
};

}  // namespace syrinx::kernels
