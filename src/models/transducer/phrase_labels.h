// Text as the labels that spell it, for words to favour (spec transducer-asr.md, section 1.5): BPE's merges where the
// vocabulary has their ranks, else the fewest labels.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "models/transducer/vocabulary.h"

namespace syrinx::transducer {

inline constexpr size_t kMaxPhraseBytes = 256;

// A phrase of one or more words; blanks around it and between words count as one.  kInvalidArgument for one without
// words, for malformed UTF-8 and for characters that no label spells; kLimitExceeded beyond kMaxPhraseBytes.
Result<std::vector<int32_t>> phrase_labels(const Vocabulary& vocabulary, std::string_view phrase);

}  // namespace syrinx::transducer
