#include "engine/families/pocket_tts/stream_pool.h"

#include <algorithm>
#include <utility>

namespace syrinx::pocket {

StreamPool::StreamPool(const std::shared_ptr<const FlowLmWeights>& flow,
                       const std::shared_ptr<const mimi::DecoderWeights>& codec, const FlowSchedule& schedule,
                       nn::Runner& runner, size_t streams, std::chrono::nanoseconds next_frame, const Clock& clock)
    : speaker_(flow, codec, schedule, runner, streams), next_frame_(next_frame), clock_(clock) {
  for (size_t n = streams; n-- > 0;) free_.push_back(n);
  round_.reserve(streams + 1);
  frames_.reserve(streams);
  waiting_.reserve(2 * streams);
}

Result<StreamPool::Lease> StreamPool::lease() {
  const std::lock_guard lock(mutex_);
  if (free_.empty())
    return fail(Code::kUnavailable, "all {} streams speak; ask again when one has ended", speaker_.streams());
  const size_t stream = free_.back();
  free_.pop_back();
  // As a round, which batch work waits for so many of.
  const auto is_batchs = [](const Request* request) {
    return request->work != nullptr && request->due_ns == kNeverDue;
  };
  if (std::any_of(waiting_.begin(), waiting_.end(), is_batchs)) ++passed_;
  frames_until_ = std::chrono::steady_clock::now() + next_frame_;
  return Lease(*this, stream);
}

Result<StreamPool::Lease> StreamPool::lease(const FlowSchedule& schedule) {
  SYRINX_TRY(Lease leased, lease());  // gives the stream back should there be no memory
  alone([&] { speaker_.set_schedule(leased.stream_, schedule); }, kDueAtOnce);
  return leased;
}

void StreamPool::give_back(size_t stream) {
  speaker_.release(stream);
  const std::lock_guard lock(mutex_);
  free_.push_back(stream);
}

Result<bool> StreamPool::Lease::begin(std::shared_ptr<const FlowLmState> voice, std::span<const int32_t> ids,
                                      float eos_threshold, size_t frames_after, int64_t due_ns,
                                      std::span<const float> noise, std::span<float> samples) {
  Status status = fail(Code::kCancelled, "the speech was cancelled before a chunk of it");
  Request request{
      .frame = {.stream = stream_, .noise = noise, .samples = samples}, .due_ns = due_ns, .is_wanted = &is_wanted_};
  // Where it fails the stream has no chunk, and there is no frame.
  const std::function<void()> work = [&] {
    if (request.is_left()) return request.make_nothing();
    status = pool_->speaker_.begin(stream_, std::move(voice), ids, eos_threshold, frames_after);
  };
  request.work = &work;
  pool_->serve(request);
  waited_ms_ += request.waited_ms;
  SYRINX_TRY_VOID(std::move(status));
  return request.frame.spoken;
}

bool StreamPool::Lease::next(std::span<const float> noise, std::span<float> samples, int64_t due_ns) {
  Request request{
      .frame = {.stream = stream_, .noise = noise, .samples = samples}, .due_ns = due_ns, .is_wanted = &is_wanted_};
  pool_->serve(request);
  waited_ms_ += request.waited_ms;
  return request.frame.spoken;
}

void StreamPool::alone(const std::function<void()>& work, int64_t due_ns) {
  Request request{.work = &work, .due_ns = due_ns};
  serve(request);
}

void StreamPool::serve(Request& request) {
  request.deadline_ns = gapless_until_ns(request.due_ns, clock_.now_ns());
  std::unique_lock lock(mutex_);
  waiting_.push_back(&request);
  while (!request.done) {
    if (request.is_left() && std::erase(waiting_, &request) > 0) return;  // else it is part of a round
    if (busy_) {
      changed_.wait(lock);
    } else if (gives_way(request)) {
      changed_.wait_until(lock, frames_until_);
    } else {
      work_round(lock);
    }
  }
  if (request.thrown != nullptr) std::rethrow_exception(request.thrown);
}

// Batch work behind what was due, whose streams ask for their next frame in a moment.  Whoever asks for anything
// meanwhile begins a round himself, and is not kept.
bool StreamPool::gives_way(const Request& request) const {
  return request.work != nullptr && request.due_ns == kNeverDue && passed_ < kRoundsInARow &&
         std::chrono::steady_clock::now() < frames_until_;
}

// What a round does before its frames; null: nothing.
StreamPool::Request* StreamPool::choose_work() {
  Request *due = nullptr, *batch = nullptr;
  bool has_frames = false;
  int64_t frames_due_ns = kNeverDue;
  for (Request* const request : waiting_) {
    if (request->work == nullptr) {
      has_frames = true;
      frames_due_ns = std::min(frames_due_ns, request->due_ns);
    } else if (request->due_ns == kNeverDue) {
      if (batch == nullptr) batch = request;
    } else if (due == nullptr || request->due_ns < due->due_ns) {
      due = request;
    }
  }
  const bool is_batchs = batch != nullptr && ((due == nullptr && !has_frames) || passed_ >= kRoundsInARow);
  passed_ = batch == nullptr || is_batchs ? 0 : passed_ + 1;
  if (is_batchs) return batch;
  return due != nullptr && due->due_ns <= frames_due_ns ? due : nullptr;
}

// What has no time, but for frames, is either batch work or over in a moment.
void StreamPool::count_round(int64_t began_ns) {
  const int64_t now_ns = clock_.now_ns();
  bool is_step = false, has_gap = false;
  for (const Request* const request : round_) {
    is_step |= request->has_frame() || (request->due_ns != kDueAtOnce && request->due_ns != kNeverDue);
    has_gap |= is_late(request->deadline_ns, now_ns);
  }
  if (is_step) steps_.note(now_ns - began_ns, has_gap);
}

// That, then a frame of everybody who asked for one before the round began, and of the chunk that it begins.
void StreamPool::work_round(std::unique_lock<std::mutex>& lock) {
  busy_ = true;
  round_.clear();
  frames_.clear();
  if (Request* const work = choose_work(); work != nullptr) {
    round_.push_back(work);
    std::erase(waiting_, work);
  }
  for (Request* const request : waiting_) {
    if (request->work != nullptr) continue;
    request->done = request->is_left();  // and so has no frame
    if (!request->done) round_.push_back(request);
  }
  std::erase_if(waiting_, [](const Request* request) { return request->work == nullptr; });
  lock.unlock();
  const int64_t began_ns = clock_.now_ns();
  for (Request* const request : round_) {
    if (request->work != nullptr) {
      request->waited_ms = request->asked.elapsed_ms();
      try {
        (*request->work)();
      } catch (...) {
        request->thrown = std::current_exception();
      }
    }
    if (request->has_frame()) frames_.push_back(request->frame);
  }
  const Stopwatch of_frames;
  for (Request* const request : round_)
    if (request->work == nullptr) request->waited_ms = request->asked.elapsed_ms();
  if (!frames_.empty()) speaker_.next(frames_);
  const double frames_ms = frames_.empty() ? 0 : of_frames.elapsed_ms();
  count_round(began_ns);
  size_t frame = 0;
  bool was_due = false;
  lock.lock();
  for (Request* const request : round_) {
    was_due = was_due || request->has_frame() || request->due_ns != kNeverDue;
    if (request->has_frame())
      request->frame = frames_[frame++];
    else
      request->waited_ms += frames_ms;
    request->done = true;
  }
  if (was_due) frames_until_ = std::chrono::steady_clock::now() + next_frame_;
  busy_ = false;
  changed_.notify_all();
}

}  // namespace syrinx::pocket
