#include "bench/suite/stream_deadlines.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <latch>
#include <memory>
#include <mutex>
#include <random>
#include <span>
#include <string>

#include "base/signals.h"
#include "engine/families/transducer/transducer_frames.h"

namespace syrinx::bench {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr size_t kKeptLabels = 4096;  // of a stream; older ones are forgotten as at the end of an utterance

// One stream's chunks, and how long each took.
class PacedStream {
 public:
  PacedStream(const transducer::Model& model, ChunkPool& pool, std::span<const float> sound, size_t chunk_samples,
              size_t first)
      : sound_(sound),
        chunk_samples_(chunk_samples),
        at_(first % (sound.size() / chunk_samples)),
        track_(*model.decoder()),
        source_(model, pool, track_) {
    track_.found.reserve(2 * kKeptLabels);
  }

  void chunk() {
    const size_t before = track_.found.size();
    source_.push(sound_.subspan(at_ * chunk_samples_, chunk_samples_), [](View<const float, 2>) {});
    labels_ += track_.found.size() - before;
    if (track_.found.size() > kKeptLabels) track_.found.clear();
    at_ = (at_ + 1) % (sound_.size() / chunk_samples_);
  }
  // `chunks` of them, the first of which is there at `begin`.
  void run(SteadyClock::time_point begin, std::chrono::nanoseconds chunk_time, size_t chunks) {
    labels_ = 0;
    ms_.reserve(chunks);
    for (size_t i = 0; i < chunks && !cancel_requested(); ++i) {
      const SteadyClock::time_point there = begin + static_cast<int64_t>(i) * chunk_time;
      std::this_thread::sleep_until(there);
      source_.sound_came(std::chrono::nanoseconds(there.time_since_epoch()).count());
      chunk();
      ms_.push_back(std::chrono::duration<double, std::milli>(SteadyClock::now() - there).count());
    }
  }
  const std::vector<double>& ms() const { return ms_; }
  size_t labels() const { return labels_; }

 private:
  const std::span<const float> sound_;
  const size_t chunk_samples_;
  size_t at_, labels_ = 0;
  LabelTrack track_;
  ChunkedFrames source_;
  std::vector<double> ms_;
};

std::vector<float> noise(size_t samples) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal(0.0f, 0.1f);
  std::vector<float> out(samples);
  for (float& sample : out) sample = normal(random);
  return out;
}

// A thread for each stream: all fill their attention, then wait for begin().
class StreamThreads {
 public:
  StreamThreads(const DeadlineWork& work, std::span<const std::unique_ptr<PacedStream>> streams, size_t known)
      : streams_(streams), filled_(static_cast<ptrdiff_t>(streams.size())) {
    threads_.reserve(streams.size());
    try {
      for (; made_ < streams.size(); ++made_)
        threads_.push_back(work.make_thread([this, n = made_, known] { run(n, known); }));
    } catch (const std::exception&) {  // neither a thread nor memory for one
      abandon();
    }
  }
  ~StreamThreads() { abandon(); }
  StreamThreads(const StreamThreads&) = delete;
  StreamThreads& operator=(const StreamThreads&) = delete;

  // How many there could be: where they are fewer than the streams, none of them runs any more.
  size_t made() const { return made_; }
  void wait_until_filled() { filled_.wait(); }
  // kUnavailable when one of them has thrown: memory lacks.
  Status status() const {
    const std::lock_guard lock(mutex_);
    if (failure_ == nullptr) return {};
    std::string what = "it threw no exception of the library";
    try {
      std::rethrow_exception(failure_);
    } catch (const std::exception& thrown) {
      what = thrown.what();
    } catch (...) {
    }
    return fail(Code::kUnavailable, "{} streams at once could not be heard: {}; ask for fewer", streams_.size(), what);
  }
  // The first stream's first chunk is there at `at`, the others' within the chunk's time; returns when all have ended.
  void run_from(SteadyClock::time_point at, std::chrono::nanoseconds chunk_time, size_t chunks) {
    begin_ = at;
    chunk_time_ = chunk_time;
    chunks_ = chunks;
    go_.count_down();
    join();
  }

 private:
  void run(size_t n, size_t known) {
    guarded([&] {
      for (size_t i = 0; i < known && !cancel_requested() && !abandoned_; ++i) streams_[n]->chunk();
    });
    filled_.count_down();
    go_.wait();
    const auto place = static_cast<int64_t>(n), all = static_cast<int64_t>(streams_.size());
    guarded([&] { streams_[n]->run(begin_ + chunk_time_ * place / all, chunk_time_, chunks_); });
  }
  // A stream that throws, for want of memory, ends; the trial is worth nothing then.
  template <class Work>
  void guarded(const Work& work) {
    try {
      work();
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (failure_ == nullptr) failure_ = std::current_exception();
    }
  }
  void abandon() {
    if (threads_.empty()) return;
    abandoned_ = true;
    go_.count_down();
    join();
  }
  void join() {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

  const std::span<const std::unique_ptr<PacedStream>> streams_;
  std::latch filled_, go_{1};
  std::atomic<bool> abandoned_{false};
  mutable std::mutex mutex_;
  std::exception_ptr failure_;
  // Written before go_ opens.
  SteadyClock::time_point begin_;
  std::chrono::nanoseconds chunk_time_{0};
  size_t chunks_ = 0;
  size_t made_ = 0;
  std::vector<std::thread> threads_;
};

}  // namespace

Result<DeadlineTrial> run_streams(const DeadlineWork& work, size_t streams) {
  const transducer::Model& model = work.model;
  nn::Runner runner(work.team);
  Scheduler scheduler;
  StepQueue queue(scheduler);
  ChunkPool pool(model, runner, queue, work.context, work.options, streams);
  pool.warm_up(model);
  const size_t samples = chunk_mels(model.config().encoder, work.context) * model.config().features.hop;
  const double chunk_s = static_cast<double>(samples) / model.config().features.rate_hz;
  const auto chunk_time = std::chrono::nanoseconds(static_cast<int64_t>(chunk_s * 1e9));
  const auto chunks = static_cast<size_t>(std::max(1.0, work.seconds / chunk_s));
  const std::vector<float> sound = noise(64 * samples);
  std::vector<std::unique_ptr<PacedStream>> paced;
  for (size_t n = 0; n < streams; ++n)
    paced.push_back(std::make_unique<PacedStream>(model, pool, sound, samples, 7 * n));
  // The first chunk lacks a few samples of its windows, so each is complete a little behind its own time; that is the
  // same for all of them.
  const size_t known = static_cast<size_t>(work.context.left) / pool.chunk_frames() + 2;
  StreamThreads threads(work, paced, known);
  if (threads.made() < streams)
    return fail(Code::kUnavailable, "{} streams need a thread each and the system makes no more than {}; ask for fewer",
                streams, threads.made());
  threads.wait_until_filled();
  SYRINX_TRY_VOID(threads.status());
  const uint64_t steps = pool.steps(), heard = pool.chunks();
  threads.run_from(SteadyClock::now() + chunk_time, chunk_time, chunks);
  SYRINX_TRY_VOID(threads.status());
  if (cancel_requested()) return fail(Code::kCancelled, "stopped");
  DeadlineTrial trial{.streams = streams};
  size_t labels = 0;
  for (const auto& stream : paced) {
    labels += stream->labels();
    for (const double ms : stream->ms()) {
      trial.ms.add(ms);
      trial.misses += ms > chunk_s * 1e3 ? 1 : 0;
    }
  }
  trial.ms.sort();
  trial.step_chunks = static_cast<double>(pool.chunks() - heard) / static_cast<double>(pool.steps() - steps);
  trial.labels_per_s = static_cast<double>(labels) / (chunk_s * static_cast<double>(chunks * streams));
  return trial;
}

Result<std::vector<DeadlineTrial>> find_streams(const DeadlineWork& work, size_t most) {
  std::vector<DeadlineTrial> trials;
  size_t good = 0, bad = most + 1;
  while (bad - good > 1) {
    const size_t next = bad > most ? std::min(most, std::max<size_t>(1, 2 * good)) : (good + bad) / 2;
    SYRINX_TRY(DeadlineTrial trial, run_streams(work, next));
    (trial.misses == 0 ? good : bad) = next;
    trials.push_back(std::move(trial));
  }
  return trials;
}

}  // namespace syrinx::bench
