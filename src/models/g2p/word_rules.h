// How one word is said: special words, lexicon, endings, spelling.  Specification: Kokoro, section 8.2, steps 2 to 5.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "models/g2p/english.h"
#include "models/g2p/homographs.h"
#include "models/g2p/lexicon.h"
#include "models/g2p/phoneme.h"
#include "models/g2p/tagger.h"

namespace syrinx::g2p {

// Context behind a word; known because words are looked at from right to left.
struct Following {
  std::optional<bool> vowel;  // does the next sound begin a vowel; nothing at the end of a phrase
  bool to = false;            // the next word is "to"
  // Takes in the sounds of the word just said.
  void see(PhonemesView phonemes, std::string_view word);
};

// The rule that decided how a word sounds.  The names of sound_rule_name() are part of the interface (docs/cli.md).
enum class SoundRule : uint8_t {
  kLexicon,           // the one pronunciation of the larger list (gold)
  kLexiconSilver,     // of the second list
  kLexiconStem,       // a word of either list with -s, -ed or -ing
  kFunctionWord,      // "the", "to", "used": by the next sound or word
  kHeteronymTag,      // one of several pronunciations: by the part of speech,
  kHeteronymEnd,      // because no word follows in the phrase,
  kHeteronymDefault,  // or because nothing decided
  kHeteronymStem,     // such a word with -s, -ed or -ing
  kHomograph,         // one of several pronunciations: by the words around it (homographs.h)
  kSpelled,           // letter by letter
  kSpelledStem,       // the same with -s, -ed or -ing: "IDs"
  kCompound,          // parts, each by a rule of its own
  kLetterToSound,     // the network for unknown words
  kDictionary,        // the user's own words
  kPhonemes,          // phonemes in the text
  kTable,             // those of a list of acronyms, names and borrowed words, or of a contraction's parts
};
const char* sound_rule_name(SoundRule rule);

struct Spoken {
  Phonemes phonemes;
  WordKind kind = WordKind::kLexicon;
  SoundRule rule = SoundRule::kLexicon;
  std::string read_as = {};  // as ReadWord::word, where the written word and the rule do not tell
};

// A word as it is read out by that rule: in lower case, hyphens as spaces; spelled letters as single capitals.
std::string read_as(std::string_view word, SoundRule rule);

class WordRules {
 public:
  // `lexicon` must outlive the rules.
  WordRules(const Lexicon& lexicon, bool british) : lexicon_(lexicon), british_(british) {}

  // A word of ASCII letters, apostrophes, hyphens and points, as written.  Nothing when no rule knows it.
  std::optional<Spoken> say(std::string_view word, Tag tag, const Following& following) const;
  // A homograph by a reading that its sentence has chosen.  Nothing where the lexicon does not have that variant.
  std::optional<Spoken> say_reading(std::string_view word, const HomographReading& reading) const;
  // Letter by letter, the last one stressed.  Nothing if the lexicon lacks a letter's name.
  std::optional<Phonemes> spell(std::string_view letters) const;
  bool british() const { return british_; }

 private:
  struct Query {
    Tag tag;
    std::optional<float> stress;
    const Following& following;
  };
  std::optional<Spoken> special(std::string_view word, const Query& query) const;
  std::optional<Spoken> to_or_the(std::string_view lower, const Query& query) const;
  bool known(std::string_view word) const;
  std::optional<Entry> letter_name(char upper) const;
  std::optional<Spoken> look_up(std::string_view word, const Query& query) const;
  std::optional<Spoken> regular(std::string_view word, const Query& query) const;  // a word or a possessive of one
  std::optional<Spoken> ending(std::string_view word, const Query& query) const;
  std::optional<Spoken> with_ending(std::string_view word, std::string_view stem, const std::optional<Spoken>& said,
                                    Phonemes (*add)(PhonemesView, bool)) const;
  std::optional<std::string> stem_of_s(std::string_view word) const;
  std::optional<std::string> stem_of_ed(std::string_view word) const;
  std::optional<std::string> stem_of_ing(std::string_view word) const;
  std::string chosen_case(std::string_view word, const Query& query) const;

  const Lexicon& lexicon_;
  bool british_;
};

}  // namespace syrinx::g2p
