#include "engine/speech/text_reader.h"

#include <utility>

#include "engine/speech/sentence_speaker.h"
#include "engine/speech/speech_family.h"

namespace syrinx {

std::string SentenceReading::read_out() const {
  std::string all;
  for (const WordReading& word : words) {
    if (!all.empty()) all += ' ';
    all += word.word;
  }
  return all;
}

Status TextReading::feed(std::string_view bytes) {
  marked_.feed(bytes);
  return feed_until_mark();
}

Status TextReading::finish() {
  finished_ = true;
  marked_.finish();
  return feed_until_mark();
}

Status TextReading::feed_until_mark() {
  if (ends_here_) return {};
  std::string text;
  marked_.take_text(text);
  if (!text.empty()) SYRINX_TRY_VOID(sentences_.feed(text));
  if (!marked_.at_mark() && !finished_) return {};
  ends_here_ = true;
  return sentences_.finish();
}

// The text before the mark has been read.
Status TextReading::heed_mark() {
  SYRINX_TRY(const MarkedText::Mark mark, marked_.take_mark());
  if (mark.kind == MarkedText::Mark::Kind::kVoice) {
    const Status used = reader_->use_voice(mark.voice);
    if (!used) return fail(used.error().code, "line {} of the text: {}", mark.line, used.error().message);
  }
  paused_s_ += mark.pause_s;
  SYRINX_TRY_VOID(SentenceSpeaker::check_silence(paused_s_, mark));
  sentences_ = text::SentenceStream(marked_.offset());
  ends_here_ = false;
  return feed_until_mark();
}

Result<std::optional<SentenceReading>> TextReading::next() {
  for (;;) {
    if (const std::optional<std::string> sentence = sentences_.next()) {
      SYRINX_TRY(SentenceReading reading, reader_->read(*sentence, sentences_.sentence_offset()));
      speaks_ = speaks_ || !reading.words.empty();
      return std::optional(std::move(reading));
    }
    if (!ends_here_) return std::optional<SentenceReading>();
    if (marked_.at_mark()) {
      SYRINX_TRY_VOID(heed_mark());
      continue;
    }
    if (!speaks_)
      return fail(Code::kInvalidArgument,
                  "there is nothing to say: the text holds no English words, letters or digits");
    return std::optional<SentenceReading>();
  }
}

tl::unexpected<Error> no_text_reader(std::string_view model) {
  std::string others;
  for (const SpeechFamily* const family : speech_families())
    if (family->load_reader != nullptr) others += (others.empty() ? "" : ", ") + std::string(family->title);
  return fail(Code::kUnsupported, "{} takes a text as it is written; those that tell how they read it: {}", model,
              others);
}

}  // namespace syrinx
