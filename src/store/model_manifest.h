// Content of a model's folder, as `syrinx pull` left it: the file `installed` beside the model's own.  Loading a model
// reads this and not the catalogue, so that a model stays usable when the catalogue changes.
//
// A text of lines, each a word and its values:
//   syrinx-model 1 / name / kind / licence / description / need NAME / file ROLE SIZE MTIME_NS SHA256 PATH
//   from hf://OWNER/REPOSITORY/PATH@COMMIT    of the file before it, where the hub told size and hash
// `file` lines also say which content was verified: a file with the same size and time is not hashed again.
// Hostile or damaged manifests give kDataLoss; pulling again mends them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace syrinx {

struct ModelFile {
  std::string role;
  std::string name;  // relative to the model's folder: "voices/af_heart.bin"
  std::string path;  // absolute
  uint64_t size_bytes = 0;
  int64_t mtime_ns = 0;
  std::string sha256;
  std::string origin;  // which file of a hub it is; empty: the catalogue's own hash says what it is
};

struct InstalledModel {
  std::string name;
  std::string kind;
  std::string licence;
  std::string description;
  std::string folder;              // absolute
  std::vector<std::string> needs;  // other models
  std::vector<ModelFile> files;

  const ModelFile* first(std::string_view role) const;  // null when there is none
  const ModelFile* at(std::string_view path) const;     // the same
  uint64_t total_bytes() const;
};

// `folder` is the model's own.  kNotFound when nothing is installed there.
Result<InstalledModel> read_manifest(const std::string& folder);
Result<InstalledModel> parse_manifest(std::string_view text, const std::string& folder);
Status write_manifest(const InstalledModel& model);  // ends a change, too

// While files of an installed model are replaced, its list lies under another name, so that nobody takes a mixture of
// two versions for the model.  begin_change() is false where no list was to be set aside.  Errors: kIo.
Result<bool> begin_change(const std::string& folder);
Status undo_change(const std::string& folder);
Result<InstalledModel> read_changing_manifest(const std::string& folder);  // the list that was set aside

}  // namespace syrinx
