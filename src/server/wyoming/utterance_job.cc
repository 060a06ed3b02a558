#include "server/wyoming/utterance_job.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "audio/pcm_stream.h"
#include "base/clock.h"
#include "engine/sound_transcription.h"
#include "server/wyoming/speech_answer.h"

namespace syrinx::server::wyoming {
namespace {

// Of text in an event, so that it stays one block of the reply, whatever JSON makes of it: 6 bytes of one at most.
constexpr size_t kMaxPartBytes = 1024;
static_assert(6 * kMaxPartBytes + 512 < ReplyStream::kBlockBytes);

// As much of it as goes into an event, and no character in two.
std::string_view first_part(std::string_view text) {
  if (text.size() <= kMaxPartBytes) return text;
  size_t end = kMaxPartBytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end > 0 ? end : kMaxPartBytes);
}

}  // namespace

UtteranceJob::UtteranceJob(std::shared_ptr<const RecognitionModel> model, UtteranceOrder order, JobReports reports)
    : RecognitionJob(std::move(model), order.id, reports), order_(std::move(order)) {}

Status UtteranceJob::send(const Event& event) { return reply()->write(written(event)); }

Status UtteranceJob::work(SlotWatch& watch) {
  reply()->on_cancel([sound = order_.sound] { sound->give_up(); });
  const Result<Transcript> transcript = transcribe(watch);
  watch.wait_ends();
  if (ended_ns_ > 0) note_took(static_cast<double>(system_clock().now_ns() - ended_ns_) * 1e-6);
  if (!transcript) return tl::unexpected(transcript.error());
  note_audio(transcript->audio_s);
  begin(transcript->language);
  Event whole{.type = "transcript"};
  whole.data.set("text", transcript->text());
  if (!transcript->language.empty()) whole.data.set("language", transcript->language);
  last_ = written(whole) + written(Event{.type = "transcript-stop"});
  return {};
}

// Batch work: the engine has live streams go before it.
Result<Transcript> UtteranceJob::transcribe(SlotWatch& watch) {
  TranscribeOptions options;
  options.language = order_.language;
  options.heard = [&](const TranscriptSegment& segment) { tell(segment, watch); };
  options.is_wanted = is_wanted();
  const SoundSource source = [&](const SoundSink& sink) { return collect(sink, watch); };
  return transcribe_sound(model().recogniser(), source, options, progress(watch));
}

// Whoever is waited for here is the client, not the engine.
Status UtteranceJob::collect(const SoundSink& sink, SlotWatch& watch) {
  const SoundLimits limits{.max_seconds = order_.max_s};
  const std::string name = "the sound";
  PcmStream decoder(order_.sound->format(), name, limits, sink);
  SYRINX_TRY_VOID(decoder.push({}));  // a sound without a sample is one, too
  for (std::string bytes; order_.sound->take(bytes);) {
    SYRINX_TRY_VOID(decoder.push(std::as_bytes(std::span(bytes))));
    watch.wait_ends();
  }
  ended_ns_ = system_clock().now_ns();
  if (reply()->cancelled()) return fail(Code::kCancelled, "the client has left");
  return {};
}

void UtteranceJob::begin(const std::string& language) {
  if (reply()->begun()) return;
  reply()->begin({.status = 200}, /*whole=*/false);
  Event start{.type = "transcript-start"};
  if (!language.empty()) start.data.set("language", language);
  static_cast<void>(send(start));
}

// A client that has gone is noticed behind the piece; one that reads slowly is not waited for as the engine is.
void UtteranceJob::tell(const TranscriptSegment& segment, SlotWatch& watch) {
  if (segment.text.empty()) return;
  watch.wait_ends();
  note_first_word(ended_ns_ > 0 ? static_cast<double>(system_clock().now_ns() - ended_ns_) * 1e-9 : 0);
  begin(order_.language);
  const std::string text = (any_text_ ? " " : "") + segment.text;  // as Transcript::text() joins them
  any_text_ = true;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view part = first_part(rest);
    Event chunk{.type = "transcript-chunk"};
    chunk.data.set("text", std::string(part));
    static_cast<void>(send(chunk));
    rest.remove_prefix(part.size());
  }
  watch.wait_begins();
}

HttpError UtteranceJob::told(const Error& error) const {
  if (model().names_its_files(error.message)) return http_error({Code::kInternal, error.message});
  return http_error(error);
}

bool UtteranceJob::fail_answer(const HttpError& error) {
  failed_ = true;
  if (!reply()->begun()) reply()->begin({.status = error.status}, /*whole=*/false);  // for the accounts
  last_ = written(error_event(error));
  return true;
}

void UtteranceJob::end_answer(bool complete) {
  if (complete && !failed_)
    reply()->finish(last_);
  else
    reply()->abort(last_);
}

}  // namespace syrinx::server::wyoming
