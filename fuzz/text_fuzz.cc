// Any bytes as text: splitting, whole and in pieces, normalisation, phonemes by a tiny lexicon, pieces for the model.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/check.h"
#include "models/g2p/english.h"
#include "models/kokoro/pieces.h"
#include "text/speech/split.h"

namespace {

using syrinx::g2p::EnglishG2p;

std::shared_ptr<const EnglishG2p> tiny() {
  char path[] = "/tmp/text_fuzz_XXXXXX";
  const int fd = mkstemp(path);
  SYRINX_CHECK(fd >= 0);
  std::FILE* file = fdopen(fd, "w");
  std::fputs(
      R"({"A": "ˈA", "B": "bˈi", "cat": "kˈæt", "to": "tˈu", "use": {"DEFAULT": "jˈuz", "NOUN": "jˈus", "None": "jˈʌ"}})",
      file);
  std::fclose(file);
  syrinx::g2p::G2pFiles files;
  files.gold = path;
  auto loaded = EnglishG2p::load(files);
  std::remove(path);
  SYRINX_CHECK(loaded.has_value());
  return *loaded;
}

// Asked at every pause, a stream still gives what it was given, in order.
void check_pauses(std::string_view text) {
  syrinx::text::SentenceStream stream;
  size_t end = 0;
  const auto check = [&](const std::string& sentence) {
    SYRINX_CHECK(stream.sentence_offset() >= end && !sentence.empty());
    SYRINX_CHECK(text.substr(stream.sentence_offset(), sentence.size()) == sentence);
    end = stream.sentence_offset() + sentence.size();
  };
  for (size_t i = 0; i < text.size(); i += 7) {
    SYRINX_CHECK(stream.feed(text.substr(i, 7)));
    while (const auto sentence = stream.next()) check(*sentence);
    if (const auto sentence = stream.next_at_pause()) check(*sentence);
  }
  SYRINX_CHECK(stream.finish());
  while (const auto sentence = stream.next()) check(*sentence);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::shared_ptr<const EnglishG2p> g2p = tiny();
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::vector<syrinx::g2p::ReadWord> words;
  const auto said = g2p->phonemize(text, 0, &words);
  syrinx::text::SentenceStream stream;
  bool good = true;
  size_t streamed = 0;
  for (size_t i = 0; i < size && good; i += 7) {
    good = stream.feed(text.substr(i, 7)).has_value();
    while (good && stream.next()) ++streamed;
  }
  good = good && stream.finish().has_value();
  while (good && stream.next()) ++streamed;
  if (!said) return 0;
  SYRINX_CHECK(good);
  check_pauses(text);
  const auto sentences = syrinx::text::split_sentences(text);
  SYRINX_CHECK(sentences.size() == streamed, "whole {} streamed {}", sentences.size(), streamed);
  for (const auto& word : said->words) {
    SYRINX_CHECK(word.source.begin < word.source.end && word.source.end <= size);
    SYRINX_CHECK(word.phonemes.end <= said->phonemes.size());
  }
  for (const auto& word : words) {
    SYRINX_CHECK(!word.word.empty() && !word.rule.empty() && !word.sound.empty());
    SYRINX_CHECK(word.phonemes.begin < word.phonemes.end && word.source.end <= size);
  }
  for (const auto& piece : syrinx::kokoro::plan_pieces({*said, *said})) SYRINX_CHECK(piece.id_count() <= 510);
  return 0;
}
