#include "server/wyoming/utterance_job.h"

#include <algorithm>
#include <span>
#include <utility>

#include "audio/decode/pcm_stream.h"
#include "base/clock.h"
#include "engine/recognition/sound_transcription.h"
#include "server/wyoming/speech_answer.h"

namespace syrinx::server::wyoming {
namespace {

// Bytes of text in an event, so that it stays one block of the reply: JSON makes at most 6 bytes of one.
constexpr size_t kMaxPartBytes = 1024;
static_assert(6 * kMaxPartBytes + 512 < ReplyStream::kBlockBytes);

constexpr size_t kPiecesPerSecond = 10;  // behind each of which a client that has left is noticed

// As much of it as goes into an event, and no character in two.
std::string_view first_part(std::string_view text) {
  if (text.size() <= kMaxPartBytes) return text;
  size_t end = kMaxPartBytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end > 0 ? end : kMaxPartBytes);
}

std::string chunk_of(std::string_view text) {
  Event chunk{.type = "transcript-chunk"};
  chunk.data.set("text", std::string(text));
  return written(chunk);
}

size_t piece_bytes(const PcmFormat& format) {
  return format.frame_bytes() * std::max<size_t>(1, static_cast<size_t>(format.rate_hz) / kPiecesPerSecond);
}

}  // namespace

UtteranceJob::UtteranceJob(std::shared_ptr<const RecognitionModel> model, UtteranceOrder order, JobReports reports)
    : RecognitionJob(std::move(model), order.id, reports), order_(std::move(order)) {}

Status UtteranceJob::work(SlotWatch& watch) {
  reply()->on_cancel([sound = order_.sound] { sound->give_up(); });
  return model().recogniser().hears_streams_as_recordings() ? hear_stream(watch) : hear_whole(watch);
}

// With the end of the sound only its last words are left to be found.
Status UtteranceJob::hear_stream(SlotWatch& watch) {
  UtteranceStream stream(model(), *order_.sound, reports());
  Status heard = hear_parts(stream, watch);
  note_audio(stream.audio_s());
  note_took(stream.took_ms());
  if (stream.first_word_s()) log_first_word(*stream.first_word_s());
  if (!heard) return heard;
  finish(stream.text(), stream.language());
  return {};
}

Status UtteranceJob::hear_parts(UtteranceStream& stream, SlotWatch& watch) {
  SYRINX_TRY_VOID(stream.start(order_.language));
  const size_t most = piece_bytes(order_.sound->format());
  for (ArrivingSound::Part part; order_.sound->take(part);) {
    for (auto rest = std::as_bytes(std::span(part.bytes)); !rest.empty() && !reply()->cancelled();) {
      const auto some = rest.first(std::min(most, rest.size()));
      SYRINX_TRY_VOID(stream.hear(some, part.came_ns, watch));
      tell(stream.text(), stream.language());
      rest = rest.subspan(some.size());
    }
  }
  if (reply()->cancelled()) return fail(Code::kCancelled, "the client has left");
  return stream.finish(watch);
}

// Batch work: the engine has live streams go before it.
Status UtteranceJob::hear_whole(SlotWatch& watch) {
  const Result<Transcript> transcript = transcribe(watch);
  watch.wait_ends();
  if (ended_ns_ > 0) note_took(static_cast<double>(system_clock().now_ns() - ended_ns_) * 1e-6);
  if (!transcript) return tl::unexpected(transcript.error());
  note_audio(transcript->audio_s);
  finish(transcript->text(), transcript->language);
  return {};
}

Result<Transcript> UtteranceJob::transcribe(SlotWatch& watch) {
  std::string text;  // so far
  TranscribeOptions options;
  options.language = order_.language;
  options.segment_times = false;
  options.is_live = true;
  options.heard = [&](const TranscriptSegment& segment) {
    if (segment.text.empty()) return;
    note_first_word(ended_ns_ > 0 ? static_cast<double>(system_clock().now_ns() - ended_ns_) * 1e-9 : 0);
    append_segment(text, segment);
    tell(text, {});
  };
  options.is_wanted = is_wanted();
  const SoundSource source = [&](const SoundSink& sink) { return collect(sink, watch); };
  return transcribe_sound(model().recogniser(), source, options, progress(watch));
}

// The job waits for the client here, not for the engine.
Status UtteranceJob::collect(const SoundSink& sink, SlotWatch& watch) {
  const SoundLimits limits{.max_seconds = order_.max_s};
  const std::string name = "the sound";
  PcmStream decoder(order_.sound->format(), name, limits, sink);
  SYRINX_TRY_VOID(decoder.push({}));  // a sound without a sample is one, too
  for (ArrivingSound::Part part; order_.sound->take(part);) {
    SYRINX_TRY_VOID(decoder.push(std::as_bytes(std::span(part.bytes))));
    watch.wait_ends();
  }
  SYRINX_TRY_VOID(decoder.flush());
  ended_ns_ = system_clock().now_ns();
  if (reply()->cancelled()) return fail(Code::kCancelled, "the client has left");
  return {};
}

void UtteranceJob::begin(const std::string& language) {
  if (reply()->begun()) return;
  reply()->begin({.status = 200}, /*whole=*/false);
  Event start{.type = "transcript-start"};
  const std::string& told = language.empty() ? order_.language : language;
  if (!told.empty()) start.data.set("language", told);
  static_cast<void>(reply()->write(written(start)));
}

// Sends the words not sent yet, without waiting: a client with no room for more, such as one that reads only after its
// last audio, gets fewer and longer parts.
void UtteranceJob::tell(std::string_view text, const std::string& language) {
  if (told_bytes_ < text.size()) begin(language);
  while (told_bytes_ < text.size() && reply()->has_room()) {
    const std::string_view part = first_part(text.substr(told_bytes_));
    static_cast<void>(reply()->write(chunk_of(part)));
    told_bytes_ += part.size();
  }
}

void UtteranceJob::finish(std::string_view text, const std::string& language) {
  begin(language);
  while (told_bytes_ < text.size()) {
    const std::string_view part = first_part(text.substr(told_bytes_));
    last_ += chunk_of(part);
    told_bytes_ += part.size();
  }
  Event whole{.type = "transcript"};
  whole.data.set("text", std::string(text));
  if (!language.empty()) whole.data.set("language", language);
  last_ += written(whole) + written(Event{.type = "transcript-stop"});
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
