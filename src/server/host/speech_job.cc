#include "server/host/speech_job.h"

#include <optional>
#include <string_view>
#include <utility>

#include "audio/stream_resampler.h"
#include "base/json.h"
#include "server/host/speech_report.h"
#include "text/unicode.h"

namespace syrinx::server {
namespace {

// Marks and pictures alone: what an agent sends that speaks sentence by sentence, and takes an error for the end.  Of
// letters that the model does not read it is told, and of an empty input.
bool is_wordless(std::string_view input) {
  bool is_blank = true;
  for (size_t at = 0; at < input.size();) {
    const char32_t c = text::decode(input, at);
    if (text::is_letter(c) || text::digit_value(c) >= 0) return false;
    is_blank = is_blank && text::is_space(c);
  }
  return !is_blank;
}

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

}  // namespace

SpeechJob::SpeechJob(std::shared_ptr<const SpeechModel> model, SpeechOrder order, std::unique_ptr<SpeechAnswer> answer,
                     JobReports reports)
    : SlotJob(reports), model_(std::move(model)), order_(std::move(order)), answer_(std::move(answer)) {}

Status SpeechJob::work(SlotWatch& watch) {
  SYRINX_TRY(const std::unique_ptr<SpeechSession> session, start());
  if (order_.request.whole) session->make_batch();
  const CancelledBy cancelled_by(*reply(), *session);
  std::optional<ReadBy> read_by;
  if (order_.text)
    read_by.emplace(*order_.text, *session, watch);
  else
    SYRINX_TRY_VOID(session->speak(order_.request.input));
  Status sent = send(*session, watch);
  note_made(*session, watch);
  statistics_ = session->statistics();
  return sent;
}

HttpError SpeechJob::told(const Error& error) const {
  if (!has_format_) return http_error(error, "response_format");
  return speech_error(error, *model_, order_.request.voice);
}

Result<std::unique_ptr<SpeechSession>> SpeechJob::start() {
  SpeakOptions options;
  options.voice = order_.voice;
  options.seed = order_.request.seed;
  options.plain = true;  // what looks like a mark is a client's text
  options.silence_for_nothing = !order_.text && is_wordless(order_.request.input);
  options.knobs = order_.request.knobs;
  return model_->engine().start(options);
}

Status SpeechJob::send(SpeechSession& session, SlotWatch& watch) {
  auto made = AudioEncoder::create(order_.request.format, {.rate_hz = order_.request.sample_rate_hz}, answer_->sink());
  has_format_ = made.has_value();
  SYRINX_TRY(const std::unique_ptr<AudioEncoder> encoder, std::move(made));
  SYRINX_TRY(StreamResampler resampler, StreamResampler::create(session.rate_hz(), order_.request.sample_rate_hz));
  const auto volume = static_cast<float>(order_.request.volume);
  SpeechChunk chunk;
  std::vector<float> samples;
  for (bool first = true;; first = false) {
    SYRINX_TRY(const bool more, next(session, chunk, watch));
    note_made(session, watch);
    if (first) SYRINX_TRY_VOID(begin(session));
    samples.clear();
    if (more)
      resampler.push(chunk.samples, samples);
    else
      resampler.finish(samples);
    for (float& sample : samples) sample *= volume;
    SYRINX_TRY_VOID(encoder->write(samples));
    if (!more) break;
  }
  SYRINX_TRY_VOID(encoder->finish());
  const SpeechStatistics spoken = session.statistics();
  return answer_->finish(
      {.characters = characters(), .audio_seconds = spoken.audio_seconds, .stopped = stop_reason(spoken)});
}

Result<bool> SpeechJob::next(SpeechSession& session, SpeechChunk& chunk, SlotWatch& watch) {
  if (order_.text) {
    const EngineWait wait(*order_.text);
    return session.next(chunk);
  }
  const EngineWait wait(watch);
  return session.next(chunk);
}

// The audio whose steps have been counted, be it sent or not: a stream that is cancelled costs the same.
void SpeechJob::note_made(const SpeechSession& session, SlotWatch& watch) {
  const double made_s = session.statistics().audio_seconds;
  if (made_s > made_s_) watch.note_audio(made_s - std::exchange(made_s_, made_s));
}

size_t SpeechJob::characters() const {
  return order_.text ? order_.text->characters() : text::count_code_points(order_.request.input);
}

// For a text that arrives in parts, the session knows when it began.
Status SpeechJob::begin(const SpeechSession& session) {
  first_audio_s_ = order_.text ? session.statistics().first_audio_ms / 1000
                               : static_cast<double>(system_clock().now_ns() - order_.arrived_ns) * 1e-9;
  metrics().observe("syrinx_time_to_first_audio_seconds", {{"model", model_->id()}}, first_audio_s_);
  return answer_->begin();
}

void SpeechJob::report() const {
  report_speech(reports(), {.event = "speech",
                            .id = order_.id,
                            .model = model_->id(),
                            .outcome = outcome(),
                            .fault = fault(),
                            .characters = characters(),
                            .first_audio_s = first_audio_s_,
                            .ignored = order_.request.ignored,
                            .statistics = statistics_});
}

}  // namespace syrinx::server
