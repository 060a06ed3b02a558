#include "server/transcription_job.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "audio/sound_file.h"
#include "base/clock.h"
#include "engine/sound_transcription.h"
#include "engine/transcript_format.h"
#include "server/model_id.h"
#include "server/reply_events.h"

namespace syrinx::server {
namespace {

constexpr const char* kFileName = "file";  // in messages: the field's

double rounded_s(double seconds) { return std::round(seconds * 1e3) / 1e3; }

// Else it is the server that could not read it.
bool is_of_recording(Code code) {
  return code == Code::kDataLoss || code == Code::kUnsupported || code == Code::kLimitExceeded ||
         code == Code::kInvalidArgument;
}

// Seconds of sound are what a transcription is paid by where it is.
Json usage_of(const Transcript& transcript) {
  Json usage;
  usage.set("type", "duration");
  usage.set("seconds", rounded_s(transcript.audio_s));
  return usage;
}

Json or_null(const std::optional<TranscriptSegment::Window>& window, float TranscriptSegment::Window::*figure) {
  return window ? Json(static_cast<double>((*window).*figure)) : Json();
}

Json segment_json(const TranscriptSegment& segment, size_t id) {
  Json json;
  json.set("id", id);
  json.set("seek", static_cast<int64_t>(std::floor(segment.start_s * 100)));
  json.set("start", rounded_s(segment.start_s)).set("end", rounded_s(segment.end_s));
  json.set("text", segment.text);
  Json::Array tokens;
  for (const int32_t token : segment.tokens) tokens.emplace_back(static_cast<int>(token));
  json.set("tokens", std::move(tokens));
  json.set("temperature", or_null(segment.window, &TranscriptSegment::Window::temperature));
  json.set("avg_logprob", std::log(std::max(static_cast<double>(segment.confidence), 1e-10)));
  json.set("compression_ratio", or_null(segment.window, &TranscriptSegment::Window::compression_ratio));
  json.set("no_speech_prob", or_null(segment.window, &TranscriptSegment::Window::no_speech));
  return json;
}

Json verbose_json(const Transcript& transcript, const TranscriptionRequest& request) {
  Json json;
  json.set("task", request.options.translate ? "translate" : "transcribe");
  json.set("language", transcript.language).set("duration", rounded_s(transcript.audio_s));
  json.set("text", transcript.text());
  Json::Array segments, words;
  for (size_t i = 0; i < transcript.segments.size(); ++i) {
    const TranscriptSegment& segment = transcript.segments[i];
    segments.push_back(segment_json(segment, i));
    for (const TranscriptWord& word : segment.words) {
      Json item;
      item.set("word", word.text).set("start", rounded_s(word.start_s)).set("end", rounded_s(word.end_s));
      words.push_back(std::move(item));
    }
  }
  if (request.segments) json.set("segments", std::move(segments));
  if (request.options.words) json.set("words", std::move(words));
  json.set("usage", usage_of(transcript));
  return json;
}

HttpReply reply_of(const Transcript& transcript, const TranscriptionRequest& request) {
  const auto written = [&](const char* type, TranscriptFormat format) -> HttpReply {
    return {.type = type, .body = format_transcript(transcript, format, TranscriptTimes::kNone)};
  };
  switch (request.format) {
    case TranscriptionFormat::kText: return written("text/plain; charset=utf-8", TranscriptFormat::kText);
    case TranscriptionFormat::kSrt: return written("application/x-subrip; charset=utf-8", TranscriptFormat::kSrt);
    case TranscriptionFormat::kVtt: return written("text/vtt; charset=utf-8", TranscriptFormat::kVtt);
    case TranscriptionFormat::kVerboseJson: return {.body = verbose_json(transcript, request).dump()};
    case TranscriptionFormat::kJson: break;
  }
  Json json;
  json.set("text", transcript.text());
  json.set("usage", usage_of(transcript));
  return {.body = json.dump()};
}

}  // namespace

TranscriptionJob::TranscriptionJob(std::shared_ptr<const RecognitionModel> model, TranscriptionOrder order,
                                   JobReports reports)
    : SlotJob(reports), model_(std::move(model)), order_(std::move(order)) {}

Status TranscriptionJob::work(SlotWatch& watch) {
  SYRINX_TRY_VOID(parse());
  const Stopwatch took;
  const Result<Transcript> transcript = transcribe(watch);
  watch.wait_ends();
  took_ms_ = took.elapsed_ms();
  if (!transcript) return tl::unexpected(transcript.error());
  audio_s_ = transcript->audio_s;
  return answer(*transcript);
}

Status TranscriptionJob::answer(const Transcript& transcript) {
  if (!request_.events) {
    reply_->begin(reply_of(transcript, request_), /*whole=*/true);
    return {};
  }
  if (!reply_->begun()) reply_->begin(event_head(), /*whole=*/false);
  Json done;
  done.set("type", "transcript.text.done");
  done.set("text", transcript.text());  // and no usage: OpenAI's clients take it for one of tokens in this event
  return reply_->write(event_text(done));
}

bool TranscriptionJob::fail_answer(const HttpError& error) { return tell_failure(*reply_, error, request_.events); }

// Who hears of the end finds the room free that the recording took.
void TranscriptionJob::end_answer(bool complete) {
  order_.body = {};
  order_.hold = {};
  end_reply(*reply_, complete, "the transcription");
}

// What the client has got wrong is kept as its answer.
Status TranscriptionJob::parse() {
  const auto misused = [this](HttpError error) {
    misuse_ = std::move(error);
    return fail(Code::kInvalidArgument, "{}", misuse_->message);
  };
  const auto parts = parse_multipart(order_.type, order_.body);
  if (!parts) return misused(parts.error());
  auto request = parse_transcription_request(*parts, order_.translated);
  if (!request) return misused(request.error());
  request_ = std::move(*request);
  if (!model_->is_called(request_.model)) return misused(no_model(true, "", request_.model));
  const auto voice = request_.options.voice.apply({});
  if (!voice) return misused(http_error(voice.error(), "chunking_strategy"));
  return {};
}

// Batch work: the engine has live streams go before it.
Result<Transcript> TranscriptionJob::transcribe(SlotWatch& watch) {
  const auto file = std::as_bytes(std::span(request_.file.data(), request_.file.size()));
  const SoundLimits limits{.max_seconds = order_.max_recording_s};
  const SoundSource source = [&](const SoundSink& sink) {
    bool unheard = false;
    const SoundSink heard{.begin = sink.begin, .add = [&](std::span<const float> samples) {
                            Status added = sink.add(samples);
                            watch.wait_ends();
                            unheard = !added;
                            return added;
                          }};
    Status read = read_sound(file, kFileName, limits, heard);
    bad_recording_ = !read && !unheard && is_of_recording(read.error().code);
    return read;
  };
  TranscribeOptions options = request_.options;
  options.heard = [&](const TranscriptSegment& segment) { tell(segment, watch); };
  const auto progress = [&](double done_s, std::optional<double> /*total_s*/) {
    watch.wait_goes_on();  // for the next piece
    audio_s_ = done_s;
    return !reply_->cancelled();
  };
  return transcribe_sound(model_->recogniser(), source, options, progress);
}

// A client that has gone is noticed behind the piece; one that reads slowly is not waited for as the engine is.
void TranscriptionJob::tell(const TranscriptSegment& segment, SlotWatch& watch) {
  if (segment.text.empty()) return;
  if (!first_word_s_) {
    first_word_s_ = static_cast<double>(system_clock().now_ns() - order_.arrived_ns) * 1e-9;
    metrics().observe("syrinx_time_to_first_word_seconds", {{"model", model_->id()}}, *first_word_s_);
  }
  if (!request_.events) return;
  watch.wait_ends();
  const bool first = !reply_->begun();
  if (first) reply_->begin(event_head(), /*whole=*/false);
  Json delta;  // as Transcript::text() joins them
  delta.set("type", "transcript.text.delta");
  delta.set("delta", (first ? "" : " ") + segment.text);
  static_cast<void>(reply_->write(event_text(delta)));
  watch.wait_begins();
}

HttpError TranscriptionJob::told(const Error& error) const {
  if (misuse_) return *misuse_;
  if (bad_recording_) {
    HttpError answer = http_error({Code::kInvalidArgument, error.message}, kFileName);
    if (error.code == Code::kLimitExceeded) answer.status = 413;
    if (error.code != Code::kUnsupported) return answer;
    answer.status = 415;
    answer.message += "; send wav, flac, mp3, or ogg with Vorbis or Opus";
    return answer;
  }
  if (model_->names_its_files(error.message)) return http_error({Code::kInternal, error.message});
  // There is no voice activity model that could heed it.
  if (error.code == Code::kNotFound) return http_error({Code::kUnsupported, error.message}, "chunking_strategy");
  const bool of_options = error.code == Code::kInvalidArgument || error.code == Code::kUnsupported;
  if (!of_options || request_.options.translate) return http_error(error);
  return http_error(error, request_.options.boost.empty() ? "language" : "keywords");
}

void TranscriptionJob::report() const {
  metrics().add("syrinx_audio_seconds_total", {{"model", model_->id()}, {"direction", "in"}}, audio_s_);
  auto line = log_line("transcription", order_.id, model_->id(), outcome());
  if (!line) return;
  line->set("audio_seconds", rounded_s(audio_s_));
  line->set("first_word_ms", first_word_s_ ? Json(milliseconds(*first_word_s_)) : Json());
  line->set("took_ms", milliseconds(took_ms_ / 1000));
  log(*line);
}

}  // namespace syrinx::server
