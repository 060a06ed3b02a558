// The tokens that are no text: what they are for and where they lie (spec whisper.md, section 4; openai/whisper,
// tokenizer.py).  Ids below end_of_text are text; from first_time on they are times, 0.02 s apart.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/tokens/byte_bpe.h"

namespace syrinx::whisper {

inline constexpr int32_t kTimeTokens = 1501;  // 0.00 to 30.00 s
inline constexpr double kSecondsPerTime = 0.02;

struct Language {
  std::string code;  // "en"
  int32_t token = 0;
};

struct Tokens {
  int32_t end_of_text = 0;
  int32_t start_of_transcript = 0;
  int32_t translate = 0;
  int32_t transcribe = 0;
  int32_t start_of_lm = 0;
  int32_t start_of_previous = 0;
  int32_t no_speech = 0;
  int32_t no_timestamps = 0;
  int32_t first_time = 0;
  bool multilingual = true;         // else English alone, and prompts name neither language nor task
  std::vector<Language> languages;  // in the order of their ids

  bool is_text(int32_t id) const { return id < end_of_text; }
  bool is_time(int32_t id) const { return id >= first_time; }
  // The number of the time, in steps of 0.02 s; is_time(id).
  int32_t time(int32_t id) const { return id - first_time; }
  const Language* find_language(std::string_view code) const;
  // Tokens before the first sampled one: start of transcript, language and task, and the mark for no times.  `language`
  // must be one of ours; it does not matter to English models.
  std::vector<int32_t> prompt(const Language* language, bool translated, bool timestamps) const;
};

// Found by name.  English-only models have GPT-2's own vocabulary, whose end of text is 50256.  `vocabulary` is the
// number of rows of the model's table; `name` stands in messages.  kDataLoss where a token is missing or out of
// order, where any, of text too, is beyond the table, and where a
// table of a published size is another one's: ids behind the languages would be one off.
Result<Tokens> find_tokens(const text::ByteBpe& bpe, size_t vocabulary, const std::string& name);

// Tokens that are never sampled, in rising order: marks that are not spoken, such as brackets and notes
// (Tokenizer.non_speech_tokens), and the specials that only prompts hold.
std::vector<int32_t> suppressed_tokens(const text::ByteBpe& bpe, const Tokens& tokens);

}  // namespace syrinx::whisper
