// From tokens and their times to words with theirs (openai/whisper, tokenizer.py: split_to_word_tokens, timing.py:
// merge_punctuations, add_word_timestamps).  Pure functions; thread-safe.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/whisper/segments.h"
#include "text/tokens/byte_bpe.h"

namespace syrinx::whisper {

// Words of text tokens, without times: at spaces and signs, or at every character in languages that write no spaces
// (zh, ja, th, lo, my, yue).
std::vector<Word> split_words(const text::ByteBpe& bpe, std::span<const int32_t> ids, std::string_view language);

// Joins opening signs to the word behind them and closing signs to the word before; the joined ones stay, empty.
void merge_punctuation(std::vector<Word>& words);

// Puts the timed words of a window (from its beginning, `offset_s`) into its segments, in order: long words at the ends
// of sentences and after pauses are shortened to about twice the median, and a segment's times become those of its
// words unless these stray far from them.  A token's times lie within its word's: a sign that was joined to a word lies
// at its end or beginning.  `last_speech_s` is where speech ended before.
void place_words(std::vector<Word> words, const Tokens& tokens, double offset_s, std::span<Segment> segments,
                 double last_speech_s);

}  // namespace syrinx::whisper
