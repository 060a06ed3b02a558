#include "server/wyoming/arriving_sound.h"

#include <utility>

namespace syrinx::server::wyoming {
namespace {

// Pieces of less go together: what stands in line costs little more than its bytes, however small they come.
constexpr size_t kPartBytes = 4096;

}  // namespace

Status ArrivingSound::append(const std::string& bytes) {
  const size_t frame = format_.frame_bytes();
  if (bytes.size() % frame != 0)
    return fail(Code::kInvalidArgument,
                "a chunk has {} bytes, and a sample of {} channels with {} bytes has {}; send whole ones", bytes.size(),
                format_.channels, format_.bits / 8, frame);
  {
    const std::lock_guard lock(mutex_);
    const uint64_t frames = frames_ + bytes.size() / frame;
    if (static_cast<double>(frames) > max_s_ * format_.rate_hz)
      return fail(Code::kLimitExceeded, "the sound is longer than {} s; send 'audio-stop' sooner", max_s_);
    if (ended_ || bytes.empty()) return {};
    if (parts_.empty() || parts_.back().bytes.size() >= kPartBytes) parts_.emplace_back();
    parts_.back().bytes += bytes;
    parts_.back().came_ns = clock_.now_ns();
    if (counted_) counted_->add(samples_in(frames) - samples_in(frames_));
    frames_ = frames;
    waiting_.fetch_add(bytes.size(), std::memory_order_acq_rel);
  }
  changed_.notify_one();
  return {};
}

bool ArrivingSound::has_room() const {
  waker_.taken();
  return waiting_.load(std::memory_order_acquire) < kMaxWaitingBytes;
}

void ArrivingSound::end() {
  if (!std::exchange(ended_, true)) ended_ns_ = clock_.now_ns();
}

void ArrivingSound::finish() {
  {
    const std::lock_guard lock(mutex_);
    end();
  }
  changed_.notify_one();
}

void ArrivingSound::give_up() {
  {
    const std::lock_guard lock(mutex_);
    end();
    parts_.clear();
    counted_.reset();
    waiting_.store(0, std::memory_order_release);
  }
  changed_.notify_one();
}

void ArrivingSound::count_by(std::shared_ptr<WaitingSound> counted) {
  const std::lock_guard lock(mutex_);
  counted->add(samples_in(frames_));
  if (!ended_) counted_ = std::move(counted);
}

bool ArrivingSound::take(Part& part) {
  part = {};
  bool has_room_again = false;
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return ended_ || !parts_.empty(); });
    if (parts_.empty()) return false;
    part = std::move(parts_.front());
    parts_.pop_front();
    const size_t before = waiting_.fetch_sub(part.bytes.size(), std::memory_order_acq_rel);
    has_room_again = before >= kMaxWaitingBytes && before - part.bytes.size() < kMaxWaitingBytes;
  }
  if (has_room_again) waker_.tell();
  return true;
}

int64_t ArrivingSound::ended_ns() {
  const std::lock_guard lock(mutex_);
  return ended_ns_;
}

}  // namespace syrinx::server::wyoming
