#include "server/host/metrics.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"

namespace syrinx::server {
namespace {

using Kind = Metrics::Kind;

const std::vector<double> kShort = {0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.15, 0.2, 0.3, 0.5, 1, 2, 5, 10};
const std::vector<double> kLong = {0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120};

std::vector<double> step_bounds() {
  std::vector<double> seconds;
  seconds.reserve(StepFigures::kBoundsNs.size());
  for (const int64_t bound_ns : StepFigures::kBoundsNs) seconds.push_back(static_cast<double>(bound_ns) / 1e9);
  return seconds;
}

const std::vector<Metrics::Family>& families() {
  static const std::vector<Metrics::Family> table = {
      {"syrinx_build_info", Kind::kGauge, "Always 1; the labels say which build this is."},
      {"syrinx_slots", Kind::kGauge, "Slots of a model, busy and free."},
      {"syrinx_sessions_active", Kind::kGauge, "Sessions that are under way."},
      {"syrinx_queue_depth", Kind::kGauge, "Sessions, texts, recordings and voices that wait for a turn at the model."},
      {"syrinx_live_load", Kind::kGauge, "Share of the computing time that a model's live streams need to be on time."},
      {"syrinx_live_load_limit", Kind::kGauge, "Share that all of them may need; 0: free slots alone decide."},
      {"syrinx_live_streams_admitted_total", Kind::kCounter, "Live streams that were given a slot of a model."},
      {"syrinx_longest_step_seconds", Kind::kGauge, "The longest time for which a model's work let no other run."},
      {"syrinx_realtime_sessions", Kind::kGauge, "Sessions of /v1/realtime, of which those at work hold slots."},
      {"syrinx_uploaded_voices", Kind::kGauge, "Voices that clients have uploaded for a model."},
      {"syrinx_upload_bytes", Kind::kGauge,
       "Bytes held by uploads, long JSON bodies and messages, arriving or at work, and by audio that waits."},
      {"syrinx_requests_total", Kind::kCounter, "Requests that have been answered."},
      {"syrinx_rejected_total", Kind::kCounter, "Requests, connections and sound that were refused for want of room."},
      {"syrinx_tls_handshakes_failed_total", Kind::kCounter, "Connections that ended before TLS was agreed upon."},
      {"syrinx_audio_backlog_seconds", Kind::kGauge, "Sound of sessions and streams that waits to be heard."},
      {"syrinx_queue_delay_seconds", Kind::kHistogram,
       "How long sound of sessions and streams waited until it was heard, of each second the longest wait; or how long "
       "a text waited in all while others had their turns.",
       kLong},
      {"syrinx_request_duration_seconds", Kind::kHistogram, "From a request's first byte to its answer's last.", kLong},
      {"syrinx_time_to_first_audio_seconds", Kind::kHistogram, "From a request to its first sound.", kShort},
      {"syrinx_time_to_first_word_seconds", Kind::kHistogram,
       "From a recording's request, an utterance's end, or when the first word of a session's turn or a stream began, "
       "to "
       "its first words.",
       kLong},
      {"syrinx_time_to_first_token_seconds", Kind::kHistogram,
       "From a conversation's request to the first token of its answer.", kLong},
      {"syrinx_tokens_total", Kind::kCounter,
       "Tokens of conversations: of prompts, of these those known from before, and of answers."},
      {"syrinx_answers_total", Kind::kCounter, "Answers of a language model, by what ended them."},
      {"syrinx_step_duration_seconds", Kind::kHistogram, "How long a step took of what is spoken or heard live.",
       step_bounds()},
      {"syrinx_step_deadline_missed_total", Kind::kCounter,
       "Steps behind which somebody's sound, or words, came later than they were due."},
      {"syrinx_audio_seconds_total", Kind::kCounter, "Seconds of sound that went out or came in."},
      {"syrinx_compute_seconds_total", Kind::kCounter, "Seconds that speaking took; over those of sound: how fast."},
      {"syrinx_generation_stopped_total", Kind::kCounter, "Texts that have been spoken, by what ended them."},
      {"syrinx_speech_pieces_cut_total", Kind::kCounter, "Pieces of texts that their model did not end, by what did."},
      {"syrinx_speech_pieces_retried_total", Kind::kCounter, "Pieces of texts that were spoken once more."},
      {"syrinx_model_loaded", Kind::kGauge, "Whether a model is in memory."},
      {"syrinx_model_loads_total", Kind::kCounter, "How often a model was loaded."},
      {"syrinx_model_unloads_total", Kind::kCounter, "How often an idle model was unloaded."},
      {"syrinx_model_load_seconds", Kind::kGauge, "How long a model took to load."},
      {"syrinx_model_warm_up_seconds", Kind::kGauge, "How long a model then ran to be ready for its first request."},
      {"syrinx_model_memory_bytes", Kind::kGauge, "By how much the process grew when a model was loaded and warmed."},
      {"syrinx_log_lines_dropped", Kind::kGauge, "Lines that the log had no room for, since the beginning."},
      {"process_cpu_seconds_total", Kind::kCounter, "Seconds that the process has computed, on all cores."},
      {"process_virtual_memory_bytes", Kind::kGauge, "Memory that the process has mapped."},
      {"process_resident_memory_bytes", Kind::kGauge, "Memory that the process has in use."},
      {"process_open_fds", Kind::kGauge, "Open file descriptors."},
      {"process_max_fds", Kind::kGauge, "File descriptors that the process may open."},
      {"process_start_time_seconds", Kind::kGauge, "When the process began, since 1970."},
  };
  return table;
}

// As a label's value is written: backslash, quotation mark and line feed escaped.
std::string escaped(std::string_view value) {
  std::string text;
  for (const char c : value) {
    if (c == '\\' || c == '"') text += '\\';
    if (c == '\n')
      text += "\\n";
    else
      text += c;
  }
  return text;
}

std::string written(Labels labels) {
  std::string text;
  for (const auto& [name, value] : labels)
    text += fmt::format("{}{}=\"{}\"", text.empty() ? "" : ",", name, escaped(value));
  return text;
}

std::string braces(const std::string& labels, const std::string& more = "") {
  const std::string all = labels.empty() || more.empty() ? labels + more : labels + "," + more;
  return all.empty() ? "" : "{" + all + "}";
}

const char* kind_name(Kind kind) {
  return kind == Kind::kCounter ? "counter" : kind == Kind::kGauge ? "gauge" : "histogram";
}

}  // namespace

Metrics::Metrics() {
  for (const Family& family : families()) states_.push_back({&family, {}});
}

Metrics::State& Metrics::state(std::string_view family) {
  const auto found =
      std::find_if(states_.begin(), states_.end(), [&](const State& each) { return family == each.family->name; });
  SYRINX_CHECK(found != states_.end());
  return *found;
}

Metrics::Series& Metrics::series(std::string_view family, Kind kind, Labels labels) {
  State& found = state(family);
  SYRINX_CHECK(found.family->kind == kind);
  Series& series = found.series[written(labels)];
  if (kind == Kind::kHistogram) series.buckets.resize(found.family->bounds.size() + 1);
  return series;
}

void Metrics::add(std::string_view family, Labels labels, double by) {
  const std::lock_guard lock(mutex_);
  series(family, Kind::kCounter, labels).value += by;
}

void Metrics::set(std::string_view family, Labels labels, double value) {
  const std::lock_guard lock(mutex_);
  series(family, Kind::kGauge, labels).value = value;
}

void Metrics::observe(std::string_view family, Labels labels, double seconds) {
  const std::lock_guard lock(mutex_);
  Series& found = series(family, Kind::kHistogram, labels);
  found.value += seconds;
  const std::vector<double>& bounds = state(family).family->bounds;
  ++found.buckets[static_cast<size_t>(std::lower_bound(bounds.begin(), bounds.end(), seconds) - bounds.begin())];
}

void Metrics::set_total(std::string_view family, Labels labels, double total) {
  const std::lock_guard lock(mutex_);
  series(family, Kind::kCounter, labels).value = total;
}

void Metrics::set_steps(std::string_view family, Labels labels, const StepFigures& steps) {
  const std::lock_guard lock(mutex_);
  Series& found = series(family, Kind::kHistogram, labels);
  SYRINX_CHECK(found.buckets.size() == steps.buckets.size());
  found.value = static_cast<double>(steps.took_ns) / 1e9;
  std::copy(steps.buckets.begin(), steps.buckets.end(), found.buckets.begin());
}

void Metrics::begin(std::string_view family, Labels labels) {
  const std::lock_guard lock(mutex_);
  static_cast<void>(series(family, state(family).family->kind, labels));
}

std::string Metrics::text() const {
  const std::lock_guard lock(mutex_);
  std::string text;
  for (const State& state : states_) {
    const Family& family = *state.family;
    if (state.series.empty()) continue;
    text += fmt::format("# HELP {} {}\n# TYPE {} {}\n", family.name, family.help, family.name, kind_name(family.kind));
    for (const auto& [labels, series] : state.series) {
      if (family.kind != Kind::kHistogram) {
        text += fmt::format("{}{} {}\n", family.name, braces(labels), series.value);
        continue;
      }
      uint64_t count = 0;
      for (size_t i = 0; i < series.buckets.size(); ++i) {
        count += series.buckets[i];
        const std::string bound = i < family.bounds.size() ? fmt::format("{}", family.bounds[i]) : "+Inf";
        text += fmt::format("{}_bucket{} {}\n", family.name, braces(labels, "le=\"" + bound + "\""), count);
      }
      text += fmt::format("{}_sum{} {}\n{}_count{} {}\n", family.name, braces(labels), series.value, family.name,
                          braces(labels), count);
    }
  }
  return text;
}

}  // namespace syrinx::server
