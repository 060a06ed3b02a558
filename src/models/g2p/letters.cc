#include "models/g2p/letters.h"

#include "text/unicode.h"

namespace syrinx::g2p {

size_t letters_ending(std::string_view letters) {
  const size_t size = letters.size();
  if (size > 2 && (letters.ends_with("'s") || letters.ends_with("'S"))) return 2;
  if (size > 1 && letters.back() == 's' && text::is_ascii_upper(static_cast<unsigned char>(letters[size - 2])))
    return 1;
  return 0;
}

Spoken say_letters(const text::Token& token, const WordRules& rules) {
  const std::string_view all = token.text;
  const size_t ending = letters_ending(all);
  const std::string_view letters = all.substr(0, all.size() - ending);
  Spoken said{from_utf8(token.phonemes), WordKind::kSpelled, SoundRule::kSpelled};
  if (said.phonemes.empty()) said.phonemes = rules.spell(letters).value_or(Phonemes());
  if (ending > 0) {
    said.phonemes = with_s(said.phonemes, rules.british());
    said.read_as = read_as(letters, SoundRule::kSpelled) + text::ascii_lower(all.substr(letters.size()));
  }
  return said;
}

}  // namespace syrinx::g2p
