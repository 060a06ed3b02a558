#include "server/wyoming/arriving_sound.h"

#include <utility>

namespace syrinx::server::wyoming {

Status ArrivingSound::append(const std::string& bytes) {
  const size_t frame = format_.frame_bytes();
  if (bytes.size() % frame != 0)
    return fail(Code::kInvalidArgument,
                "a chunk has {} bytes, and a sample of {} channels with {} bytes has {}; send whole ones", bytes.size(),
                format_.channels, format_.bits / 8, frame);
  const uint64_t frames = frames_ + bytes.size() / frame;
  if (static_cast<double>(frames) > max_s_ * format_.rate_hz)
    return fail(Code::kLimitExceeded, "the sound is longer than {} s; send 'audio-stop' sooner", max_s_);
  frames_ = frames;
  {
    const std::lock_guard lock(mutex_);
    bytes_ += bytes;
    waiting_.store(bytes_.size(), std::memory_order_release);
  }
  changed_.notify_one();
  return {};
}

bool ArrivingSound::has_room() const {
  waker_.taken();
  return waiting_.load(std::memory_order_acquire) < kMaxWaitingBytes;
}

void ArrivingSound::finish() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_one();
}

void ArrivingSound::give_up() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    bytes_.clear();
  }
  changed_.notify_one();
}

bool ArrivingSound::take(std::string& bytes) {
  bytes.clear();
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return ended_ || !bytes_.empty(); });
    std::swap(bytes, bytes_);
    waiting_.store(0, std::memory_order_release);
  }
  waker_.tell();
  return !bytes.empty();
}

}  // namespace syrinx::server::wyoming
