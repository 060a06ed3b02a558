// Any bytes as a SentencePiece file.  What loads as a tokenizer must encode a text and decode it to UTF-8.  What loads
// as pieces, of other kinds of models too, must be a vocabulary whose every label spells UTF-8, in texts and words, and
// whose phrases spell what was asked for.
// Parsers: src/models/transducer/(vocabulary|phrase_labels)\.cc
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "models/transducer/phrase_labels.h"
#include "models/transducer/words.h"
#include "text/tokens/sentencepiece_file.h"
#include "text/unicode.h"

namespace {

using syrinx::transducer::Vocabulary;

void use_tokenizer(std::span<const std::byte> bytes) {
  const auto tokenizer = syrinx::text::read_sentencepiece(bytes, "fuzz");
  if (!tokenizer) return;
  const auto ids =
      tokenizer->encode("  He said\u2026 \u201C\uFB01ne\u201D \u00BD e\u0301 \u2460\u2461 \U0001F600 a  b ");
  if (!ids) return;
  for (const int32_t id : *ids) SYRINX_CHECK(id >= 0 && static_cast<size_t>(id) < tokenizer->size());
  SYRINX_CHECK(!syrinx::text::find_invalid(tokenizer->decode(*ids)));
}

// As phrases to favour become labels: each a label of the transcript, and together the phrase.
void favour(const Vocabulary& vocabulary, const std::string& phrase, bool is_plain) {
  const auto labels = syrinx::transducer::phrase_labels(vocabulary, phrase);
  if (!labels) return;
  SYRINX_CHECK(!labels->empty());
  for (const int32_t label : *labels) {
    SYRINX_CHECK(label >= 0 && static_cast<size_t>(label) < vocabulary.size());
    SYRINX_CHECK(!vocabulary.is_special(label));
  }
  SYRINX_CHECK(!is_plain || vocabulary.text(*labels) == phrase, "'{}'", vocabulary.text(*labels));
}

void use_vocabulary(const Vocabulary& vocabulary) {
  namespace transducer = syrinx::transducer;
  const auto is_text = [](const std::string& text) { return !syrinx::text::find_invalid(text); };
  std::vector<transducer::Emission> emissions;
  std::vector<int32_t> ids = {-1, static_cast<int32_t>(vocabulary.size())};  // two that are none
  for (int32_t id = 0; static_cast<size_t>(id) < vocabulary.size(); ++id) {
    ids.push_back(id);
    emissions.push_back({.frame = id, .label = id, .duration = 1});
    SYRINX_CHECK(is_text(vocabulary.text({&id, 1})));
  }
  const std::string all = vocabulary.text(ids);
  SYRINX_CHECK(is_text(all));
  const auto tokens = transducer::token_times(vocabulary, transducer::HeadKind::kTdt, emissions);
  SYRINX_CHECK(is_text(transducer::join_words(transducer::word_times(vocabulary, tokens))));
  for (const std::string& text : transducer::token_texts(vocabulary, tokens)) SYRINX_CHECK(is_text(text));
  for (const char* const phrase : {"a", "daaeaa gaa", "the end"}) favour(vocabulary, phrase, true);
  favour(vocabulary, all, false);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span<const uint8_t>(data, size));
  use_tokenizer(bytes);
  auto pieces = syrinx::text::read_sentencepiece_pieces(bytes, "fuzz");
  if (pieces) use_vocabulary(Vocabulary::from_pieces(std::move(*pieces)));
  return 0;
}
