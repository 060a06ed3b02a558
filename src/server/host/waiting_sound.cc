#include "server/host/waiting_sound.h"

#include <algorithm>
#include <utility>

namespace syrinx::server {

WaitingSound::WaitingSound(std::string model, const JobReports& reports, const Clock& clock)
    : model_(std::move(model)), reports_(reports), clock_(clock) {}

void WaitingSound::count(int64_t samples) {
  waiting_.fetch_add(static_cast<size_t>(samples), std::memory_order_relaxed);
  if (reports_.waiting_samples != nullptr) reports_.waiting_samples->fetch_add(samples, std::memory_order_relaxed);
}

// Behind the call, in which the stream waits for its turn: before it nobody knows how long that will take.
Status WaitingSound::push(RecognitionStream& stream, std::span<const float> sound, int64_t came_ns,
                          std::vector<RecognitionEvent>& events) {
  stream.sound_came(came_ns);
  SYRINX_TRY_VOID(stream.push(sound, events));
  note_wait(came_ns);
  heard_ += sound.size();
  if (heard_ >= kObservedSamples) observe();
  return {};
}

Status WaitingSound::finish(RecognitionStream& stream, int64_t came_ns, std::vector<RecognitionEvent>& events) {
  stream.sound_came(came_ns);
  SYRINX_TRY_VOID(stream.finish(events));
  note_wait(came_ns);
  observe();
  return {};
}

void WaitingSound::note_wait(int64_t came_ns) {
  longest_s_ = std::max(longest_s_, static_cast<double>(clock_.now_ns() - came_ns) * 1e-9);
}

void WaitingSound::observe() {
  reports_.metrics.observe("syrinx_queue_delay_seconds", {{"model", model_}}, longest_s_);
  heard_ = 0;
  longest_s_ = 0;
}

}  // namespace syrinx::server
