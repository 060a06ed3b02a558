// When an utterance of a stream is over (spec transducer-asr.md, section 7.1): three rules about silence and length, a
// model's own end-of-utterance tokens, and the client's word.  No clock: all times are seconds of the stream's sound,
// so a recording read at full speed ends where the same sound from a microphone ends.
//
//   1  `silence_s` of silence, behind speech too  2.4 s
//   2  `silence_after_speech_s` behind speech     1.2 s after the last token, or the last voice
//   3  `max_utterance_s` since the last endpoint  20 s
//
// Silence is what lies between the end of the last token, or of the last voice where voice activity is known, and the
// end of the decoded sound.  The end of a token is where its duration ends (TDT jumps over frames, so counting blank
// ones would be wrong).  A value without memory of its own; one thread.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>

#include "base/result.h"

namespace syrinx {

struct EndpointOptions {
  static constexpr double kNever = std::numeric_limits<double>::infinity();  // switches a rule off

  double silence_s = 2.4;
  double silence_after_speech_s = 1.2;
  double max_utterance_s = 20;
  // An end-of-utterance token counts this long after the last other token: punctuation that comes late belongs to the
  // utterance before (two frames of 80 ms).
  double settle_s = 0.16;
  bool heed_marks = true;  // end-of-utterance tokens end one
};

// kInvalidArgument for times that are not numbers or below 0, or silences and lengths of 0.
Status validate(const EndpointOptions& options);

// A caller's changes; the other rules stay.  Where only `silence_after_speech_s` is named, `silence_s` grows to it, so
// that the silence behind speech can be as long as wanted.
struct EndpointChanges {
  static constexpr double kLongestS = 3600;  // each partial result spells all of an utterance

  std::optional<double> silence_s = {}, silence_after_speech_s = {}, max_utterance_s = {};
  // An utterance goes on to the end of the stream, or the client's word, or max_utterance_s (kLongestS); nothing may be
  // said about silences then.
  bool off = false;

  Result<EndpointOptions> apply(
      EndpointOptions options) const;  // the errors of validate(), and for more than kLongestS
};

enum class EndpointReason : uint8_t {
  kSilence,
  kSilenceAfterSpeech,
  kLength,
  kEndOfUtterance,
  kEndOfBackchannel,
  kCommit,
  kEnd  // of the stream
};

// "silence" (both), "length", "eou", "eob", "commit", "end".
const char* reason_name(EndpointReason reason);

class Endpointer {
 public:
  explicit Endpointer(const EndpointOptions& options = {}) : options_(options) {}

  // Findings in the audio, in any order; times before the last endpoint change nothing.
  void token(double end_s);                                      // a piece of text
  void voice(double end_s);                                      // voice activity: speech up to here
  void end_of_utterance(double at_s, bool backchannel = false);  // a special token

  // The sound is decoded up to `now_s`: whether the utterance is over, and why.  Asked again, it says the same until
  // restart().
  std::optional<EndpointReason> check(double now_s) const;
  // The next utterance begins here.
  void restart(double at_s);

  bool has_speech() const { return speech_end_s_ > start_s_; }
  double start_s() const { return start_s_; }
  double trailing_silence_s(double now_s) const;  // since speech, or since the beginning where there was none

 private:
  EndpointOptions options_;
  double start_s_ = 0;       // of the utterance
  double speech_end_s_ = 0;  // of the last token or voice; start_s_ where there was none
  double token_end_s_ = 0;
  std::optional<double> marked_s_;  // an end-of-utterance token
  bool backchannel_ = false;
};

}  // namespace syrinx
