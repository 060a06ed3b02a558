#include "engine/recognition/endpointing.h"

#include <algorithm>

namespace syrinx {
namespace {

// Whether so much time has passed; sums of frames in double may miss by a little.
bool passed(double elapsed_s, double limit_s) {
  constexpr double kRounding = 1e-6;
  return elapsed_s >= limit_s - kRounding;
}

}  // namespace

Status validate(const EndpointOptions& options) {
  for (const double s : {options.silence_s, options.silence_after_speech_s, options.max_utterance_s}) {
    if (!(s > 0))
      return fail(Code::kInvalidArgument,
                  "an endpoint after {} s makes no sense; take more than 0, or infinity for never", s);
  }
  if (!(options.settle_s >= 0 && options.settle_s < EndpointOptions::kNever))
    return fail(Code::kInvalidArgument, "an end of utterance cannot settle for {} s; take 0 or more", options.settle_s);
  return {};
}

Result<EndpointOptions> EndpointChanges::apply(EndpointOptions options) const {
  if (off) {
    if (silence_s || silence_after_speech_s)
      return fail(Code::kInvalidArgument,
                  "endpointing is switched off, so no silence ends an utterance; leave out the one or the other");
    options.silence_s = options.silence_after_speech_s = EndpointOptions::kNever;
    options.max_utterance_s = kLongestS;
    options.heed_marks = false;
  }
  options.silence_after_speech_s = silence_after_speech_s.value_or(options.silence_after_speech_s);
  if (silence_after_speech_s) options.silence_s = std::max(options.silence_s, options.silence_after_speech_s);
  options.silence_s = silence_s.value_or(options.silence_s);
  options.max_utterance_s = max_utterance_s.value_or(options.max_utterance_s);
  SYRINX_TRY_VOID(validate(options));
  if (options.max_utterance_s > kLongestS)
    return fail(Code::kInvalidArgument,
                "utterances of up to {} s; take at most {}, as each partial result spells all of it",
                options.max_utterance_s, kLongestS);
  return options;
}

const char* reason_name(EndpointReason reason) {
  switch (reason) {
    case EndpointReason::kSilence:
    case EndpointReason::kSilenceAfterSpeech: return "silence";
    case EndpointReason::kLength: return "length";
    case EndpointReason::kEndOfUtterance: return "eou";
    case EndpointReason::kEndOfBackchannel: return "eob";
    case EndpointReason::kCommit: return "commit";
    case EndpointReason::kEnd: return "end";
  }
  return "";
}

void Endpointer::token(double end_s) {
  token_end_s_ = std::max(token_end_s_, end_s);
  voice(end_s);
}

void Endpointer::voice(double end_s) { speech_end_s_ = std::max(speech_end_s_, end_s); }

void Endpointer::end_of_utterance(double at_s, bool backchannel) {
  if (!options_.heed_marks || at_s < start_s_) return;
  marked_s_ = at_s;
  backchannel_ = backchannel;
}

double Endpointer::trailing_silence_s(double now_s) const { return std::max(0.0, now_s - speech_end_s_); }

std::optional<EndpointReason> Endpointer::check(double now_s) const {
  if (marked_s_ && passed(now_s - std::max(*marked_s_, token_end_s_), options_.settle_s))
    return backchannel_ ? EndpointReason::kEndOfBackchannel : EndpointReason::kEndOfUtterance;
  const double silence = trailing_silence_s(now_s);
  if (has_speech() && passed(silence, options_.silence_after_speech_s)) return EndpointReason::kSilenceAfterSpeech;
  if (passed(silence, options_.silence_s)) return EndpointReason::kSilence;
  if (passed(now_s - start_s_, options_.max_utterance_s)) return EndpointReason::kLength;
  return std::nullopt;
}

void Endpointer::restart(double at_s) {
  start_s_ = speech_end_s_ = token_end_s_ = at_s;
  marked_s_.reset();
  backchannel_ = false;
}

}  // namespace syrinx
