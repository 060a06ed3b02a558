#include "server/host/speech_report.h"

#include <string_view>
#include <utility>

#include "base/json.h"

namespace syrinx::server {
namespace {

// Which field the engine speaks of: the options of its family have been checked before.
const char* field_of(const Error& error) {
  if (error.code == Code::kUnsupported) return "voice";
  return error.code == Code::kInvalidArgument ? "input" : "";
}

// A 4xx that the client was told of is no error that the operator could fix.
bool is_refused(const SpeechOutcome& speech) {
  return speech.outcome == std::string_view("error") && speech.fault.empty();
}

const char* reason_of(const SpeechOutcome& speech) {
  if (speech.outcome == std::string_view("done")) return stop_reason(speech.statistics);
  return is_refused(speech) ? "refused" : speech.outcome;
}

}  // namespace

const char* stop_reason(const SpeechStatistics& statistics) { return finish_reason_name(statistics.finished.worst()); }

void report_speech(const JobReports& reports, const SpeechOutcome& speech) {
  const char* const reason = reason_of(speech);
  if (!is_refused(speech)) reports.metrics.add("syrinx_generation_stopped_total", {{"reason", reason}});
  reports.metrics.add("syrinx_audio_seconds_total", {{"model", speech.model}, {"direction", "out"}},
                      speech.statistics.audio_seconds);
  reports.metrics.add("syrinx_compute_seconds_total", {{"model", speech.model}}, speech.statistics.compute_ms / 1000);
  for (const FinishReason why : {FinishReason::kLength, FinishReason::kSilence, FinishReason::kRepeats})
    if (const size_t cut = speech.statistics.finished.of(why); cut > 0)
      reports.metrics.add("syrinx_speech_pieces_cut_total",
                          {{"model", speech.model}, {"reason", finish_reason_name(why)}}, static_cast<double>(cut));
  reports.metrics.add("syrinx_speech_pieces_retried_total", {{"model", speech.model}},
                      static_cast<double>(speech.statistics.retried_pieces));
  if (speech.statistics.audio_seconds > 0)
    reports.metrics.observe("syrinx_queue_delay_seconds", {{"model", speech.model}},
                            speech.statistics.waiting_ms / 1000);
  auto line = begin_log_line(reports, speech.fault, speech.event, speech.id, speech.model, reason);
  if (!line) return;
  line->set("characters", speech.characters);
  line->set("audio_seconds", speech.statistics.audio_seconds);
  const bool was_heard = speech.statistics.audio_seconds > 0;
  line->set("first_audio_ms", was_heard ? milliseconds(speech.first_audio_s) : Json());
  line->set("engine_first_audio_ms", was_heard ? milliseconds(speech.statistics.first_audio_ms / 1000) : Json());
  line->set("compute_ms", milliseconds(speech.statistics.compute_ms / 1000));
  if (const size_t cut = speech.statistics.finished.cut(); cut > 0) line->set("cut_pieces", cut);
  if (const size_t retried = speech.statistics.retried_pieces; retried > 0) line->set("retried_pieces", retried);
  if (const size_t uneven = speech.statistics.spread.uneven_rate; uneven > 0) line->set("uneven_rate_pieces", uneven);
  if (const size_t uneven = speech.statistics.spread.uneven_loudness; uneven > 0)
    line->set("uneven_loudness_pieces", uneven);
  if (!speech.ignored.empty()) line->set("ignored", Json::Array(speech.ignored.begin(), speech.ignored.end()));
  reports.log->write(line->dump());
}

HttpError speech_error(const Error& error, const SpeechModel& model, const std::string& voice) {
  if (error.code == Code::kNotFound)
    if (auto found = model.find_voice(voice); !found) return std::move(found).error();
  if (error.code == Code::kNotFound || model.names_its_files(error.message))
    return http_error({Code::kInternal, error.message});
  return http_error(error, field_of(error));
}

}  // namespace syrinx::server
