// Any bytes as a pronunciation file, as a compiled lexicon, and as a user's dictionary.
#include <cstdint>
#include <string>

#include "models/g2p/lexicon.h"
#include "models/g2p/user_dictionary.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  const auto look = [](const syrinx::g2p::Lexicon& lexicon) {
    for (const char* word : {"cat", "Use", "", "zzz"}) {
      if (const auto entry = lexicon.gold(word))
        (void)(entry->find("NOUN").value_or("").size() + entry->default_value().size());
      (void)lexicon.silver(word);
    }
  };
  if (const auto lexicon = syrinx::g2p::Lexicon::compile(bytes, "", "fuzz")) look(*lexicon);
  if (const auto lexicon = syrinx::g2p::Lexicon::from_compiled(bytes, 0, "fuzz")) look(*lexicon);
  if (const auto user = syrinx::g2p::UserDictionary::parse(bytes, "fuzz")) (void)user->find("cat");
  return 0;
}
