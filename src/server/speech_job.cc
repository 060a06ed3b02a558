#include "server/speech_job.h"

#include <cmath>
#include <utility>

#include "audio/stream_resampler.h"
#include "base/json.h"
#include "server/base64.h"
#include "text/unicode.h"

namespace syrinx::server {
namespace {

constexpr int kFrameMs = 80;  // what `usage` counts sound in, whatever the model

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

std::string event(const Json& json) { return "data: " + json.dump() + "\n\n"; }

// Which field the engine speaks of, of those that only some models heed.
std::string field_of(const Error& error, const SpeechRequest& request, const SpeechModel& model) {
  if (error.code == Code::kNotFound) return "voice";
  if (error.code != Code::kUnsupported) return error.code == Code::kInvalidArgument ? "input" : "";
  if (model.family() == ModelFamily::kPocketTts && request.speed != 1) return "speed";
  if (model.family() == ModelFamily::kKokoro && request.temperature) return "temperature";
  return "voice";
}

}  // namespace

SpeechJob::SpeechJob(std::shared_ptr<const SpeechModel> model, SpeechRequest request, std::string voice, std::string id,
                     int64_t arrived_ns, Metrics& metrics, RequestLog* log)
    : model_(std::move(model)),
      request_(std::move(request)),
      voice_(std::move(voice)),
      id_(std::move(id)),
      arrived_ns_(arrived_ns),
      metrics_(metrics),
      log_(log) {}

void SpeechJob::run(SlotWatch& watch) {
  const auto spoken = speak(watch);
  if (spoken || reply_->cancelled()) {
    outcome_ = spoken ? "done" : "cancelled";
    return;
  }
  HttpReply reply = error_reply(spoken.error());
  if (!reply_->begun())
    reply_->begin(std::move(reply), /*whole=*/true);
  else if (request_.events)
    (void)reply_->write("event: error\ndata: " + reply.body + "\n\n");  // a client that is gone needs none
}

tl::expected<void, HttpError> SpeechJob::speak(SlotWatch& watch) {
  auto session = start();
  if (!session) return tl::unexpected(std::move(session).error());
  const CancelledBy cancelled_by(*reply_, **session);
  const Status sent = send(**session, watch);
  statistics_ = (*session)->statistics();
  if (!sent) return tl::unexpected(http_error(sent.error(), field_of(sent.error(), request_, *model_)));
  return {};
}

tl::expected<std::unique_ptr<SpeechSession>, HttpError> SpeechJob::start() {
  SpeakOptions options;
  options.voice = voice_;
  options.seed = request_.seed;
  options.plain = true;  // what looks like a mark is a client's text
  options.speed = static_cast<float>(request_.speed);
  if (request_.temperature) options.temperature = static_cast<float>(*request_.temperature);
  auto session = model_->engine().start(options);
  if (!session) return tl::unexpected(http_error(session.error(), field_of(session.error(), request_, *model_)));
  return std::move(*session);
}

Status SpeechJob::send(SpeechSession& session, SlotWatch& watch) {
  SYRINX_TRY_VOID(session.speak(request_.input));
  SYRINX_TRY(const std::unique_ptr<AudioEncoder> encoder,
             AudioEncoder::create(request_.format, {.rate_hz = request_.sample_rate_hz}, sink()));
  SYRINX_TRY(StreamResampler resampler, StreamResampler::create(kSpeechRateHz, request_.sample_rate_hz));
  SpeechChunk chunk;
  std::vector<float> samples;
  for (bool first = true;; first = false) {
    watch.wait_begins();
    const Result<bool> more = session.next(chunk);
    watch.wait_ends();
    if (!more) return tl::unexpected(more.error());
    if (first) SYRINX_TRY_VOID(begin());
    samples.clear();
    if (*more)
      resampler.push(chunk.samples, samples);
    else
      resampler.finish(samples);
    SYRINX_TRY_VOID(encoder->write(samples));
    if (!*more) break;
  }
  SYRINX_TRY_VOID(encoder->finish());
  return finish(session);
}

ByteSink SpeechJob::sink() {
  if (request_.whole) return memory_sink(memory_);
  ByteSink sink;
  if (request_.events)
    sink.append = [this](std::span<const std::byte> bytes) {
      Json delta;
      delta.set("type", "speech.audio.delta");
      delta.set("audio", base64(bytes));
      return reply_->write(event(delta));
    };
  else
    sink.append = [this](std::span<const std::byte> bytes) { return reply_->write(bytes); };
  return sink;
}

std::string SpeechJob::type() const {
  if (request_.events) return "text/event-stream";
  if (request_.format != AudioFormat::kPcm) return media_type(request_.format);
  return fmt::format("audio/pcm; rate={}; channels=1", request_.sample_rate_hz);
}

// The first sound is there: what could be refused has not been.
Status SpeechJob::begin() {
  first_audio_s_ = static_cast<double>(system_clock().now_ns() - arrived_ns_) * 1e-9;
  metrics_.observe("syrinx_time_to_first_audio_seconds", {{"model", model_->id()}}, first_audio_s_);
  if (request_.whole) return {};
  HttpReply head{.type = type()};
  if (request_.events) head.headers.push_back({"Cache-Control", "no-store"});
  reply_->begin(std::move(head), /*whole=*/false);
  return {};
}

Status SpeechJob::finish(SpeechSession& session) {
  if (request_.whole) {
    const auto* const bytes = reinterpret_cast<const char*>(memory_.data());
    reply_->begin({.type = type(), .body = std::string(bytes, memory_.size())}, /*whole=*/true);
    return {};
  }
  if (!request_.events) return {};
  const auto characters = static_cast<int64_t>(text::count_code_points(request_.input));
  const auto frames = static_cast<int64_t>(std::llround(session.statistics().audio_seconds * 1000 / kFrameMs));
  Json usage, done;
  usage.set("input_tokens", characters);
  usage.set("output_tokens", frames);
  usage.set("total_tokens", characters + frames);
  done.set("type", "speech.audio.done");
  done.set("usage", std::move(usage));
  return reply_->write(event(done));
}

void SpeechJob::end() {
  tell();
  const bool broken = outcome_ != std::string_view("done") && !request_.events;
  if (!reply_->begun()) {  // given up by an exception
    const HttpError lost{.status = 500, .message = "the speech was given up; the server's log says why"};
    reply_->begin(error_reply(lost), /*whole=*/true);
    reply_->finish();
  } else if (broken) {
    reply_->abort();
  } else {
    reply_->finish();
  }
}

void SpeechJob::tell() const {
  const bool done = outcome_ == std::string_view("done");
  const char* const reason = !done ? outcome_ : statistics_.limited_pieces > 0 ? "limit" : "eos";
  metrics_.add("syrinx_generation_stopped_total", {{"reason", reason}});
  metrics_.add("syrinx_audio_seconds_total", {{"model", model_->id()}, {"direction", "out"}},
               statistics_.audio_seconds);
  if (log_ == nullptr) return;
  Json line;
  line.set("time", utc_now());
  line.set("event", "speech");
  line.set("id", id_);
  line.set("model", model_->id());
  line.set("stopped", reason);
  line.set("characters", text::count_code_points(request_.input));
  line.set("audio_seconds", statistics_.audio_seconds);
  line.set("first_audio_ms", milliseconds(first_audio_s_));
  line.set("compute_ms", milliseconds(statistics_.compute_ms / 1000));
  log_->write(line.dump());
}

}  // namespace syrinx::server
