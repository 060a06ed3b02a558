// A fixed number of threads that each make one answer at a time.  A request is refused at once while all are busy; none
// waits in line, so what has begun is never slowed by what has not.  Some may be kept for live work: batch work, which
// holds a slot for minutes, never takes all of them.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace syrinx::server {

// The state of one slot: whether its work is stuck, and what it needs of the engine.
class SlotWatch {
 public:
  explicit SlotWatch(const Clock& clock) : clock_(clock) {}
  // Around each call that waits for the engine.
  void wait_begins() { since_ns_.store(clock_.now_ns(), std::memory_order_relaxed); }
  void wait_ends();
  // The engine has given something, and more is waited for.
  void wait_goes_on() {
    wait_ends();
    wait_begins();
  }
  // Seconds of audio that the engine has made, or heard, for live work of the slot; of other work nothing is counted.
  void note_audio(double seconds);
  // Whether the work needs the engine now: not while far more audio is made than could have been played and the
  // client takes no more of it.
  bool is_pacing(int64_t now_ns) const;
  double audio_s() const { return static_cast<double>(audio_ns_.load(std::memory_order_relaxed)) * 1e-9; }  // in all
  void begin_work(bool is_live);  // of a new owner of the slot
  double waiting_s() const;       // 0: not waiting
  std::optional<int64_t> waits_since_ns() const;
  int64_t last_given_ns() const { return given_ns_.load(std::memory_order_relaxed); }  // INT64_MIN: never

 private:
  static constexpr int64_t kIdle = INT64_MIN;
  const Clock& clock_;
  // A stream needs nothing that is so far ahead of playback and has had no audio for so long, the longest piece of
  // text: one with long pieces, or a client that reads in blocks, has none for as long as a piece or a block is played.
  static constexpr int64_t kAheadNs = 2'000'000'000, kQuietNs = 15'000'000'000;
  std::atomic<bool> is_live_{true};
  std::atomic<int64_t> since_ns_{kIdle}, given_ns_{INT64_MIN};
  std::atomic<int64_t> audio_ns_{0};                           // of all owners
  std::atomic<int64_t> before_ns_{0};                          // of those before
  std::atomic<int64_t> first_ns_{kIdle}, last_ns_{INT64_MIN};  // when audio was noted
};

// Around a call that waits for the engine: what it throws ends the wait, too.  `Watch`: SlotWatch, or what has its two.
template <class Watch>
class [[nodiscard]] EngineWait {
 public:
  explicit EngineWait(Watch& watch) : watch_(watch) { watch_.wait_begins(); }
  ~EngineWait() { watch_.wait_ends(); }
  EngineWait(const EngineWait&) = delete;
  EngineWait& operator=(const EngineWait&) = delete;

 private:
  Watch& watch_;
};

class SlotPool {
 private:
  struct Slot;

 public:
  // A slot whose work is done elsewhere; it is free again when this is destroyed, which must be before the pool is.
  class Lease {
   public:
    Lease(Lease&& other) noexcept : pool_(std::exchange(other.pool_, nullptr)), slot_(other.slot_) {}
    ~Lease();
    Lease& operator=(Lease&&) = delete;

    SlotWatch& watch() const;

   private:
    friend class SlotPool;
    Lease(SlotPool& pool, Slot& slot) : pool_(&pool), slot_(&slot) {}
    SlotPool* pool_;
    Slot* slot_;
  };

  // kWhole: an utterance that is heard as a whole.  It may have any slot, as live work may, and the engine computes it
  // as batch work, so that it is no live stream.
  enum class Work : uint8_t { kLive, kWhole, kBatch };

  // Run on a slot's thread; what one of them throws ends it, and is logged.
  using Job = std::function<void(SlotWatch& watch)>;
  using Done = std::function<void()>;

  // `live_slots`: so many batch work leaves to the other, but for one, which it may always take.
  explicit SlotPool(size_t slots, const Clock& clock = system_clock(), size_t live_slots = 0);
  ~SlotPool();  // waits for the jobs that run
  // Makes the threads; once, before any job.  kUnavailable: not all can be made, and the pool is of no use.
  Status start();
  SlotPool(const SlotPool&) = delete;
  SlotPool& operator=(const SlotPool&) = delete;

  // False when no slot is free for such work.  `done` is called on the slot's thread once the slot is free again, so
  // that a client that hears of the end can ask for the next thing at once.  Any thread; does not wait.
  bool try_start(Job job, Done done, Work work = Work::kLive);
  // Nothing when no slot is free.  Any thread; does not wait.
  std::optional<Lease> try_take();
  // How many there are, and how many of them work of that kind may have at a time.
  size_t size() const { return slots_.size(); }
  size_t size(Work work) const { return work == Work::kBatch ? most_batch_ : slots_.size(); }
  size_t busy() const { return busy_.load(std::memory_order_acquire); }
  // For how much more of it there is a slot at this moment.
  size_t free(Work work) const;
  // Live streams at this moment.
  struct Live {
    size_t streams = 0, pacing = 0;  // that hold slots, and those of them that need the engine now
    double ages_s = 0;               // of all of them together
  };
  Live live() const;
  double mean_live_s() const;  // how long live streams have held a slot, of late; 0: none has ended
  double audio_s() const;      // SlotWatch::note_audio() of all slots, since the beginning
  // For how long slots have waited for the engine and it has given none of them anything: those that wait for their
  // turn while it works for another are no sign of its being stuck.
  double engine_silent_s() const;

 private:
  struct Slot {
    explicit Slot(const Clock& clock) : watch(clock) {}
    SlotWatch watch;
    Job job;  // by mutex_; empty: free
    Done done;
    bool taken = false;
    Work work = Work::kLive;
    int64_t taken_ns = 0;
    std::condition_variable changed;
    std::thread thread;
  };
  void run(Slot& slot);
  Slot* take_free(Work work);   // by mutex_; null: there is none for it
  void free_again(Slot& slot);  // by mutex_
  void give_back(Slot& slot);

  const Clock& clock_;
  mutable std::mutex mutex_;
  double mean_live_s_ = 0;
  bool closing_ = false;
  std::atomic<size_t> busy_{0}, batch_busy_{0};
  std::vector<std::unique_ptr<Slot>> slots_;
  const size_t most_batch_;
};

}  // namespace syrinx::server
