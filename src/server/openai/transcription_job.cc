#include "server/openai/transcription_job.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "audio/decode/sound_file.h"
#include "base/clock.h"
#include "engine/recognition/sound_transcription.h"
#include "engine/recognition/transcript_format.h"
#include "server/http/reply_events.h"
#include "server/openai/ignored_fields.h"
#include "server/settings/model_id.h"
#include "text/language.h"

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

// Neutral values for a model without windows, as clients' types need plain numbers.
constexpr TranscriptSegment::Window kNoWindow{.temperature = 0, .compression_ratio = 1, .no_speech = 0};

Json segment_json(const TranscriptSegment& segment, size_t id) {
  Json json;
  json.set("id", id);
  json.set("seek", static_cast<int64_t>(std::floor(segment.start_s * 100)));
  json.set("start", rounded_s(segment.start_s)).set("end", rounded_s(segment.end_s));
  json.set("text", segment.text);
  Json::Array tokens;
  for (const int32_t token : segment.tokens) tokens.emplace_back(static_cast<int>(token));
  json.set("tokens", std::move(tokens));
  const TranscriptSegment::Window window = segment.window.value_or(kNoWindow);
  json.set("temperature", static_cast<double>(window.temperature));
  json.set("avg_logprob", std::log(std::max(static_cast<double>(segment.confidence), 1e-10)));
  json.set("compression_ratio", static_cast<double>(window.compression_ratio));
  json.set("no_speech_prob", static_cast<double>(window.no_speech));
  if (segment.channel) json.set("channel", *segment.channel);
  return json;
}

// In order of time: segments of two channels may overlap.
Json::Array words_json(const Transcript& transcript) {
  std::vector<std::pair<const TranscriptWord*, std::optional<int>>> words;
  for (const TranscriptSegment& segment : transcript.segments)
    for (const TranscriptWord& word : segment.words) words.emplace_back(&word, segment.channel);
  std::ranges::stable_sort(words, {}, [](const auto& word) { return word.first->start_s; });
  Json::Array items;
  for (const auto& [word, channel] : words) {
    Json item;
    item.set("word", word->text).set("start", rounded_s(word->start_s)).set("end", rounded_s(word->end_s));
    if (channel) item.set("channel", *channel);
    items.push_back(std::move(item));
  }
  return items;
}

Json verbose_json(const Transcript& transcript, const TranscriptionRequest& request) {
  Json json;
  json.set("task", request.options.knobs.flag("translate") ? "translate" : "transcribe");
  json.set("language", transcript.language).set("duration", rounded_s(transcript.audio_s));
  json.set("text", transcript.text());
  Json::Array segments;
  for (size_t i = 0; i < transcript.segments.size(); ++i) segments.push_back(segment_json(transcript.segments[i], i));
  if (request.segments) json.set("segments", std::move(segments));
  if (request.options.words) json.set("words", words_json(transcript));
  json.set("usage", usage_of(transcript));
  if (!transcript.warnings.empty()) json.set("warnings", to_json(transcript.warnings));
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
    : RecognitionJob(std::move(model), order.id, reports), order_(std::move(order)) {}

Status TranscriptionJob::work(SlotWatch& watch) {
  SYRINX_TRY_VOID(parse());
  SYRINX_TRY_VOID(model().recogniser().check_recording(request_.options));  // before the file is decoded
  const Stopwatch took;
  const Result<Transcript> transcript = transcribe(watch);
  watch.wait_ends();
  note_took(took.elapsed_ms());
  if (!transcript) return tl::unexpected(transcript.error());
  note_audio(transcript->audio_s);
  return answer(*transcript);
}

Status TranscriptionJob::answer(const Transcript& transcript) {
  if (!request_.events) {
    reply()->begin(naming_ignored(reply_of(transcript, request_), request_.ignored), /*whole=*/true);
    return {};
  }
  if (!reply()->begun()) reply()->begin(naming_ignored(event_head(), request_.ignored), /*whole=*/false);
  Json done;
  done.set("type", "transcript.text.done");
  done.set("text", transcript.text());  // and no usage: OpenAI's clients take it for one of tokens in this event
  return reply()->write(event_text(done));
}

bool TranscriptionJob::fail_answer(const HttpError& error) { return tell_failure(*reply(), error, request_.events); }

// Frees the recording's room before the client learns of the end.
void TranscriptionJob::end_answer(bool complete) {
  std::string().swap(order_.body);  // which frees it
  order_.hold = {};
  end_reply(*reply(), complete, "the transcription");
}

// Keeps a client error as the answer.
Status TranscriptionJob::parse() {
  const auto misused = [this](HttpError error) {
    misuse_ = std::move(error);
    return fail(Code::kInvalidArgument, "{}", misuse_->message);
  };
  const auto parts = parse_multipart(order_.type, order_.body);
  if (!parts) return misused(parts.error());
  auto request = parse_transcription_request(*parts, {.translated = order_.translated,
                                                      .takes_keywords = model().takes_keywords(),
                                                      .family = &model().family(),
                                                      .unheeded = model().unheeded_fields(),
                                                      .strict = order_.strict});
  if (!request) return misused(request.error());
  request_ = std::move(*request);
  note_ignored(request_.ignored);
  if (!model().is_called(request_.model)) return misused(no_model(true, "", request_.model));
  const auto voice = request_.options.voice.apply({});
  if (!voice) return misused(http_error(voice.error(), "chunking_strategy"));
  if (text::is_any_language(request_.options.language)) request_.options.language.clear();
  if (request_.options.language.empty()) return {};
  auto language = model().language_called(request_.options.language);
  if (!language) return misused({.status = 400, .message = language.error().message, .param = "language"});
  request_.options.language = std::move(*language);
  return {};
}

// Batch work: the engine has live streams go before it.
Result<Transcript> TranscriptionJob::transcribe(SlotWatch& watch) {
  const auto file = std::as_bytes(std::span(request_.file.data(), request_.file.size()));
  SoundLimits limits{.max_seconds = order_.max_recording_s, .each_channel_counts = request_.separate_channels};
  SoundSource source = [&](const SoundSink& sink) {
    bool unheard = false;
    SoundSink heard = sink;
    heard.add = [&](std::span<const float> samples) {
      Status added = sink.add(samples);
      watch.wait_ends();
      unheard = !added;
      return added;
    };
    heard.looked = [&](uint64_t) -> Status {
      watch.wait_ends();
      if (reply()->cancelled()) return fail(Code::kCancelled, "stopped while it was read");
      return {};
    };
    Status read = read_sound(file, kFileName, limits, heard);
    bad_recording_ = !read && !unheard && is_of_recording(read.error().code);
    return read;
  };
  TranscribeOptions options = request_.options;
  options.heard = [&](const TranscriptSegment& segment) { tell(segment, watch); };
  options.is_wanted = is_wanted();
  if (!request_.separate_channels) return transcribe_sound(model().recogniser(), source, options, progress(watch));
  const ChannelSource channels = [&](int channel) {
    limits.channel = channel;
    return source;
  };
  return transcribe_channels(model().recogniser(), channels, options, progress(watch));
}

// A client that has gone is noticed behind the piece; one that reads slowly is not waited for as the engine is.
void TranscriptionJob::tell(const TranscriptSegment& segment, SlotWatch& watch) {
  if (segment.text.empty()) return;
  note_first_word(static_cast<double>(system_clock().now_ns() - order_.arrived_ns) * 1e-9);
  if (!request_.events) return;
  watch.wait_ends();
  const bool first = !reply()->begun();
  if (first) reply()->begin(naming_ignored(event_head(), request_.ignored), /*whole=*/false);
  Json delta;  // as Transcript::text() joins them
  delta.set("type", "transcript.text.delta");
  delta.set("delta", (first || !segment.spaced ? "" : " ") + segment.text);
  static_cast<void>(reply()->write(event_text(delta)));
  watch.wait_begins();
}

HttpError TranscriptionJob::told(const Error& error) const {
  if (misuse_) return *misuse_;
  if (bad_recording_) {
    HttpError answer = http_error({Code::kInvalidArgument, error.message}, kFileName);
    if (error.code == Code::kLimitExceeded) answer.status = 413;
    if (error.code != Code::kUnsupported) return answer;
    answer.status = 415;
    return answer;
  }
  if (model().names_its_files(error.message)) return http_error({Code::kInternal, error.message});
  // There is no voice activity model that could heed it.
  if (error.code == Code::kNotFound) return http_error({Code::kUnsupported, error.message}, "chunking_strategy");
  const bool of_options = error.code == Code::kInvalidArgument || error.code == Code::kUnsupported;
  if (!of_options || request_.options.knobs.flag("translate")) return http_error(error);
  TranscribeOptions plain = request_.options;
  plain.knobs = {};
  if (!model().recogniser().check_recording(plain)) return http_error(error, "language");
  if (!request_.keywords.empty()) return http_error(error, "keywords");
  return http_error(error, request_.options.knobs.has("patience") ? "patience" : "beam");
}

}  // namespace syrinx::server
