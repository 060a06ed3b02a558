#include "engine/sentence_speaker.h"

#include <optional>
#include <utility>

namespace syrinx {
namespace {

constexpr auto kQuiet = std::chrono::milliseconds(50);
constexpr auto kPause = std::chrono::milliseconds(300);

}  // namespace

Status SentenceSpeaker::speak(SpeechStream& stream) {
  for (bool ended = false; !ended;) {
    SYRINX_TRY(const bool said, say(false, stream));
    if (said) continue;
    SYRINX_TRY(const bool more, absorb(Moment::kFlow, stream));
    if (more) continue;
    SYRINX_TRY(const Arrival arrival, wait_for_text(stream));
    ended = arrival == Arrival::kEnd;
  }
  for (;;) {
    SYRINX_TRY(const bool more, absorb(Moment::kEnd, stream));
    SYRINX_TRY(const bool said, say(!more, stream));
    if (!said && !more) break;
  }
  return end();
}

// Until text has come, or something has been said because none comes.
Result<SpeechStream::Arrival> SentenceSpeaker::wait_for_text(SpeechStream& stream) {
  SYRINX_TRY(Arrival arrival, take_text(kQuiet, stream));
  if (arrival != Arrival::kQuiet) return arrival;
  SYRINX_TRY(bool said, say(true, stream));
  if (said) return arrival;
  SYRINX_TRY(arrival, take_text(kPause - kQuiet, stream));
  if (arrival != Arrival::kQuiet) return arrival;
  SYRINX_TRY(const bool more, absorb(Moment::kPause, stream));
  if (more) {
    SYRINX_TRY(said, say(true, stream));
  }
  if (said) return arrival;
  return take_text(std::nullopt, stream);
}

Result<SpeechStream::Arrival> SentenceSpeaker::take_text(std::optional<std::chrono::milliseconds> limit,
                                                         SpeechStream& stream) {
  arrived_.clear();
  SYRINX_TRY(const Arrival arrival, stream.take_text(limit, arrived_));
  if (!arrived_.empty()) SYRINX_TRY_VOID(feed(arrived_));
  if (arrival == Arrival::kEnd) SYRINX_TRY_VOID(finish_text());
  return arrival;
}

// Takes in one more sentence, if one is complete.
Result<bool> SentenceSpeaker::absorb(Moment moment, SpeechStream& stream) {
  SYRINX_TRY(const std::optional<Sentence> sentence, next_sentence(moment));
  if (!sentence) return false;
  SYRINX_TRY_VOID(read(*sentence, stream));
  return true;
}

Status SentenceSpeaker::feed(std::string_view text) { return sentences_.feed(text); }

Status SentenceSpeaker::finish_text() { return sentences_.finish(); }

Result<std::optional<SentenceSpeaker::Sentence>> SentenceSpeaker::next_sentence(Moment moment) {
  std::optional<std::string> text = moment == Moment::kPause ? sentences_.next_at_pause() : sentences_.next();
  if (!text) return std::optional<Sentence>();
  return Sentence{.text = std::move(*text), .offset = sentences_.sentence_offset()};
}

}  // namespace syrinx
