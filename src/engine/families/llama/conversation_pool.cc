#include "engine/families/llama/conversation_pool.h"

#include <algorithm>
#include <utility>

#include "engine/schedule/due_queue.h"

namespace syrinx::llama {
namespace {

// Prompts are read in passes of so many rows at least, of which the weights are most of the work.
constexpr size_t kLeastRows = 8;
constexpr size_t kMeasuredRows = 4;  // a pass of so many rows tells what a row costs

}  // namespace

ConversationPool::ConversationPool(std::shared_ptr<const Weights> weights, nn::Runner& runner, StepQueue& queue,
                                   size_t conversations)
    : Rounds(queue, conversations),
      batch_(*this, queue, conversations),
      model_(std::move(weights), runner, conversations),
      conversations_(conversations) {
  round_.reserve(conversations);
  tokens_.reserve(conversations);
}

bool ConversationPool::read(const Reading& reading) {
  for (std::span<const int32_t> left = reading.ids; !left.empty();) {
    PassRequest part;
    part.reading = reading;
    part.reading.ids = left;
    part.due_ns = reading.due_ns;
    part.is_wanted = reading.is_wanted;
    reading.due_ns == kNeverDue ? batch_.serve(part) : serve(part);
    if (!part.is_read) return false;
    left = left.subspan(part.rows);
  }
  return true;
}

// Where live sound may wait for the team a pass is short.
size_t ConversationPool::most_rows() const {
  if (!queue().scheduler().is_shared() || row_ns_ <= 0) return LanguageModel::kPassRows;
  const auto rows = static_cast<size_t>(static_cast<double>(DueQueue::kStepNs) / row_ns_);
  return std::clamp(rows, kLeastRows, LanguageModel::kPassRows);
}

// The next token of every answer, and as much of prompts as fits.
void ConversationPool::choose(std::vector<Request*>& waiting, std::vector<Request*>& round) {
  const auto left = [](const Request* request) { return static_cast<const PassRequest*>(request)->reading.ids.size(); };
  size_t room = std::max(most_rows(), conversations_), steps = 0;
  for (const Request* const request : waiting) steps += left(request) == 1 ? 1 : 0;
  room -= std::min(room, steps);
  for (Request* const request : waiting) {
    const bool is_step = left(request) == 1;
    auto& rows = static_cast<PassRequest*>(request)->rows;
    rows = is_step ? 1 : std::min(left(request), room);
    if (rows == 0) continue;
    if (!is_step) room -= rows;
    round.push_back(request);
  }
  std::erase_if(waiting, [](const Request* request) { return static_cast<const PassRequest*>(request)->rows > 0; });
}

void ConversationPool::make(std::span<Request* const> round, StepQueue::Turn& turn) {
  turn.set_deadline(kNeverDue);  // no sound waits for it
  round_.clear();
  for (Request* const each : round)
    if (!each->is_left()) round_.push_back(static_cast<PassRequest*>(each));
  if (round_.empty()) return turn.make_nothing();
  const int64_t began_ns = queue().clock().now_ns();
  run_pass();
  size_t rows = 0;
  for (PassRequest* const request : round_) {
    rows += request->rows;
    request->is_read = true;
  }
  if (rows >= kMeasuredRows)
    row_ns_ = static_cast<double>(queue().clock().now_ns() - began_ns) / static_cast<double>(rows);
}

void ConversationPool::run_pass() {
  tokens_.clear();
  bool wanted = false;
  for (const PassRequest* const request : round_) {
    const Reading& reading = request->reading;
    tokens_.push_back({.ids = reading.ids.first(request->rows), .cache = reading.cache});
    wanted |= !reading.logits.empty() && request->rows == reading.ids.size();
  }
  const View<float, 2> logits = model_.read(tokens_, wanted);
  for (size_t n = 0; n < round_.size(); ++n) {
    const Reading& reading = round_[n]->reading;
    if (reading.logits.empty() || round_[n]->rows < reading.ids.size()) continue;
    std::copy_n(logits.row(n), reading.logits.size(), reading.logits.begin());
  }
}

}  // namespace syrinx::llama
