// Stable text from a model that hears the same sound again and again (spec whisper.md, section 7): what two hypotheses
// in a row begin with is committed and does not change any more; the rest is shown as unstable.
//
// The caller keeps a buffer of sound, decodes the whole of it every 0.5 to 1 s, and gives the words here, with times in
// seconds of the stream.  Words are compared without case and punctuation, and committed as the newer hypothesis writes
// them, but that the first one keeps its capital if either has it: with little sound behind it a model takes the
// beginning for the middle of a sentence now and then, hardly ever the other way round.  What was committed before
// stays at the head of a hypothesis as long as its sound stays in the buffer; it is passed over there: word by word
// where the model repeats itself, by its times where it does not.
//
// Pure; one thread.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/recognition/transcript.h"

namespace syrinx {

struct AgreementOptions {
  double trim_after_s = 15;        // a longer buffer is cut at the end of a committed segment
  double max_buffer_s = 28;        // a longer one at the last committed word: a window holds 30 s
  size_t prompt_characters = 200;  // of committed text that has left the buffer
};

class LocalAgreement {
 public:
  explicit LocalAgreement(const AgreementOptions& options = {}) : options_(options) {}

  // A new hypothesis for the whole buffer: words in order of time, and where its segments end.  Returns the words that
  // it commits.
  std::vector<TranscriptWord> push(std::span<const TranscriptWord> words, std::span<const double> segment_ends_s);
  // The end of speech: commits what is left of the last hypothesis.
  std::vector<TranscriptWord> finish();

  // The last hypothesis behind what is committed.
  const std::vector<TranscriptWord>& unstable() const { return unstable_; }

  // Where the sound of a buffer [begin_s, end_s] may now be cut off at its front; nothing when it should stay.
  std::optional<double> trim_point(double begin_s, double end_s) const;
  // The buffer begins here from now on.  Returns words that are committed because their sound is gone.
  std::vector<TranscriptWord> trim(double begin_s);

  // The committed text before the buffer, in whole words, at most prompt_characters of it.
  const std::string& prompt() const { return prompt_; }
  double committed_end_s() const { return committed_end_s_; }

 private:
  size_t count_committed(std::span<const TranscriptWord> words) const;
  std::vector<TranscriptWord> commit(size_t count);
  void extend_prompt(const TranscriptWord& word);

  AgreementOptions options_;
  std::vector<TranscriptWord> committed_;  // those whose sound is still in the buffer
  std::vector<TranscriptWord> unstable_;
  bool begun_ = false;                  // something has been committed
  std::vector<double> segment_ends_s_;  // of the last hypothesis
  double committed_end_s_ = 0;
  std::string prompt_;
  std::deque<size_t> prompt_words_;  // bytes of each, with the blank before it
};

// Whether two words are the same but for case and punctuation.
bool same_word(std::string_view a, std::string_view b);
// Makes the first letter of a word, where it is the same in the other but for case, a capital if it is one there.
void keep_capital(std::string& word, std::string_view other);

}  // namespace syrinx
