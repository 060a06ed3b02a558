// model.bin of CTranslate2, binary version 6, little endian (spec whisper.md, section 3; the maker's
// python/ctranslate2/specs/model_spec.py writes it):
//
//   u32 version (6) · string name of the specification · u32 its revision · u32 number of variables ·
//   per variable: string name, u8 rank, u32 dims[rank], u8 type, u32 bytes, the values ·
//   u32 number of aliases · per alias: string name, string variable
//
// A string is u16 length with a final NUL, then the bytes.  Types: 0 f32, 1 i8, 2 i16, 3 i32, 4 f16, 5 bf16.  Nothing
// is aligned.
//
// The reader checks everything before it hands out a span: names of at most 1 KiB, none twice, sizes in agreement with
// type and dims, aliases of variables that are there.  It does not own the bytes.  Thread-safe once made.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/dtype.h"

namespace syrinx {

class Ct2File {
 public:
  // `name` stands in messages.  kDataLoss, kUnsupported (another binary version), kLimitExceeded.
  static Result<Ct2File> parse(std::span<const std::byte> bytes, const std::string& name);

  const std::string& specification() const { return specification_; }  // "WhisperSpec"
  uint32_t revision() const { return revision_; }
  // In the order of the file, without the aliases.
  const std::vector<TensorRef>& variables() const { return variables_; }
  // The variable of that name or alias; null if there is none.
  const TensorRef* find(std::string_view name) const;

 private:
  struct Name {
    std::string text;
    size_t variable = 0;
  };

  std::string specification_;
  uint32_t revision_ = 0;
  std::vector<TensorRef> variables_;
  std::vector<Name> names_;  // of variables and aliases, sorted
};

}  // namespace syrinx
