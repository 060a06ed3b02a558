#include "cli/stream_deadlines.h"

#include <algorithm>
#include <chrono>
#include <latch>
#include <random>
#include <thread>

#include "base/signals.h"
#include "engine/transducer_frames.h"

namespace syrinx::cli {
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

}  // namespace

Result<DeadlineTrial> run_streams(const transducer::Model& model, transducer::AttentionContext context,
                                  const transducer::GreedyOptions& options, ThreadTeam& team, size_t streams,
                                  double seconds) {
  nn::Runner runner(team);
  Turns turns;
  ChunkPool pool(model, runner, turns, context, options, streams);
  pool.warm_up(model);
  const size_t samples = chunk_mels(model.config().encoder, context) * model.config().features.hop;
  const double chunk_s = static_cast<double>(samples) / model.config().features.rate_hz;
  const auto chunk_time = std::chrono::nanoseconds(static_cast<int64_t>(chunk_s * 1e9));
  const auto chunks = static_cast<size_t>(std::max(1.0, seconds / chunk_s));
  const std::vector<float> sound = noise(64 * samples);
  std::vector<std::unique_ptr<PacedStream>> paced;
  for (size_t n = 0; n < streams; ++n)
    paced.push_back(std::make_unique<PacedStream>(model, pool, sound, samples, 7 * n));
  // The first chunk lacks a few samples of its windows, so each is complete a little behind its own time; that is the
  // same for all of them.
  const size_t known = static_cast<size_t>(context.left) / pool.chunk_frames() + 2;
  std::latch full(static_cast<ptrdiff_t>(streams) + 1), go(1);
  SteadyClock::time_point begin;
  std::vector<std::thread> threads;
  for (size_t n = 0; n < streams; ++n) {
    threads.emplace_back([&, n] {
      for (size_t i = 0; i < known; ++i) paced[n]->chunk();
      full.count_down();
      go.wait();
      paced[n]->run(begin + chunk_time * static_cast<int64_t>(n) / static_cast<int64_t>(streams), chunk_time, chunks);
    });
  }
  full.arrive_and_wait();
  const uint64_t steps = pool.steps(), heard = pool.chunks();
  begin = SteadyClock::now() + chunk_time;
  go.count_down();
  for (std::thread& thread : threads) thread.join();
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

Result<std::vector<DeadlineTrial>> find_streams(const transducer::Model& model, transducer::AttentionContext context,
                                                const transducer::GreedyOptions& options, ThreadTeam& team, size_t most,
                                                double seconds) {
  std::vector<DeadlineTrial> trials;
  size_t good = 0, bad = most + 1;
  while (bad - good > 1) {
    const size_t next = bad > most ? std::min(most, std::max<size_t>(1, 2 * good)) : (good + bad) / 2;
    SYRINX_TRY(DeadlineTrial trial, run_streams(model, context, options, team, next, seconds));
    (trial.misses == 0 ? good : bad) = next;
    trials.push_back(std::move(trial));
  }
  return trials;
}

}  // namespace syrinx::cli
