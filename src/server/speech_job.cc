#include "server/speech_job.h"

#include <optional>
#include <utility>

#include "audio/stream_resampler.h"
#include "base/json.h"
#include "text/unicode.h"

namespace syrinx::server {
namespace {

// As long as it lives, a client that goes ends the session.
class CancelledBy {
 public:
  CancelledBy(ReplyStream& reply, SpeechSession& session) : reply_(reply) {
    reply_.on_cancel([&session] { session.cancel(); });
  }
  ~CancelledBy() { reply_.on_cancel({}); }
  CancelledBy(const CancelledBy&) = delete;
  CancelledBy& operator=(const CancelledBy&) = delete;

 private:
  ReplyStream& reply_;
};

// As long as it lives, a text that arrives goes to the session.
class ReadBy {
 public:
  ReadBy(ArrivingText& text, SpeechSession& session, SlotWatch& watch) : text_(text) { text_.attach(session, watch); }
  ~ReadBy() { text_.detach(); }
  ReadBy(const ReadBy&) = delete;
  ReadBy& operator=(const ReadBy&) = delete;

 private:
  ArrivingText& text_;
};

// Which field the engine speaks of, of those that only some models heed.
std::string field_of(const Error& error, const SpeechRequest& request, const SpeechModel& model) {
  if (error.code != Code::kUnsupported) return error.code == Code::kInvalidArgument ? "input" : "";
  if (model.family() == ModelFamily::kPocketTts && request.speed != 1) return "speed";
  if (model.family() == ModelFamily::kKokoro && request.temperature) return "temperature";
  return "voice";
}

}  // namespace

SpeechJob::SpeechJob(std::shared_ptr<const SpeechModel> model, SpeechOrder order, std::unique_ptr<SpeechAnswer> answer,
                     JobReports reports)
    : SlotJob(reports), model_(std::move(model)), order_(std::move(order)), answer_(std::move(answer)) {}

Status SpeechJob::work(SlotWatch& watch) {
  SYRINX_TRY(const std::unique_ptr<SpeechSession> session, start());
  const CancelledBy cancelled_by(*reply(), *session);
  std::optional<ReadBy> read_by;
  if (order_.text)
    read_by.emplace(*order_.text, *session, watch);
  else
    SYRINX_TRY_VOID(session->speak(order_.request.input));
  Status sent = send(*session, watch);
  statistics_ = session->statistics();
  return sent;
}

// The voice is one of those listed: what is not there, or is named by its file, is the server's fault.
HttpError SpeechJob::told(const Error& error) const {
  if (error.code == Code::kNotFound || model_->names_its_files(error.message))
    return http_error({Code::kInternal, error.message});
  return http_error(error, field_of(error, order_.request, *model_));
}

Result<std::unique_ptr<SpeechSession>> SpeechJob::start() {
  SpeakOptions options;
  options.voice = order_.voice;
  options.seed = order_.request.seed;
  options.plain = true;  // what looks like a mark is a client's text
  options.speed = static_cast<float>(order_.request.speed);
  if (order_.request.temperature) options.temperature = static_cast<float>(*order_.request.temperature);
  return model_->engine().start(options);
}

Status SpeechJob::send(SpeechSession& session, SlotWatch& watch) {
  SYRINX_TRY(const std::unique_ptr<AudioEncoder> encoder,
             AudioEncoder::create(order_.request.format, {.rate_hz = order_.request.sample_rate_hz}, answer_->sink()));
  SYRINX_TRY(StreamResampler resampler, StreamResampler::create(kSpeechRateHz, order_.request.sample_rate_hz));
  SpeechChunk chunk;
  std::vector<float> samples;
  for (bool first = true;; first = false) {
    SYRINX_TRY(const bool more, next(session, chunk, watch));
    if (first) SYRINX_TRY_VOID(begin(session));
    samples.clear();
    if (more)
      resampler.push(chunk.samples, samples);
    else
      resampler.finish(samples);
    SYRINX_TRY_VOID(encoder->write(samples));
    if (!more) break;
  }
  SYRINX_TRY_VOID(encoder->finish());
  return answer_->finish({.characters = characters(), .audio_seconds = session.statistics().audio_seconds});
}

Result<bool> SpeechJob::next(SpeechSession& session, SpeechChunk& chunk, SlotWatch& watch) {
  if (order_.text)
    order_.text->wait_begins();
  else
    watch.wait_begins();
  Result<bool> more = session.next(chunk);
  if (order_.text)
    order_.text->wait_ends();
  else
    watch.wait_ends();
  return more;
}

size_t SpeechJob::characters() const {
  return order_.text ? order_.text->characters() : text::count_code_points(order_.request.input);
}

// Of a text that arrives the session knows when it began.
Status SpeechJob::begin(const SpeechSession& session) {
  first_audio_s_ = order_.text ? session.statistics().first_audio_ms / 1000
                               : static_cast<double>(system_clock().now_ns() - order_.arrived_ns) * 1e-9;
  metrics().observe("syrinx_time_to_first_audio_seconds", {{"model", model_->id()}}, first_audio_s_);
  return answer_->begin();
}

void SpeechJob::report() const {
  const bool done = outcome() == std::string_view("done");
  const char* const reason = !done ? outcome() : statistics_.limited_pieces > 0 ? "limit" : "eos";
  metrics().add("syrinx_generation_stopped_total", {{"reason", reason}});
  metrics().add("syrinx_audio_seconds_total", {{"model", model_->id()}, {"direction", "out"}},
                statistics_.audio_seconds);
  auto line = log_line("speech", order_.id, model_->id(), reason);
  if (!line) return;
  line->set("characters", characters());
  line->set("audio_seconds", statistics_.audio_seconds);
  line->set("first_audio_ms", milliseconds(first_audio_s_));
  line->set("engine_first_audio_ms", milliseconds(statistics_.first_audio_ms / 1000));
  line->set("compute_ms", milliseconds(statistics_.compute_ms / 1000));
  log(*line);
}

}  // namespace syrinx::server
