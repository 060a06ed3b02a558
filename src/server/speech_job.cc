#include "server/speech_job.h"

#include <cmath>
#include <exception>
#include <new>
#include <utility>

#include "audio/stream_resampler.h"
#include "base/json.h"
#include "base/log.h"
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
  if (error.code != Code::kUnsupported) return error.code == Code::kInvalidArgument ? "input" : "";
  if (model.family() == ModelFamily::kPocketTts && request.speed != 1) return "speed";
  if (model.family() == ModelFamily::kKokoro && request.temperature) return "temperature";
  return "voice";
}

// The voice is one of those listed: what is not there, or is named by its file, is the server's fault.
HttpError told(const Error& error, const SpeechRequest& request, const SpeechModel& model) {
  if (error.code == Code::kNotFound || model.names_its_files(error.message))
    return http_error({Code::kInternal, error.message});
  return http_error(error, field_of(error, request, model));
}

}  // namespace

SpeechJob::SpeechJob(std::shared_ptr<const SpeechModel> model, SpeechOrder order, SpeechReports reports)
    : model_(std::move(model)), order_(std::move(order)), reports_(reports) {}

void SpeechJob::run(SlotWatch& watch) {
  const Status spoken = speak(watch);
  if (spoken || reply_->cancelled()) {
    outcome_ = spoken ? "done" : "cancelled";
    complete_ = spoken.has_value();
    return;
  }
  fail_with(spoken.error());
}

// What libraries throw is an error like others, so that the client and the log hear of it.
Status SpeechJob::speak(SlotWatch& watch) {
  try {
    SYRINX_TRY(const std::unique_ptr<SpeechSession> session, start());
    const CancelledBy cancelled_by(*reply_, *session);
    Status sent = send(*session, watch);
    statistics_ = session->statistics();
    return sent;
  } catch (const std::bad_alloc&) {
    return fail(Code::kUnavailable, "out of memory while speaking; ask again when fewer texts are spoken");
  } catch (const std::exception& error) {
    return fail(Code::kInternal, "unexpected failure while speaking: {}", error.what());
  }
}

void SpeechJob::fail_with(const Error& error) {
  const HttpError answer = told(error, order_.request, *model_);
  if (answer.status >= 500) fault_ = error.message;
  HttpReply reply = error_reply(answer);
  if (!reply_->begun()) {
    reply_->begin(std::move(reply), /*whole=*/true);
    complete_ = true;
  } else if (order_.request.events) {
    complete_ = reply_->write("event: error\ndata: " + reply.body + "\n\n").has_value();
  }
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
  SYRINX_TRY_VOID(session.speak(order_.request.input));
  SYRINX_TRY(const std::unique_ptr<AudioEncoder> encoder,
             AudioEncoder::create(order_.request.format, {.rate_hz = order_.request.sample_rate_hz}, sink()));
  SYRINX_TRY(StreamResampler resampler, StreamResampler::create(kSpeechRateHz, order_.request.sample_rate_hz));
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
  if (order_.request.whole) return memory_sink(memory_);
  ByteSink sink;
  if (order_.request.events)
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
  if (order_.request.events) return "text/event-stream";
  if (order_.request.format != AudioFormat::kPcm) return media_type(order_.request.format);
  return fmt::format("audio/pcm; rate={}; channels=1", order_.request.sample_rate_hz);
}

// The first sound is there: what could be refused has not been.
Status SpeechJob::begin() {
  first_audio_s_ = static_cast<double>(system_clock().now_ns() - order_.arrived_ns) * 1e-9;
  reports_.metrics.observe("syrinx_time_to_first_audio_seconds", {{"model", model_->id()}}, first_audio_s_);
  if (order_.request.whole) return {};
  HttpReply head{.type = type()};
  if (order_.request.events) head.headers.push_back({"Cache-Control", "no-store"});
  reply_->begin(std::move(head), /*whole=*/false);
  return {};
}

Status SpeechJob::finish(SpeechSession& session) {
  if (order_.request.whole) {
    const auto* const bytes = reinterpret_cast<const char*>(memory_.data());
    reply_->begin({.type = type(), .body = std::string(bytes, memory_.size())}, /*whole=*/true);
    return {};
  }
  if (!order_.request.events) return {};
  const auto characters = static_cast<int64_t>(text::count_code_points(order_.request.input));
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
  try {
    report();
  } catch (const std::exception& error) {  // the client hears the end all the same
    log_error("what became of a speech could not be told: {}", error.what());
  }
  if (!reply_->begun()) {  // nothing could be told
    const HttpError lost{.status = 500, .message = "the speech was given up; the server's log says why"};
    reply_->begin(error_reply(lost), /*whole=*/true);
    reply_->finish();
  } else if (complete_) {
    reply_->finish();
  } else {
    reply_->abort();
  }
}

void SpeechJob::report() const {
  const bool done = outcome_ == std::string_view("done");
  const char* const reason = !done ? outcome_ : statistics_.limited_pieces > 0 ? "limit" : "eos";
  reports_.metrics.add("syrinx_generation_stopped_total", {{"reason", reason}});
  reports_.metrics.add("syrinx_audio_seconds_total", {{"model", model_->id()}, {"direction", "out"}},
                       statistics_.audio_seconds);
  if (reports_.log == nullptr || (reports_.faults_alone && fault_.empty())) return;
  Json line;
  line.set("time", utc_now());
  line.set("event", "speech");
  line.set("id", order_.id);
  line.set("model", model_->id());
  line.set("stopped", reason);
  if (!fault_.empty()) line.set("error", fault_);
  line.set("characters", text::count_code_points(order_.request.input));
  line.set("audio_seconds", statistics_.audio_seconds);
  line.set("first_audio_ms", milliseconds(first_audio_s_));
  line.set("compute_ms", milliseconds(statistics_.compute_ms / 1000));
  reports_.log->write(line.dump());
}

}  // namespace syrinx::server
