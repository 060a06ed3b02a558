// When text that arrives is spoken: the part of a Speaker that all families share.
//
// A sentence is complete once what follows shows it.  What could still be joined with the next one is spoken at once
// when text has been quiet for 50 ms: long enough for a pipe from a file to deliver, short enough not to be heard. What
// only looks like the end of a sentence counts as one after 0.3 s: longer than the steps in which a language model or a
// slow disk delivers, shorter than somebody who listens would wait (text::SentenceStream::next_at_pause).
//
// A speaker whose model takes text while it makes sound may begin to say a sentence before it has ended (hear_begun()),
// and takes in what follows amid say() (take_more()).  After 0.3 s it is asked again, so that whole sentences are not
// withheld for the rest of one that has begun.
//
// Marks of the text (marked_text.h): what stands before one is spoken to its end, as if the text ended there; then it
// is heeded, and the text goes on.  A mark that makes no sense ends the speech there.  Pauses are bounded all together
// (kMaxSilenceS, then kLimitExceeded), and say nothing: a text of pauses alone ends as one without a word.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "engine/speech/marked_text.h"
#include "engine/speech/speech_session.h"
#include "text/speech/split.h"

namespace syrinx {

class SentenceSpeaker : public Speaker {
 public:
  static constexpr size_t kMaxSilenceS = 3600;  // of all pauses of a text

  // Uses `plain` and `silence_for_nothing` of the options.
  explicit SentenceSpeaker(const SpeakOptions& options)
      : silence_for_nothing_(options.silence_for_nothing), marked_(options.plain) {}
  Status speak(SpeechStream& stream) final;
  // kLimitExceeded, with the line of the last pause, where all of them together last longer than kMaxSilenceS.
  static Status check_silence(double silence_s, const MarkedText::Mark& last);

 protected:
  enum class Moment { kFlow, kPause, kEnd };  // of the text: more may follow, follows later, never follows
  struct Sentence {
    std::string text;
    size_t offset = 0;  // of its first byte, in the whole text
  };

  // How text becomes sentences; by default by the rules of written text.  begin_text() at the start, and after each
  // mark.
  virtual void begin_text(size_t offset);
  virtual Status feed(std::string_view text);
  virtual Status finish_text();
  virtual Result<std::optional<Sentence>> next_sentence(Moment moment);

  // Takes a sentence in.
  virtual Status read(const Sentence& sentence, SpeechStream& stream) = 0;
  // Says the next piece of what has been taken in, if one is certain, or with `now` what there is.  False: nothing.
  virtual Result<bool> say(bool now, SpeechStream& stream) = 0;
  // A sentence that has not ended begins with `text`, at `offset` as Sentence has it; called when no whole one is
  // there, again and again with more of it.  read() gets all of it.  True: say() is asked behind it.
  virtual Result<bool> hear_begun(std::string_view /*text*/, size_t /*offset*/, SpeechStream& /*stream*/) {
    return false;
  }
  // Amid say(), for speakers that hear what has begun: reads one more sentence that has come, else takes text in and
  // hears what it begins.  Waits for text at most `limit`; without one until it comes.  kPause, once for each rest: for
  // 0.3 s no text has come, and what looks like the end of a sentence has been read; a limit of 0 finds no rest.
  // kEnd: all is read before the end or a mark.
  Result<Moment> take_more(std::optional<std::chrono::milliseconds> limit, SpeechStream& stream);
  // After the last piece: an error if nothing has been said.
  virtual Status end() = 0;
  // Another voice from here on, by its name; empty: the first.  Nothing waits to be said.
  virtual Status use_voice(const std::string& name) = 0;
  // So many samples of silence have been handed over.
  virtual void be_silent(size_t samples) = 0;

 private:
  using Arrival = SpeechStream::Arrival;
  Result<bool> absorb(Moment moment, SpeechStream& stream);
  Result<bool> note_begun(SpeechStream& stream);
  Result<Arrival> take_text(std::optional<std::chrono::milliseconds> limit, SpeechStream& stream);
  Result<Arrival> wait_for_text(SpeechStream& stream);
  std::chrono::milliseconds left_of_rest(const SpeechStream& stream) const;
  Status feed_until_mark();
  Status say_rest(SpeechStream& stream);
  Status heed_mark(SpeechStream& stream);
  Status pause(const MarkedText::Mark& mark, SpeechStream& stream);
  Status hand_over_silence(size_t samples, SpeechStream& stream);
  size_t samples_a_second() const { return static_cast<size_t>(rate_hz()); }

  const bool silence_for_nothing_;
  MarkedText marked_;
  text::SentenceStream sentences_;
  std::string arrived_;
  bool ended_ = false;   // no more text arrives
  int64_t came_ns_ = 0;  // the last text
  bool rests_ = false;   // take_more() has told that none has come since
  size_t silence_ = 0;   // samples, of all pauses so far
};

}  // namespace syrinx
