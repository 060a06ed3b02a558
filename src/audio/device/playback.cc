#include "audio/device/playback.h"

#include <portaudio.h>

#include <algorithm>
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

constexpr auto kPoll = std::chrono::milliseconds(5);
// A device that takes nothing for so long is taken for dead.
constexpr double kStallMs = 3000;

}  // namespace

struct Playback::Impl {
  explicit Impl(const PlaybackOptions& options)
      : rate_hz(options.rate_hz), queue(static_cast<size_t>(std::ceil(options.queue_seconds * options.rate_hz))) {}
  ~Impl() {
    if (stream != nullptr) {
      Pa_AbortStream(stream);
      Pa_CloseStream(stream);
    }
  }

  // The sound system's thread: nothing here waits or allocates.
  static int on_need(const void*, void* out, unsigned long frames, const PaStreamCallbackTimeInfo*,
                     PaStreamCallbackFlags, void* client) {
    auto& self = *static_cast<Impl*>(client);
    const std::span<float> wanted(static_cast<float*>(out), frames);
    // Read before the queue: what was pushed before it was set is then in the queue or already taken.
    const bool ending = self.ending.load(std::memory_order_acquire);
    const size_t got = self.queue.pop_some(wanted);
    std::fill(wanted.begin() + static_cast<std::ptrdiff_t>(got), wanted.end(), 0.0f);
    if (got == wanted.size()) {
      self.dry = false;
      return paContinue;
    }
    if (ending) return paComplete;
    // Dry from the start is no gap: nothing was playing yet.
    if (!std::exchange(self.dry, true)) self.gaps.fetch_add(1, std::memory_order_relaxed);
    return paContinue;
  }

  Status start(const PlaybackOptions& options);
  // Waits until `done`, a cancel, or a device that stands still.
  template <class Done>
  Status wait(const std::atomic<bool>& cancel, Done done);

  const int rate_hz;
  SpscQueue<float> queue;
  std::unique_ptr<SoundSystem> system;  // outlives the stream
  PaStream* stream = nullptr;
  bool dry = true;  // the sound system's thread only
  std::atomic<bool> ending{false};
  std::atomic<uint64_t> gaps{0};
};

Status Playback::Impl::start(const PlaybackOptions& options) {
  SYRINX_TRY(system, SoundSystem::start());
  SYRINX_TRY(const PaDeviceIndex device, system->find_device(options.device, SoundDirection::kOutput));
  PaStreamParameters parameters{};
  parameters.device = device;
  parameters.channelCount = 1;
  parameters.sampleFormat = paFloat32;
  parameters.suggestedLatency = Pa_GetDeviceInfo(device)->defaultLowOutputLatency;
  PaError error = Pa_OpenStream(&stream, nullptr, &parameters, rate_hz, paFramesPerBufferUnspecified, paNoFlag,
                                &Impl::on_need, this);
  if (error == paNoError) error = Pa_StartStream(stream);
  if (error != paNoError) {
    return fail(Code::kUnavailable, "the sound output '{}' does not open at {} Hz: {}", Pa_GetDeviceInfo(device)->name,
                rate_hz, Pa_GetErrorText(error));
  }
  return {};
}

template <class Done>
Status Playback::Impl::wait(const std::atomic<bool>& cancel, Done done) {
  Stopwatch still;
  size_t left = queue.size();
  while (!done()) {
    if (cancel.load(std::memory_order_relaxed)) return fail(Code::kCancelled, "stopped while playing");
    std::this_thread::sleep_for(kPoll);
    const size_t now = queue.size();
    if (now != left) still.restart();
    left = now;
    if (still.elapsed_ms() > kStallMs) return fail(Code::kIo, "the sound output has stopped taking sound");
  }
  return {};
}

Playback::Playback(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Playback::~Playback() = default;

Result<std::unique_ptr<Playback>> Playback::open(const PlaybackOptions& options) {
  SYRINX_CHECK(options.rate_hz > 0 && options.queue_seconds > 0 && options.queue_seconds < 3600);
  auto impl = std::make_unique<Impl>(options);
  SYRINX_TRY_VOID(impl->start(options));
  return std::unique_ptr<Playback>(new Playback(std::move(impl)));
}

size_t Playback::push(std::span<const float> samples) { return impl_->queue.push_some(samples); }

Status Playback::play(std::span<const float> samples, const std::atomic<bool>& cancel) {
  return impl_->wait(cancel, [&] {
    samples = samples.subspan(push(samples));
    return samples.empty();
  });
}

Status Playback::drain(const std::atomic<bool>& cancel) {
  impl_->ending.store(true, std::memory_order_release);
  SYRINX_TRY_VOID(impl_->wait(cancel, [&] { return Pa_IsStreamActive(impl_->stream) != 1; }));
  // The device still holds its own buffer; stopping waits for it.
  Pa_StopStream(impl_->stream);
  return {};
}

double Playback::queued_seconds() const { return static_cast<double>(impl_->queue.size()) / impl_->rate_hz; }
uint64_t Playback::gaps() const { return impl_->gaps.load(std::memory_order_relaxed); }

}  // namespace syrinx
