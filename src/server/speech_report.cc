#include "server/speech_report.h"

#include <string_view>
#include <utility>

#include "base/json.h"

namespace syrinx::server {
namespace {

// Which field the engine speaks of, of those that only some models heed.
const char* field_of(const Error& error, const SpeechModel& model, bool has_speed, bool has_temperature) {
  if (error.code != Code::kUnsupported) return error.code == Code::kInvalidArgument ? "input" : "";
  if (model.family() == ModelFamily::kPocketTts && has_speed) return "speed";
  if (model.family() == ModelFamily::kKokoro && has_temperature) return "temperature";
  return "voice";
}

}  // namespace

const char* stop_reason(const SpeechStatistics& statistics) { return statistics.limited_pieces > 0 ? "limit" : "eos"; }

void report_speech(const JobReports& reports, const SpeechOutcome& speech) {
  const bool done = speech.outcome == std::string_view("done");
  const char* const reason = done ? stop_reason(speech.statistics) : speech.outcome;
  reports.metrics.add("syrinx_generation_stopped_total", {{"reason", reason}});
  reports.metrics.add("syrinx_audio_seconds_total", {{"model", speech.model}, {"direction", "out"}},
                      speech.statistics.audio_seconds);
  reports.metrics.add("syrinx_compute_seconds_total", {{"model", speech.model}}, speech.statistics.compute_ms / 1000);
  if (speech.statistics.audio_seconds > 0)
    reports.metrics.observe("syrinx_queue_delay_seconds", {{"model", speech.model}},
                            speech.statistics.waiting_ms / 1000);
  auto line = begin_log_line(reports, speech.fault, speech.event, speech.id, speech.model, reason);
  if (!line) return;
  line->set("characters", speech.characters);
  line->set("audio_seconds", speech.statistics.audio_seconds);
  line->set("first_audio_ms", milliseconds(speech.first_audio_s));
  line->set("engine_first_audio_ms", milliseconds(speech.statistics.first_audio_ms / 1000));
  line->set("compute_ms", milliseconds(speech.statistics.compute_ms / 1000));
  reports.log->write(line->dump());
}

HttpError speech_error(const Error& error, const SpeechModel& model, const std::string& voice, bool has_speed,
                       bool has_temperature) {
  if (error.code == Code::kNotFound)
    if (auto found = model.find_voice(voice); !found) return std::move(found).error();
  if (error.code == Code::kNotFound || model.names_its_files(error.message))
    return http_error({Code::kInternal, error.message});
  return http_error(error, field_of(error, model, has_speed, has_temperature));
}

}  // namespace syrinx::server
