// A recogniser that hears one word wherever a sound is loud: for tests of what stands around recognisers.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/recognition/recogniser.h"

namespace syrinx {

// Loud parts that are less than 0.1 s apart are one.
inline std::vector<std::pair<double, double>> loud_parts(std::span<const float> sound) {
  std::vector<std::pair<double, double>> parts;
  for (size_t i = 0; i < sound.size(); ++i) {
    if (std::abs(sound[i]) < 0.05f) continue;
    const double at = static_cast<double>(i) / kRecognitionRateHz;
    if (parts.empty() || at - parts.back().second > 0.1) parts.emplace_back(at, at);
    parts.back().second = at;
  }
  return parts;
}

inline TranscriptSegment fake_segment(std::pair<double, double> part, const std::string& word = "beep") {
  return {.text = word,
          .start_s = part.first,
          .end_s = part.second,
          .confidence = 0.5f,
          .tokens = {7},
          .words = {{word, part.first, part.second, 0.5f}}};
}

// Tells a part while it lasts, and finally once 0.1 s of silence follow.
class FakeStream final : public RecognitionStream {
 public:
  explicit FakeStream(const std::atomic<bool>* still = nullptr, bool breaks = false,
                      std::vector<int64_t>* came_ns = nullptr, bool tells_late = false,
                      std::atomic<int>* pushes = nullptr, std::vector<float>* samples = nullptr,
                      std::string word = "beep", std::function<bool()> is_wanted = {})
      : still_(still),
        breaks_(breaks),
        came_ns_(came_ns),
        tells_late_(tells_late),
        pushes_(pushes),
        samples_(samples),
        word_(std::move(word)),
        is_wanted_(std::move(is_wanted)) {}
  Status push(std::span<const float> samples, std::vector<RecognitionEvent>& events) override {
    const int64_t came_ns = take_arrival();
    if (came_ns_ != nullptr) came_ns_->push_back(came_ns);
    if (pushes_ != nullptr) ++*pushes_;
    while (still_ != nullptr && *still_) {
      if (is_wanted_ && !is_wanted_()) return fail(Code::kCancelled, "left");
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    if (breaks_) throw 1;
    if (samples_ != nullptr) samples_->insert(samples_->end(), samples.begin(), samples.end());
    heard_.insert(heard_.end(), samples.begin(), samples.end());
    const auto parts = loud_parts(heard_);
    if (parts.size() <= done_ || tells_late_) return {};
    const bool is_over = static_cast<double>(heard_.size()) / kRecognitionRateHz - parts[done_].second > 0.1;
    tell(parts[done_], is_over, events);
    return {};
  }
  Status finish(std::vector<RecognitionEvent>& events) override {
    if (pushes_ != nullptr) ++*pushes_;
    if (breaks_) throw 1;
    const auto parts = loud_parts(heard_);
    if (parts.size() > done_) tell(parts[done_], true, events);
    return {};
  }
  Status commit(std::vector<RecognitionEvent>&) override { return {}; }
  const std::string& language() const override { return language_; }

 private:
  void tell(std::pair<double, double> part, bool is_final, std::vector<RecognitionEvent>& events) {
    events.push_back({.segment = done_,
                      .is_final = is_final,
                      .result = fake_segment(part, word_),
                      .stable_bytes = is_final ? word_.size() : size_t{2},
                      .latency_ms = 0});
    if (is_final) ++done_;
  }
  const std::atomic<bool>* const still_;
  const bool breaks_;
  std::vector<int64_t>* const came_ns_;
  const bool tells_late_;
  std::atomic<int>* const pushes_;
  std::vector<float>* const samples_;
  const std::string word_;
  const std::function<bool()> is_wanted_;
  std::vector<float> heard_;
  size_t done_ = 0;
  std::string language_ = "en";
};

class FakeRecogniser : public Recogniser {
 public:
  Result<Transcript> transcribe(std::span<const float> samples, const TranscribeOptions& options,
                                const Progress& progress) override {
    const auto is_left = [&] { return options.is_wanted && !options.is_wanted(); };
    ++held;
    while (holds && !is_left()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    --held;
    if (is_left()) return fail(Code::kCancelled, "left");
    const std::lock_guard lock(one_at_a_time_);
    ++calls;
    longest = std::max(longest, samples.size());
    last_language = options.language;
    const double seconds = static_cast<double>(samples.size()) / kRecognitionRateHz;
    if (progress && !progress(seconds)) return fail(Code::kCancelled, "stopped");
    if (!fault.empty()) return fail(Code::kInternal, "{}", fault);
    Transcript transcript{.language = "en", .audio_s = seconds, .segments = {}};
    for (const auto& part : loud_parts(samples)) add_segment(fake_segment(part, word), transcript.segments);
    size_t told = 0;
    tell_heard(options, transcript, told);
    if (throws_at > 0 && transcript.segments.size() == throws_at) throw std::bad_alloc();
    return transcript;
  }
  Result<std::unique_ptr<RecognitionStream>> start(const TranscribeOptions& options) override {
    SYRINX_TRY_VOID(check_stream(options));
    threshold = options.voice.threshold.value_or(0);
    {
      const std::scoped_lock lock(prompt_mutex_);  // streams start at the same time
      prompt = options.knobs.text("prompt").value_or("");
    }
    const bool starts = start_fault.empty();
    ++streams;  // who has seen it may set the next one's fault
    if (!starts) return fail(Code::kInternal, "{}", start_fault);
    return std::make_unique<FakeStream>(&still, breaks, &came_ns, tells_late, &pushes, &samples, word,
                                        options.is_wanted);
  }
  Status check_stream(const TranscribeOptions& options) const override {
    if (options.language == "xx") return fail(Code::kInvalidArgument, "'fake' was not taught 'xx'");
    if (!options.language.empty() && known_languages.empty()) return fail(Code::kUnsupported, "it is found out");
    if (options.knobs.has("boost") && !favours_words) return fail(Code::kUnsupported, "no words are favoured");
    if (options.voice.any() && vad == nullptr) return fail(Code::kNotFound, "there is no voice activity model");
    return {};
  }
  bool hears_streams_as_recordings() const override { return streams_are_whole; }
  const std::string& name() const override { return name_; }
  Precision precision() const override { return Precision::kF32; }
  int threads() const override { return 1; }
  std::vector<std::string> languages() const override { return known_languages; }
  std::shared_ptr<const silero::SileroVad> voice_activity() const override { return vad; }
  Frames frames_of(size_t samples) const override { return {.features = samples / 160, .encoded = samples / 1280}; }
  double load_ms() const override { return 0; }
  double warm_up_ms() const override { return 0; }
  StepFigures steps() const override { return figures; }
  size_t waiting() const override { return waits; }

  size_t throws_at = 0;  // so many beeps; 0: never
  int calls = 0;
  std::atomic<int> streams{0};     // started
  std::atomic<int> pushes{0};      // begun, and ends of streams
  std::atomic<bool> still{false};  // while it is, streams hear nothing and wait
  std::atomic<bool> holds{false};  // while it is, recordings wait, so many of them
  std::atomic<int> held{0};
  std::string prompt;                // of the stream that was started last, before `streams` counts it
  std::atomic<double> threshold{0};  // of voice, in the stream that was started last, where it was named
  std::vector<int64_t> came_ns;      // of what was pushed into them, one after the other
  std::vector<float> samples;        // that, where it broke nothing
  std::shared_ptr<const silero::SileroVad> vad;
  std::string start_fault;  // of every stream
  std::string fault;        // of every recording
  std::string word = "beep";
  bool breaks = false;      // streams throw what is no exception
  bool tells_late = false;  // streams tell at their end alone, of one loud part
  bool favours_words = true;
  bool streams_are_whole = false;  // as recordings are
  size_t longest = 0;
  std::string last_language;
  std::vector<std::string> known_languages = {"en", "de"};
  StepFigures figures;
  size_t waits = 0;
  bool is_one_segment = false;  // a recording, whatever its pauses

 private:
  void add_segment(TranscriptSegment segment, std::vector<TranscriptSegment>& segments) const {
    if (!is_one_segment || segments.empty()) return segments.push_back(std::move(segment));
    segments.back().text += ' ' + segment.text;
    segments.back().end_s = segment.end_s;
    segments.back().words.push_back(segment.words.front());
  }

  std::string name_ = "fake";
  std::mutex one_at_a_time_, prompt_mutex_;
};

// Beeps of 0.2 s that begin at these seconds, in a sound that is silent otherwise.
inline std::vector<float> beeps(const std::vector<double>& at_s, double length_s, int rate_hz) {
  std::vector<float> sound(static_cast<size_t>(length_s * rate_hz));
  for (const double begin : at_s)
    for (size_t i = 0; i < static_cast<size_t>(0.2 * rate_hz); ++i)
      sound[static_cast<size_t>(begin * rate_hz) + i] = 0.5f * std::sin(0.1f * static_cast<float>(i) + 1);
  return sound;
}

}  // namespace syrinx
