// Live streams: admission to the slots, and the refusal where there is no room.
#include <cmath>
#include <utility>

#include "server/host/live_admission.h"
#include "server/realtime/ear.h"
#include "server/service.h"

namespace syrinx::server {

// By what the warm-up took.  The admission lets go of an engine before it is destroyed.
void Service::measure_load(const Module& module, const Models& models) {
  StreamCost cost;
  if (const SpeechModel* const speech = models.speech.get()) {
    cost.note(speech->warm_up_steps(), speech->warm_up_audio_s());
    live_.add(
        module.slots, [speech] { return speech->steps(); }, cost);
  }
  if (const RecognitionModel* const recognition = models.recognition.get()) {
    cost.calibrate(recognition->stream_ms() / 1000, 1);
    live_.add(
        module.slots, [recognition] { return recognition->steps(); }, cost);
  }
}

std::optional<HttpError> Service::admit_live(Module& module, const std::function<bool()>& take) {
  const SlotPool& slots = module.slots;
  if (slots.free(SlotPool::Work::kLive) == 0) return all_busy(slots);
  bool is_taken = false;
  const auto refused = live_.admit(slots, [&] { return is_taken = take(); });
  if (refused) return overloaded(module, *refused);
  return is_taken ? std::nullopt : std::optional(all_busy(slots));
}

HttpError Service::overloaded(const Module& module, const LiveAdmission::Refusal& refused) {
  const int wait_s = static_cast<int>(std::ceil(refused.wait_s));
  if (log_ != nullptr && settings_.log != "error") {
    Json line;
    line.set("time", utc_now());
    line.set("event", "refused");
    line.set("reason", "overloaded");
    line.set("kind", kind_name(module.plan.kind));
    line.set("model", module.plan.id);
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

bool Service::has_room(const Module& module) {
  return module.slots.free(SlotPool::Work::kLive) > 0 && live_.has_room(module.slots);
}

std::optional<HttpError> Service::start_live(Module& module, SlotPool::Job job, SlotPool::Done done) {
  return admit_live(module, [&] { return module.slots.try_start(std::move(job), std::move(done)); });
}

std::optional<HttpError> Service::start_live(Module& module, const std::shared_ptr<SlotJob>& job) {
  return start_live(
      module, [job](SlotWatch& watch) { job->run(watch); }, [job] { job->end(); });
}

tl::expected<SlotPool::Lease, HttpError> Service::take_slot(Module* module) {
  if (module == nullptr) return tl::unexpected(no_module(ModuleKind::kSpeech, ""));
  std::optional<SlotPool::Lease> slot;
  auto refused = admit_live(*module, [&] {
    if (auto taken = module->slots.try_take()) slot.emplace(std::move(*taken));
    return slot.has_value();
  });
  if (refused) return tl::unexpected(std::move(*refused));
  return std::move(*slot);
}

std::optional<HttpError> Service::start_ear(Module* module, const std::shared_ptr<realtime::Ear>& ear) {
  if (module == nullptr) return no_module(ModuleKind::kRecognition, "");
  return start_live(
      *module, [ear](SlotWatch& watch) { ear->run(watch); }, [] {});
}

}  // namespace syrinx::server
