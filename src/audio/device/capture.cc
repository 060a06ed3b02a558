#include "audio/device/capture.h"

#include <portaudio.h>

#include <chrono>
#include <cmath>
#include <thread>
#include <utility>

#include "audio/device/sound_system.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/spsc_queue.h"

namespace syrinx {
namespace {

constexpr auto kPoll = std::chrono::milliseconds(2);

}  // namespace

struct Capture::Impl {
  explicit Impl(const CaptureOptions& options) : stall_ms(options.stall_ms), rate_hz(options.rate_hz) {}
  ~Impl() {
    if (stream == nullptr) return;
    Pa_AbortStream(stream);
    Pa_CloseStream(stream);
  }

  // The sound system's thread: nothing here waits or allocates.
  static int on_sound(const void* in, void*, unsigned long frames, const PaStreamCallbackTimeInfo*,
                      PaStreamCallbackFlags, void* client) {
    auto& self = *static_cast<Impl*>(client);
    if (in == nullptr) return paContinue;
    const std::span<const float> came(static_cast<const float*>(in), frames);
    const size_t taken = self.queue->push_some(came);
    if (taken < came.size()) self.lost.fetch_add(came.size() - taken, std::memory_order_relaxed);
    return paContinue;
  }

  PaError open_at(int rate, double queue_seconds, const PaStreamParameters& parameters) {
    rate_hz = rate;
    queue = std::make_unique<SpscQueue<float>>(static_cast<size_t>(std::ceil(queue_seconds * rate)));
    return Pa_OpenStream(&stream, &parameters, nullptr, rate, paFramesPerBufferUnspecified, paNoFlag, &Impl::on_sound,
                         this);
  }
  Status start(const CaptureOptions& options);

  const double stall_ms;
  int rate_hz;
  std::unique_ptr<SpscQueue<float>> queue;
  std::unique_ptr<SoundSystem> system;  // outlives the stream
  PaStream* stream = nullptr;
  std::string name;
  std::atomic<uint64_t> lost{0};
  bool gone = false;  // the device; its thread may wait in the kernel for ever
};

Status Capture::Impl::start(const CaptureOptions& options) {
  SYRINX_TRY(system, SoundSystem::start());
  SYRINX_TRY(const PaDeviceIndex device, system->find_device(options.device, SoundDirection::kInput));
  const PaDeviceInfo& info = *Pa_GetDeviceInfo(device);
  name = info.name;
  PaStreamParameters parameters{};
  parameters.device = device;
  parameters.channelCount = 1;
  parameters.sampleFormat = paFloat32;
  parameters.suggestedLatency = info.defaultLowInputLatency;
  PaError error = open_at(options.rate_hz, options.queue_seconds, parameters);
  const int own_rate_hz = static_cast<int>(info.defaultSampleRate);
  if (error == paInvalidSampleRate && own_rate_hz > 0) error = open_at(own_rate_hz, options.queue_seconds, parameters);
  if (error == paNoError) error = Pa_StartStream(stream);
  if (error != paNoError)
    return fail(Code::kUnavailable, "the microphone '{}' does not open: {}", name, Pa_GetErrorText(error));
  return {};
}

Capture::Capture(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
// Ending a stream waits for its thread: with a device that is gone, that and all it uses is left to the process's end.
Capture::~Capture() {
  if (impl_->gone) static_cast<void>(impl_.release());
}

Result<std::unique_ptr<Capture>> Capture::open(const CaptureOptions& options) {
  SYRINX_CHECK(options.rate_hz > 0 && options.queue_seconds > 0 && options.queue_seconds < 3600);
  auto impl = std::make_unique<Impl>(options);
  SYRINX_TRY_VOID(impl->start(options));
  return std::unique_ptr<Capture>(new Capture(std::move(impl)));
}

Result<size_t> Capture::read(std::span<float> samples, const std::atomic<bool>& cancel) {
  SYRINX_CHECK(!samples.empty());
  const Stopwatch waited;
  for (;;) {
    if (cancel.load(std::memory_order_relaxed)) return fail(Code::kCancelled, "stopped while listening");
    if (const size_t got = impl_->queue->pop_some(samples); got > 0) return got;
    if (Pa_IsStreamActive(impl_->stream) != 1 || waited.elapsed_ms() > impl_->stall_ms) {
      impl_->gone = true;
      return fail(Code::kIo, "the microphone '{}' has stopped giving sound; is it still plugged in?", impl_->name);
    }
    std::this_thread::sleep_for(kPoll);
  }
}

int Capture::rate_hz() const { return impl_->rate_hz; }
const std::string& Capture::device() const { return impl_->name; }
uint64_t Capture::lost() const { return impl_->lost.load(std::memory_order_relaxed); }
double Capture::waiting_seconds() const { return static_cast<double>(impl_->queue->size()) / impl_->rate_hz; }

}  // namespace syrinx
