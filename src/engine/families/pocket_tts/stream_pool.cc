#include "engine/families/pocket_tts/stream_pool.h"

#include <algorithm>
#include <utility>

namespace syrinx::pocket {

StreamPool::StreamPool(const std::shared_ptr<const FlowLmWeights>& flow,
                       const std::shared_ptr<const mimi::DecoderWeights>& codec, const FlowSchedule& schedule,
                       nn::Runner& runner, StepQueue& queue, size_t streams)
    : Rounds(queue, streams), batch_(*this, queue, streams), speaker_(flow, codec, schedule, runner, streams) {
  for (size_t n = streams; n-- > 0;) free_.push_back(n);
  round_.reserve(streams);
  frames_.reserve(streams);
}

Result<StreamPool::Lease> StreamPool::lease() {
  const std::lock_guard lock(mutex_);
  if (free_.empty())
    return fail(Code::kUnavailable, "all {} streams speak; ask again when one has ended", speaker_.streams());
  const size_t stream = free_.back();
  free_.pop_back();
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
  StepQueue& queue = pool_->queue();
  FrameRequest request;
  pool_->prepare(*this, noise, samples, due_ns, request);
  {
    StepQueue::Turn turn(queue, due_ns, is_wanted_);
    waited_ns_ += queue.clock().now_ns() - request.asked_ns;
    if (!turn.is_mine()) return fail(Code::kCancelled, "the speech was cancelled before a chunk of it");
    turn.set_deadline(request.deadline_ns);
    // Each part of a text reads the weights again, so a text is whole where no other work needs the team.
    nn::BetweenJobs between;
    if (queue.scheduler().is_shared()) between = [&turn] { turn.give_way(); };
    const int64_t waited_before_ns = turn.waited_ns();
    Status begun = pool_->speaker_.begin(stream_, std::move(voice), ids, eos_threshold, frames_after, between);
    waited_ns_ += turn.waited_ns() - waited_before_ns;
    SYRINX_TRY_VOID(std::move(begun));
    if (samples.empty()) return false;
    request.asked_ns = queue.clock().now_ns();
    pool_->enter_rounds(request);  // before the turn ends, so that no round comes between
  }
  pool_->wait_for_round(request);
  waited_ns_ += request.waited_ns;
  return request.frame.spoken;
}

bool StreamPool::Lease::next(std::span<const float> noise, std::span<float> samples, int64_t due_ns) {
  FrameRequest request;
  pool_->prepare(*this, noise, samples, due_ns, request);
  pool_->enter_rounds(request);
  pool_->wait_for_round(request);
  waited_ns_ += request.waited_ns;
  return request.frame.spoken;
}

void StreamPool::alone(const std::function<void()>& work, int64_t due_ns) {
  const int64_t deadline_ns = gapless_until_ns(due_ns, queue().clock().now_ns());
  StepQueue::Turn turn(queue(), due_ns);
  turn.set_deadline(deadline_ns);
  if (due_ns == kDueAtOnce) turn.make_nothing();  // over in a moment
  work();
}

void StreamPool::prepare(const Lease& lease, std::span<const float> noise, std::span<float> samples, int64_t due_ns,
                         FrameRequest& request) const {
  request.frame = {.stream = lease.stream_, .noise = noise, .samples = samples};
  request.asked_ns = queue().clock().now_ns();
  request.due_ns = due_ns;
  request.deadline_ns = gapless_until_ns(due_ns, request.asked_ns);
  request.is_wanted = &lease.is_wanted_;
}

// A frame of every stream that asks.
void StreamPool::choose(std::vector<Request*>& waiting, std::vector<Request*>& round) {
  round.assign(waiting.begin(), waiting.end());
  waiting.clear();
}

void StreamPool::make(std::span<Request* const> round, StepQueue::Turn& turn) {
  round_.clear();
  frames_.clear();
  int64_t deadline_ns = kNeverDue;
  const int64_t began_ns = queue().clock().now_ns();
  for (Request* const each : round) {
    auto* const request = static_cast<FrameRequest*>(each);
    request->waited_ns = began_ns - request->asked_ns;
    if (request->is_left()) continue;
    round_.push_back(request);
    frames_.push_back(request->frame);
    deadline_ns = std::min(deadline_ns, request->deadline_ns);
  }
  turn.set_deadline(deadline_ns);
  if (frames_.empty()) return turn.make_nothing();
  speaker_.next(frames_);
  for (size_t n = 0; n < round_.size(); ++n) round_[n]->frame = frames_[n];
}

}  // namespace syrinx::pocket
