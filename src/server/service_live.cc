// Live streams: admission to the slots, and the refusal where there is no room.
#include <cmath>
#include <utility>

#include "server/host/live_admission.h"
#include "server/realtime/ear.h"
#include "server/service.h"

namespace syrinx::server {

// By what the warm-up took.
void Service::measure_load(const std::shared_ptr<const SpeechModel>& speech,
                           const std::shared_ptr<const RecognitionModel>& recognition) {
  if (speech) {
    StreamCost cost;
    cost.note(speech->warm_up_steps(), speech->warm_up_audio_s());
    live_.add(
        speech_slots_, [speech] { return speech->steps(); }, cost);
  }
  if (recognition) {
    StreamCost cost;
    cost.calibrate(recognition->stream_ms() / 1000, 1);
    live_.add(
        recognition_slots_, [recognition] { return recognition->steps(); }, cost);
  }
}

std::optional<HttpError> Service::admit_live(SlotPool& slots, const std::function<bool()>& take) {
  if (slots.free(SlotPool::Work::kLive) == 0) return all_busy(slots);
  bool is_taken = false;
  const auto refused = live_.admit(slots, [&] { return is_taken = take(); });
  if (refused) return overloaded(slots, *refused);
  return is_taken ? std::nullopt : std::optional(all_busy(slots));
}

HttpError Service::overloaded(const SlotPool& slots, const LiveAdmission::Refusal& refused) {
  const int wait_s = static_cast<int>(std::ceil(refused.wait_s));
  if (log_ != nullptr && settings_.log != "error") {
    Json line;
    line.set("time", utc_now());
    line.set("event", "refused");
    line.set("reason", "overloaded");
    line.set("kind", &slots == &speech_slots_ ? "speech" : "recognition");
    line.set("live_streams", refused.streams);
    line.set("live_load", std::round(refused.load * 1000) / 1000);
    line.set("retry_after_s", wait_s);
    log_->write(line.dump());
  }
  HttpError error = unavailable(
      "overloaded", fmt::format("the {} live streams under way leave no room for another that would be on time; ask "
                                "again in about {} s, or another server",
                                refused.streams, wait_s));
  error.retry_after_s = wait_s;
  return error;
}

bool Service::has_speech_room() {
  return speech_slots_.free(SlotPool::Work::kLive) > 0 && live_.has_room(speech_slots_);
}

std::optional<HttpError> Service::start_live(SlotPool& slots, SlotPool::Job job, SlotPool::Done done) {
  return admit_live(slots, [&] { return slots.try_start(std::move(job), std::move(done)); });
}

std::optional<HttpError> Service::start_live(SlotPool& slots, const std::shared_ptr<SlotJob>& job) {
  return start_live(
      slots, [job](SlotWatch& watch) { job->run(watch); }, [job] { job->end(); });
}

tl::expected<SlotPool::Lease, HttpError> Service::take_speech_slot() {
  std::optional<SlotPool::Lease> slot;
  auto refused = admit_live(speech_slots_, [&] {
    if (auto taken = speech_slots_.try_take()) slot.emplace(std::move(*taken));
    return slot.has_value();
  });
  if (refused) return tl::unexpected(std::move(*refused));
  return std::move(*slot);
}

std::optional<HttpError> Service::start_ear(const std::shared_ptr<realtime::Ear>& ear) {
  return start_live(
      recognition_slots_, [ear](SlotWatch& watch) { ear->run(watch); }, [] {});
}

}  // namespace syrinx::server
