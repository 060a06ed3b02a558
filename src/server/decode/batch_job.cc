#include "server/decode/batch_job.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>
#include <vector>

#include "audio/wav.h"
#include "base/clock.h"
#include "engine/recognition/sound_transcription.h"
#include "server/http/reply_events.h"

namespace syrinx::server::decode {
namespace {

constexpr PcmFormat kFormat{.rate_hz = kRecognitionRateHz, .channels = 1, .bits = 8 * kSampleBytes};
constexpr size_t kBlockBytes = size_t{kRecognitionRateHz} * kSampleBytes;  // that are decoded at once

}  // namespace

BatchJob::BatchJob(std::shared_ptr<const RecognitionModel> model, BatchOrder order, JobReports reports)
    : RecognitionJob(std::move(model), order.id, reports), order_(std::move(order)) {}

Status BatchJob::work(SlotWatch& watch) {
  SYRINX_TRY_VOID(parse());
  const Stopwatch took;
  const Result<Transcript> transcript = transcribe(watch);
  watch.wait_ends();
  note_took(took.elapsed_ms());
  if (!transcript) return tl::unexpected(transcript.error());
  note_audio(transcript->audio_s);
  answer(*transcript);
  return {};
}

// Keeps a client error as the answer.
Status BatchJob::parse() {
  auto request = parse_batch_request(order_.type, std::exchange(order_.body, {}), order_.max_s);
  if (!request) {
    misuse_ = std::move(request).error();
    return fail(Code::kInvalidArgument, "{}", misuse_->message);
  }
  request_ = std::move(*request);
  if (!request_.opaque) request_.opaque = std::move(order_.opaque);
  return {};
}

// Batch work: the engine has live streams go before it.
Result<Transcript> BatchJob::transcribe(SlotWatch& watch) {
  const SoundSource source = [this](const SoundSink& sink) -> Status {
    auto rest = std::as_bytes(std::span(request_.sound));
    SYRINX_TRY_VOID(sink.begin(kRecognitionRateHz, rest.size() / kSampleBytes));
    std::vector<float> block;
    while (!rest.empty()) {
      const size_t bytes = std::min(rest.size(), kBlockBytes);
      decode_pcm(rest.first(bytes), kFormat, block);
      rest = rest.subspan(bytes);
      SYRINX_TRY_VOID(sink.add(block));
    }
    return {};
  };
  TranscribeOptions options;
  options.segment_times = false;
  options.is_wanted = is_wanted();
  options.heard = [this](const TranscriptSegment& segment) {
    if (!segment.text.empty()) note_first_word(static_cast<double>(system_clock().now_ns() - order_.arrived_ns) * 1e-9);
  };
  return transcribe_sound(model().recogniser(), source, options, progress(watch));
}

void BatchJob::answer(const Transcript& transcript) {
  size_t tokens = 0;
  for (const TranscriptSegment& segment : transcript.segments) tokens += segment.tokens.size();
  const size_t samples = request_.sound.size() / kSampleBytes;
  const Recogniser::Frames frames = model().recogniser().frames_of(samples);
  Json metadata;
  metadata.set("audio_length_samples", samples).set("features_length", frames.features);
  metadata.set("encoded_length", frames.encoded).set("tokens", tokens);
  Json json;
  json.set("transcription", transcript.text()).set("status", "COMPLETE").set("metadata", std::move(metadata));
  if (request_.opaque) json.set("opaque", *request_.opaque);
  reply()->begin({.body = json.dump()}, /*whole=*/true);
}

// To such clients the engine is a server behind this one.
HttpError BatchJob::told(const Error& error) const {
  if (misuse_) return *misuse_;
  HttpError answer = http_error(model().names_its_files(error.message) ? Error{Code::kInternal, error.message} : error);
  if (answer.status == 500) answer.status = 502;
  return answer;
}

bool BatchJob::fail_answer(const HttpError& error) { return tell_failure(*reply(), error, /*events=*/false); }

// Frees the recording's room before the client learns of the end.
void BatchJob::end_answer(bool complete) {
  request_ = {};
  std::string().swap(order_.body);  // which frees it
  order_.hold = {};
  end_reply(*reply(), complete, what());
}

}  // namespace syrinx::server::decode
