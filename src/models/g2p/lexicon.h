// The pronouncing dictionary: misaki's JSON files (gold, silver) compiled once into a sorted binary file that is mapped
// at each start.  Specification: Kokoro, section 8.1.
//
// The compiled file lives in the cache folder, is named by a hash of its sources and carries a hash of its own content:
// a damaged one is made anew.  It is machine-readable only here; its layout may change with kLexiconVersion.
// A Lexicon is immutable and may be used by any number of threads.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/mapped_file.h"
#include "base/result.h"

namespace syrinx::g2p {

inline constexpr uint32_t kLexiconVersion = 1;

// A word's pronunciations: one, or several told apart by a part of speech.  Points into the lexicon.
class Entry {
 public:
  explicit Entry(std::string_view stored) : stored_(stored) {}
  bool by_tag() const { return !stored_.empty() && stored_[0] == '\x01'; }
  // The value for exactly this tag ("NOUN", "VBD", "None", ...), if by_tag().
  std::optional<std::string_view> find(std::string_view tag) const;
  // The only value, or that of the tag DEFAULT.
  std::string_view default_value() const;

 private:
  std::string_view stored_;
};

class Lexicon {
 public:
  // Reads the JSON files through the cache; `silver` and `cache_dir` may be empty.  An unwritable cache is no error.
  static Result<Lexicon> load(const std::string& gold, const std::string& silver, const std::string& cache_dir);
  // Compiles in memory.  `name` appears in messages.
  static Result<Lexicon> compile(std::string_view gold_json, std::string_view silver_json, std::string_view name);
  // A compiled file; kDataLoss naming it when it is not one, is damaged, or was made from other sources than `key`.
  static Result<Lexicon> open_compiled(MappedFile file, uint64_t key);
  static Result<Lexicon> from_compiled(std::string bytes, uint64_t key, std::string_view name);

  // Exact key, else the other form of a capitalised or uncapitalised word (section 8.1).
  std::optional<Entry> gold(std::string_view word) const { return find(0, word); }
  std::optional<Entry> silver(std::string_view word) const { return find(1, word); }
  bool contains(std::string_view word) const { return gold(word).has_value() || silver(word).has_value(); }
  size_t size() const;  // keys in the sources
  std::span<const std::byte> compiled_bytes() const { return bytes_view(); }
  static uint64_t source_key(std::string_view gold_json, std::string_view silver_json);

 private:
  std::span<const std::byte> bytes_view() const;
  Status validate(uint64_t key, std::string_view name);
  std::optional<Entry> find(int tier, std::string_view word) const;
  std::optional<Entry> find_exact(int tier, std::string_view word) const;

  MappedFile file_;
  std::string owned_;
};

}  // namespace syrinx::g2p
