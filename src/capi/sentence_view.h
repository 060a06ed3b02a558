// A sentence as it is read out, in C's terms.
#pragma once

#include <utility>
#include <vector>

#include "engine/speech/text_reader.h"
#include "syrinx/syrinx.h"

namespace syrinx {

// The result of view() is valid until the next call of show().
class SentenceView {
 public:
  void show(SentenceReading sentence) {
    sentence_ = std::move(sentence);
    words_ = sentence_.read_out();
    read_words_.clear();
    for (const WordReading& word : sentence_.words)
      read_words_.push_back({word.word.c_str(), word.rule.data(), word.sound.data(), word.phonemes.c_str(),
                             word.source_begin, word.source_end});
    view_ = {sentence_.text.c_str(),     sentence_.source_begin, sentence_.source_end, words_.c_str(),
             sentence_.phonemes.c_str(), read_words_.data(),     read_words_.size(),   sentence_.dropped_characters};
  }
  const syrinx_sentence& view() const { return view_; }

 private:
  SentenceReading sentence_;
  std::string words_;
  std::vector<syrinx_read_word> read_words_;
  syrinx_sentence view_{};
};

}  // namespace syrinx
