// Packed matrices kept in a file, so that a start maps them instead of packing again.
//
//   read_kept(path, key, [&](MatrixStore& store) -> Status {
//     matrix = store.get("layer.0.in_proj", shape, types, [&] { return pack...; });    for each matrix
//     return {};
//   });
//
// A store that finds its file bound to the key gives views into one run of memory on huge pages, which a mapped file
// cannot have, in the order of the calls, and makes nothing; else every matrix is made, given, and written on the way.
// Where finish() says so, a second pass over a store opened anew gives views, and what was made can go, or has gone as
// soon as it was written.  The file is a
// PackedFile: written under another name and moved, so two processes at once are safe; refused and made again when its
// key, its index, a checksum or a matrix's shape is not what is expected.
//
// Load time only; one thread.  Views live as long as file().
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

// Where a matrix lies: what a frame streams in memory, what is rarely used in the mapped file.
enum class Place : uint8_t { kMemory, kFile };

// Written matrices and bytes stay until the pass has ended, or go at once: matrices are given without panels then and
// bytes as none, so that a model is packed one matrix at a time.
enum class Written : uint8_t { kStays, kGoes };

// Bytes that are looked at here and there: they stay in the mapped file where there is one.
struct StoredBytes {
  std::span<const std::byte> view;
  Buffer<std::byte> own;  // what was made
};

class MatrixStore {
 public:
  // Keeps nothing and finds nothing.
  MatrixStore() = default;
  // A file that is not there or not whole, or a folder that cannot be written, is no error: matrices are made.
  static MatrixStore open(const std::string& path, const std::string& key, Written written = Written::kStays);

  // `make` is called unless the file has a matrix of this name, this shape and one of these types.  What it makes
  // without panels is given but not kept.
  OwnedMatrix get(const std::string& name, const MatrixShape& shape, std::initializer_list<PanelType> types,
                  const std::function<OwnedMatrix()>& make, Place place = Place::kMemory);
  // The same for `size_bytes` of anything; `make` may give none, which is not kept.
  StoredBytes get_bytes(const std::string& name, size_t size_bytes, const std::function<Buffer<std::byte>()>& make);
  // True where a store opened anew does better: this one has just written its file, or has given matrices without
  // panels, or its file lacked something or was damaged, and has been removed.
  bool finish();
  bool has_failed() const { return has_failed_; }  // its file could not be written
  std::shared_ptr<const PackedFile> file() const { return file_; }

 private:
  template <class T>
  std::span<const T> take(const std::string& name, size_t count, Place place);
  std::optional<OwnedMatrix> find(const std::string& name, const MatrixShape& shape,
                                  std::initializer_list<PanelType> types, Place place);
  void keep(const std::string& name, const OwnedMatrix& matrix);
  void note(const Status& written);

  std::string path_, key_;
  std::shared_ptr<PackedFile> file_;
  std::optional<PackedFileWriter> writer_;
  Written written_ = Written::kStays;
  bool incomplete_ = false;  // the file lacks something
  bool is_hollow_ = false;   // a matrix was given without panels
  bool has_failed_ = false;
};

// Calls `read`, which makes its weights anew each time, with a store of this file until all of them come from there,
// three times at most: what is missing is packed into the file in one pass and read from there in the next, so that all
// lies in one run of memory, and a damaged file is found in the first pass and made anew in the second.  `read` takes
// hold of store.file(), where its views lie.  Its errors are returned.  kGoes: what a pass but the last writes goes at
// once; `read` must look at neither.  Where the file cannot be written, the next pass packs all of it again, without
// one.
Status read_kept(const std::string& path, const std::string& key, const std::function<Status(MatrixStore&)>& read,
                 Written written = Written::kStays);

}  // namespace syrinx::kernels
