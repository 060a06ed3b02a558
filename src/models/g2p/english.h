// English words to Kokoro's phonemes: lexicon, suffix rules, stress, homographs, and a small network for words that no
// rule knows.  Specification: Kokoro, section 8.
//
// An EnglishG2p is immutable: one may serve any number of threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/speech/normalize.h"

namespace syrinx::g2p {

struct G2pFiles {
  std::string gold;             // us_gold.json or gb_gold.json
  std::string silver;           // us_silver.json or gb_silver.json; empty: none
  std::string fallback;         // oov_bart_en_us.npz; empty: unknown words are spelled
  std::string cache_dir;        // folder for the compiled lexicon; empty: compile in memory at each load
  std::string user_dictionary;  // the user's own words; empty: none
  bool british = false;
};

enum class WordKind : uint8_t {
  kLexicon,
  kSuffix,
  kNumber,
  kFallback,
  kEscape,
  kSpelled,
  kUser,
  kPunctuation,
};
const char* word_kind_name(WordKind kind);

struct PhonemizedWord {
  text::Range source;    // bytes of the text given to phonemize(), moved by its `source_offset`
  text::Range phonemes;  // bytes of Phonemized::phonemes
  WordKind kind = WordKind::kLexicon;
};

struct Phonemized {
  std::string phonemes;               // UTF-8 in Kokoro's alphabet, words separated by one space
  std::vector<PhonemizedWord> words;  // in order; punctuation is a word of its own
  size_t dropped = 0;                 // characters of the text that cannot be spoken

  size_t id_count() const { return text::count_code_points(phonemes); }  // one id a code point
  bool speaks() const;                                                   // has a word, not only punctuation
};

// How a word is read out and which rules decided it: for reports, speech does without.
struct ReadWord {
  std::string word;        // lower case; spelled letters as single capitals with spaces between: "U S"
  std::string_view rule;   // the reader that rewrote the text ("money"), else as `sound`; a literal
  std::string_view sound;  // sound_rule_name()
  text::Range source;      // as in PhonemizedWord
  text::Range phonemes;
};

class EnglishG2p {
 public:
  // kNotFound, kDataLoss with the file's name; a damaged compiled lexicon is made anew, not an error.
  static Result<std::shared_ptr<const EnglishG2p>> load(const G2pFiles& files);
  ~EnglishG2p();

  // One sentence or more, up to 1 MB.  kLimitExceeded, or kInvalidArgument naming the byte that is not UTF-8.
  // Text that leaves nothing to say gives an empty result (speaks() is false), not an error.  `read`, if not null, gets
  // the words without punctuation.
  Result<Phonemized> phonemize(std::string_view text, size_t source_offset = 0,
                               std::vector<ReadWord>* read = nullptr) const;

 private:
  struct Impl;
  explicit EnglishG2p(std::unique_ptr<const Impl> impl);
  std::unique_ptr<const Impl> impl_;
};

}  // namespace syrinx::g2p
