#include "cli/transcribe_live.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

#include "audio/device/capture.h"
#include "audio/stream_resampler.h"
#include "base/clock.h"
#include "base/signals.h"
#include "cli/live_line.h"
#include "cli/output.h"
#include "text/columns.h"

namespace syrinx::cli {
namespace {

constexpr int kBlockMs = 20;   // of the microphone
constexpr double kNapMs = 20;  // how often Ctrl-C is looked at while waiting for the time to come

const std::string kEraseLine = "\r\x1b[K";

double rounded(double value) { return std::round(value * 1e4) / 1e4; }

double percentile(const std::vector<double>& sorted, double share) {
  if (sorted.empty()) return 0;
  return sorted[std::min(sorted.size() - 1, static_cast<size_t>(share * static_cast<double>(sorted.size())))];
}

class LiveTranscript {
 public:
  LiveTranscript(const LiveTask& task, RecognitionStream& stream, const LiveOutput& output)
      : task_(task), stream_(stream), output_(output) {
    chunk_samples_ = static_cast<size_t>(task.chunk_ms) * kRecognitionRateHz / 1000;
  }

  Status begin(int rate_hz) {
    SYRINX_TRY(resampler_, StreamResampler::create(rate_hz, kRecognitionRateHz));
    if (task_.format == TranscriptFormat::kVtt) SYRINX_TRY_VOID(output_.write(kVttHeader));
    since_begin_.restart();
    return {};
  }

  Status add(std::span<const float> samples) {
    const Stopwatch arrived;
    resampler_->push(samples, waiting_);
    size_t at = 0;
    for (; waiting_.size() - at >= chunk_samples_; at += chunk_samples_)
      SYRINX_TRY_VOID(push(std::span(waiting_).subspan(at, chunk_samples_), arrived));
    waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(at));
    return {};
  }

  Status finish() {
    if (!resampler_) return {};  // no sound has begun
    const Stopwatch arrived;
    resampler_->finish(waiting_);
    if (!waiting_.empty()) SYRINX_TRY_VOID(push(waiting_, arrived));
    waiting_.clear();
    return close();
  }

  // Says what was heard so far, without what is not yet a chunk.
  Status close() {
    if (!resampler_) return {};
    events_.clear();
    SYRINX_TRY_VOID(stream_.finish(events_));
    SYRINX_TRY_VOID(tell());
    return task_.format == TranscriptFormat::kJson ? summary() : Status();
  }

 private:
  // Waits until the chunk's last sample would have been spoken; Ctrl-C ends the wait.
  Status wait_for(uint64_t samples) const {
    const double due_ms = static_cast<double>(samples) * 1000 / kRecognitionRateHz;
    for (double left = 0; (left = due_ms - since_begin_.elapsed_ms()) > 0;) {
      if (cancel_requested()) return fail(Code::kCancelled, "stopped while listening");
      std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(std::min(left, kNapMs)));
    }
    return {};
  }

  Status push(std::span<const float> chunk, const Stopwatch& arrived) {
    samples_ += chunk.size();
    // Sound of a file is there at once; what counts is the time from when it would have been heard.
    Stopwatch since_last_sample = arrived;
    double late_ms = 0;
    if (task_.realtime) {
      SYRINX_TRY_VOID(wait_for(samples_));
      late_ms = since_begin_.elapsed_ms() - static_cast<double>(samples_) * 1000 / kRecognitionRateHz;
      since_last_sample.restart();
    }
    const Stopwatch computing;
    events_.clear();
    SYRINX_TRY_VOID(stream_.push(chunk, events_));
    if (task_.format == TranscriptFormat::kJson) {  // only its lines tell them
      compute_ms_.push_back(computing.elapsed_ms());
      latency_ms_.push_back(late_ms + (task_.realtime ? since_last_sample.elapsed_ms() : computing.elapsed_ms()));
    }
    SYRINX_TRY_VOID(tell());
    return task_.chunks && task_.format == TranscriptFormat::kJson ? chunk_line() : Status();
  }

  Status chunk_line() const {
    Json json;
    json.set("chunk", compute_ms_.size() - 1).set("end_s", static_cast<double>(samples_) / kRecognitionRateHz);
    json.set("compute_ms", rounded(compute_ms_.back())).set("latency_ms", rounded(latency_ms_.back()));
    return output_.write(json.dump() + "\n");
  }

  Status tell() {
    for (const RecognitionEvent& event : events_) SYRINX_TRY_VOID(tell(event));
    return {};
  }

  Status tell(const RecognitionEvent& event) {
    if (!event.is_final && output_.show) output_.show(event.result.text, event.stable_bytes);
    if (task_.format == TranscriptFormat::kJson) return output_.write(to_json(event, task_.times).dump() + "\n");
    if (!event.is_final || event.result.text.empty()) return {};
    if (task_.format == TranscriptFormat::kText) return output_.write(segment_text(event.result, task_.times));
    std::vector<Cue> cues = make_cues(event.result, task_.times);
    make_cues_last(cues, last_cue_end_s_, static_cast<double>(samples_) / kRecognitionRateHz);
    if (!cues.empty()) last_cue_end_s_ = cues.back().end_s;
    for (const Cue& cue : cues)
      SYRINX_TRY_VOID(output_.write(task_.format == TranscriptFormat::kSrt ? srt_cue(++cues_, cue) : vtt_cue(cue)));
    return {};
  }

  Status summary() const {
    const auto figures = [](std::vector<double> times) {
      std::sort(times.begin(), times.end());
      Json json;
      json.set("p50", rounded(percentile(times, 0.5))).set("p99", rounded(percentile(times, 0.99)));
      return json.set("max", times.empty() ? 0.0 : rounded(times.back()));
    };
    Json json;
    json.set("audio_seconds", static_cast<double>(samples_) / kRecognitionRateHz).set("language", stream_.language());
    json.set("chunks", compute_ms_.size()).set("chunk_ms", task_.chunk_ms);
    json.set("compute_ms", figures(compute_ms_)).set("latency_ms", figures(latency_ms_));
    return output_.write(json.dump() + "\n");
  }

  const LiveTask& task_;
  RecognitionStream& stream_;
  const LiveOutput& output_;
  size_t chunk_samples_ = 0;
  std::optional<StreamResampler> resampler_;
  std::vector<float> waiting_;
  uint64_t samples_ = 0;
  Stopwatch since_begin_;
  std::vector<RecognitionEvent> events_;
  std::vector<double> compute_ms_, latency_ms_;  // of each chunk; empty where no line tells them
  size_t cues_ = 0;
  double last_cue_end_s_ = 0;
};

void write_to(int descriptor, const std::string& text) {
  // A terminal that is gone shows nothing.
  if (::write(descriptor, text.data(), text.size()) < 0) return;
}

}  // namespace

LiveOutput live_output(const LiveTask& task) {
  const bool is_screen = is_terminal(STDOUT_FILENO);
  if (is_screen && task.format == TranscriptFormat::kText)
    return {.write =
                [](std::string_view text) {
                  // The line that showed it goes first.
                  return print(kEraseLine + text::printable(text));
                },
            .show =
                [](std::string_view text, size_t stable_bytes) {
                  write_to(STDOUT_FILENO, live_line(text, stable_bytes, terminal_columns(STDOUT_FILENO)));
                }};
  if (is_screen || !is_terminal(STDERR_FILENO))
    return {.write = [](std::string_view text) { return print_words(text); }};
  return {.write =
              [](std::string_view text) {
                write_to(STDERR_FILENO, kEraseLine);
                return print(text);
              },
          .show =
              [](std::string_view text, size_t stable_bytes) {
                write_to(STDERR_FILENO, live_line(text, stable_bytes, terminal_columns(STDERR_FILENO)));
              }};
}

Status transcribe_live(const LiveTask& task, Recogniser& recogniser, const SoundSource& source,
                       const LiveOutput& output) {
  SYRINX_TRY(const std::unique_ptr<RecognitionStream> stream, recogniser.start(task.options));
  LiveTranscript live(task, *stream, output);
  const SoundSink sink{.begin = [&](int rate_hz, std::optional<uint64_t>) { return live.begin(rate_hz); },
                       .add = [&](std::span<const float> samples) { return live.add(samples); },
                       .warn = [](const std::string& sentence) { note("warning: " + sentence); }};
  Status heard = source(sink);
  const bool is_stopped = !heard && heard.error().code == Code::kCancelled;
  SYRINX_TRY_VOID(is_stopped ? live.close() : live.finish());
  return heard;
}

SoundSource microphone(const std::string& device, double seconds) {
  return [=](const SoundSink& sink) -> Status {
    SYRINX_TRY(const std::unique_ptr<Capture> capture,
               Capture::open({.rate_hz = kRecognitionRateHz, .device = device}));
    SYRINX_TRY_VOID(sink.begin(capture->rate_hz(), {}));
    if (is_terminal(STDERR_FILENO)) note(fmt::format("listening to {}; Ctrl-C ends", capture->device()));
    std::vector<float> block(static_cast<size_t>(capture->rate_hz()) * kBlockMs / 1000);
    double heard = 0;  // frames
    while (seconds <= 0 || heard < seconds * capture->rate_hz()) {
      const Result<size_t> got = capture->read(block, cancel_flag());
      if (!got && got.error().code == Code::kCancelled) return {};
      if (!got) return tl::unexpected(got.error());
      heard += static_cast<double>(*got);
      SYRINX_TRY_VOID(sink.add(std::span(block).first(*got)));
    }
    if (capture->lost() > 0)
      note(fmt::format("note: {:.1f} s of audio were lost, as this machine is too slow for them",
                       static_cast<double>(capture->lost()) / capture->rate_hz()));
    return {};
  };
}

}  // namespace syrinx::cli
