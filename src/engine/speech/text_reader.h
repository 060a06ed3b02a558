// How a text is read out, without a voice: its sentences, their words and phonemes, and the rules that decided them.
// `syrinx speak --dry-run` and syrinx_read() tell it.  Sentences and marks (marked_text.h) are those of speech for a
// text that is given at once.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "engine/speech/marked_text.h"
#include "engine/speech/speech_session.h"
#include "text/speech/split.h"

namespace syrinx {

struct WordReading {
  std::string word;  // as read out, in lower case; spelled letters as single capitals: "U S"
  // The rules that decided the word and its sound: names of docs/cli.md, literals that end with a zero byte.
  std::string_view rule, sound;
  std::string phonemes;
  size_t source_begin = 0, source_end = 0;  // bytes of the text; words that were written as one have the same
};

struct SentenceReading {
  std::string text;                         // the source
  size_t source_begin = 0, source_end = 0;  // bytes of the text
  std::string phonemes;                     // with the punctuation
  std::vector<WordReading> words;           // without it
  size_t dropped_characters = 0;            // that cannot be spoken

  std::string read_out() const;  // the words with a space between two
};

// Reads the sentences of one text; a front end makes it.
class SentenceReader {
 public:
  virtual ~SentenceReader() = default;
  // The voice of the next sentences; empty: the first voice.
  virtual Status use_voice(const std::string& name) = 0;
  virtual Result<SentenceReading> read(std::string_view sentence, size_t offset) = 0;
};

// One text.  One thread.
class TextReading {
 public:
  // `plain`: as in SpeakOptions.
  TextReading(std::unique_ptr<SentenceReader> reader, bool plain) : reader_(std::move(reader)), marked_(plain) {}

  // Bytes of UTF-8, possibly ending inside a character.  Errors of SentenceStream::feed().
  Status feed(std::string_view bytes);
  // The text has ended: next() gives the rest.
  Status finish();
  // The next sentence that is certain to be complete.  Nothing: more text is needed or, after finish(), all is read.
  // The errors are those of speech: of the front end, of a mark, and kInvalidArgument at the end of a text without a
  // word.
  Result<std::optional<SentenceReading>> next();

 private:
  Status feed_until_mark();
  Status heed_mark();

  const std::unique_ptr<SentenceReader> reader_;
  MarkedText marked_;
  text::SentenceStream sentences_;
  double paused_s_ = 0;     // all pauses so far
  bool ends_here_ = false;  // sentences_ is finished: a mark or the end of the text follows
  bool finished_ = false;
  bool speaks_ = false;  // a word has been read
};

// A front end.  Thread-safe.
class TextReader {
 public:
  virtual ~TextReader() = default;
  // The voice chooses the pronunciation; seed and pace are not heeded.  kInvalidArgument where the text is to be
  // phonemes, kUnsupported for a voice of a language without a front end.
  virtual Result<std::unique_ptr<TextReading>> start(const SpeakOptions& options) = 0;
};

// kUnsupported, of a model that takes text as it is written.
tl::unexpected<Error> no_text_reader(std::string_view model);

}  // namespace syrinx
