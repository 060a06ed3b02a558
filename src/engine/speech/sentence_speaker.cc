#include "engine/speech/sentence_speaker.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

namespace syrinx {
namespace {

constexpr auto kQuiet = std::chrono::milliseconds(50);
constexpr auto kPause = std::chrono::milliseconds(300);
constexpr size_t kSilenceAtOnceS = 1;

}  // namespace

Status SentenceSpeaker::speak(SpeechStream& stream) {
  for (;;) {
    SYRINX_TRY(bool said, say(false, stream));
    if (said) continue;
    SYRINX_TRY(const bool more, absorb(Moment::kFlow, stream));
    if (more) continue;
    SYRINX_TRY(const bool heard, note_begun(stream));
    if (heard) {
      SYRINX_TRY(said, say(false, stream));
      if (said) continue;
    }
    if (marked_.at_mark()) {
      SYRINX_TRY_VOID(heed_mark(stream));
      continue;
    }
    if (ended_) break;
    SYRINX_TRY_VOID(wait_for_text(stream));
  }
  SYRINX_TRY_VOID(say_rest(stream));
  Status said = end();
  if (said || !silence_for_nothing_) return said;
  return hand_over_silence(kSilenceForNothingMs * samples_a_second() / 1000, stream);
}

// As if the text ended here.
Status SentenceSpeaker::say_rest(SpeechStream& stream) {
  SYRINX_TRY_VOID(finish_text());
  for (;;) {
    SYRINX_TRY(const bool more, absorb(Moment::kEnd, stream));
    SYRINX_TRY(const bool said, say(!more, stream));
    if (!said && !more) return {};
  }
}

Status SentenceSpeaker::heed_mark(SpeechStream& stream) {
  SYRINX_TRY_VOID(say_rest(stream));
  SYRINX_TRY(const MarkedText::Mark mark, marked_.take_mark());
  if (mark.kind == MarkedText::Mark::Kind::kVoice) {
    const Status used = use_voice(mark.voice);
    if (!used) return fail(used.error().code, "line {} of the text: {}", mark.line, used.error().message);
  } else {
    SYRINX_TRY_VOID(pause(mark, stream));
  }
  begin_text(marked_.offset());
  return feed_until_mark();
}

Status SentenceSpeaker::pause(const MarkedText::Mark& mark, SpeechStream& stream) {
  const auto samples = static_cast<size_t>(std::llround(mark.pause_s * rate_hz()));
  silence_ += samples;
  SYRINX_TRY_VOID(check_silence(static_cast<double>(silence_) / rate_hz(), mark));
  return hand_over_silence(samples, stream);
}

Status SentenceSpeaker::check_silence(double silence_s, const MarkedText::Mark& last) {
  if (silence_s <= static_cast<double>(kMaxSilenceS)) return {};
  return fail(Code::kLimitExceeded, "line {} of the text: its pauses add up to more than {} s; leave some out",
              last.line, kMaxSilenceS);
}

Status SentenceSpeaker::hand_over_silence(size_t samples, SpeechStream& stream) {
  while (samples > 0) {
    const size_t count = std::min(samples, kSilenceAtOnceS * samples_a_second());
    SpeechChunk silence = stream.spare();
    silence.samples.assign(count, 0.0f);
    SYRINX_TRY_VOID(stream.hand_over(std::move(silence)));
    be_silent(count);
    samples -= count;
  }
  return {};
}

Status SentenceSpeaker::feed_until_mark() {
  arrived_.clear();
  marked_.take_text(arrived_);
  return arrived_.empty() ? Status() : feed(arrived_);
}

// Until text has come, or something has been said because none comes.
Result<SpeechStream::Arrival> SentenceSpeaker::wait_for_text(SpeechStream& stream) {
  SYRINX_TRY(Arrival arrival, take_text(kQuiet, stream));
  if (arrival != Arrival::kQuiet) return arrival;
  SYRINX_TRY(bool said, say(true, stream));
  if (said) return arrival;
  SYRINX_TRY(arrival, take_text(kPause - kQuiet, stream));
  if (arrival != Arrival::kQuiet) return arrival;
  SYRINX_TRY_VOID(absorb(Moment::kPause, stream));
  SYRINX_TRY(said, say(true, stream));
  if (said) return arrival;
  return take_text(std::nullopt, stream);
}

Result<SpeechStream::Arrival> SentenceSpeaker::take_text(std::optional<std::chrono::milliseconds> limit,
                                                         SpeechStream& stream) {
  arrived_.clear();
  SYRINX_TRY(const Arrival arrival, stream.take_text(limit, arrived_));
  if (arrival != Arrival::kQuiet) {
    came_ns_ = stream.clock().now_ns();
    rests_ = false;
  }
  marked_.feed(arrived_);
  if (arrival == Arrival::kEnd) {
    marked_.finish();
    ended_ = true;
  }
  SYRINX_TRY_VOID(feed_until_mark());
  return arrival;
}

Result<SentenceSpeaker::Moment> SentenceSpeaker::take_more(std::optional<std::chrono::milliseconds> limit,
                                                           SpeechStream& stream) {
  SYRINX_TRY(bool more, absorb(Moment::kFlow, stream));
  if (more) return Moment::kFlow;
  if (ended_ || marked_.at_mark()) {
    SYRINX_TRY_VOID(finish_text());
    SYRINX_TRY(more, absorb(Moment::kEnd, stream));
    return more ? Moment::kFlow : Moment::kEnd;
  }
  const std::chrono::milliseconds left = left_of_rest(stream);
  const bool may_rest = !rests_ && limit != std::chrono::milliseconds(0) && left <= limit.value_or(left);
  SYRINX_TRY(const Arrival arrival, take_text(may_rest ? left : limit, stream));
  if (arrival == Arrival::kQuiet) {
    rests_ = rests_ || may_rest;
    if (!may_rest) return Moment::kFlow;
    SYRINX_TRY_VOID(absorb(Moment::kPause, stream));
    return Moment::kPause;
  }
  SYRINX_TRY(more, absorb(Moment::kFlow, stream));
  if (!more) {
    SYRINX_TRY_VOID(note_begun(stream));
  }
  return Moment::kFlow;
}

// Until no text has come for kPause.
std::chrono::milliseconds SentenceSpeaker::left_of_rest(const SpeechStream& stream) const {
  const std::chrono::nanoseconds since(stream.clock().now_ns() - came_ns_);
  return std::chrono::ceil<std::chrono::milliseconds>(std::max(kPause - since, std::chrono::nanoseconds(0)));
}

Result<bool> SentenceSpeaker::note_begun(SpeechStream& stream) {
  const std::string_view begun = sentences_.begun();
  if (begun.empty()) return false;
  return hear_begun(begun, sentences_.begun_offset(), stream);
}

// Takes in one more sentence, if one is complete.
Result<bool> SentenceSpeaker::absorb(Moment moment, SpeechStream& stream) {
  SYRINX_TRY(const std::optional<Sentence> sentence, next_sentence(moment));
  if (!sentence) return false;
  SYRINX_TRY_VOID(read(*sentence, stream));
  return true;
}

void SentenceSpeaker::begin_text(size_t offset) { sentences_ = text::SentenceStream(offset); }

Status SentenceSpeaker::feed(std::string_view text) { return sentences_.feed(text); }

Status SentenceSpeaker::finish_text() { return sentences_.finish(); }

Result<std::optional<SentenceSpeaker::Sentence>> SentenceSpeaker::next_sentence(Moment moment) {
  std::optional<std::string> text = moment == Moment::kPause ? sentences_.next_at_pause() : sentences_.next();
  if (!text) return std::optional<Sentence>();
  return Sentence{.text = std::move(*text), .offset = sentences_.sentence_offset()};
}

}  // namespace syrinx
