#include "engine/families/llama/conversation_pool.h"

#include <algorithm>
#include <utility>

#include "base/due.h"
#include "engine/schedule/due_queue.h"

namespace syrinx::llama {
namespace {

// Rows of prompts in a pass that others wait for with a token each.
constexpr size_t kBesideAnswers = 32;
constexpr size_t kManyRows = 8;  // a pass of so many tells what a row costs

}  // namespace

ConversationPool::ConversationPool(const std::shared_ptr<const Weights>& weights, nn::Runner& runner, StepQueue& queue,
                                   size_t conversations)
    : Rounds(queue, conversations),
      batch_(*this, queue, conversations),
      live_{.model = LanguageModel(weights, runner, conversations)},
      late_{.model = LanguageModel(weights, runner, conversations)} {
  for (Passes* const passes : {&live_, &late_}) {
    passes->round.reserve(conversations);
    passes->tokens.reserve(conversations);
  }
}

bool ConversationPool::read(const Reading& reading) {
  for (std::span<const int32_t> left = reading.ids; !left.empty();) {
    PassRequest part;
    part.reading = reading;
    part.reading.ids = left;
    // Waited for since now: what has been asked for before goes first, be it the first sound of this answer's speech.
    part.due_ns = reading.is_batch ? kNeverDue : std::max<int64_t>(queue().clock().now_ns(), 1);
    part.is_wanted = reading.is_wanted;
    reading.is_batch ? batch_.serve(part) : serve(part);
    if (!part.is_read) return false;
    left = left.subspan(part.rows);
  }
  return true;
}

// The next token of every answer, and as much of prompts as fits.
void ConversationPool::choose_rows(std::vector<Request*>& waiting, std::vector<Request*>& round) {
  const auto left = [](const Request* request) { return static_cast<const PassRequest*>(request)->reading.ids.size(); };
  const auto steps = static_cast<size_t>(
      std::count_if(waiting.begin(), waiting.end(), [&](const Request* request) { return left(request) == 1; }));
  size_t room = steps > 0 ? kBesideAnswers : LanguageModel::kPassRows;
  for (Request* const request : waiting) {
    auto& rows = static_cast<PassRequest*>(request)->rows;
    rows = left(request) == 1 ? 1 : std::min(left(request), room);
    if (rows == 0) continue;
    if (left(request) > 1) room -= rows;
    round.push_back(request);
  }
  std::erase_if(waiting, [](const Request* request) { return static_cast<const PassRequest*>(request)->rows > 0; });
}

void ConversationPool::make(std::span<Request* const> round, StepQueue::Turn& turn, Passes& passes) {
  turn.set_deadline(kNeverDue);  // no sound waits for it
  passes.round.clear();
  for (Request* const each : round)
    if (!each->is_left()) passes.round.push_back(static_cast<PassRequest*>(each));
  if (passes.round.empty()) return turn.make_nothing();
  run_pass(passes, turn);
  for (PassRequest* const request : passes.round) request->is_read = true;
}

// So many that they take about a step of the scheduler's; one by one until it is known.
size_t ConversationPool::layers_of_job(const Passes& passes, size_t rows) const {
  const auto layers = weights().config.layers;
  const double pass_ns = rows < kManyRows ? passes.step_ns : passes.row_ns * static_cast<double>(rows);
  if (pass_ns <= 0) return 1;
  if (pass_ns <= static_cast<double>(DueQueue::kStepNs)) return layers;
  return static_cast<size_t>(static_cast<double>(DueQueue::kStepNs) / pass_ns * static_cast<double>(layers)) + 1;
}

void ConversationPool::run_pass(Passes& passes, StepQueue::Turn& turn) {
  passes.tokens.clear();
  bool wanted = false;
  size_t rows = 0;
  for (const PassRequest* const request : passes.round) {
    const Reading& reading = request->reading;
    passes.tokens.push_back({.ids = reading.ids.first(request->rows), .cache = reading.cache});
    wanted |= !reading.logits.empty() && request->rows == reading.ids.size();
    rows += request->rows;
  }
  const int64_t began_ns = queue().clock().now_ns(), waited_ns = turn.waited_ns();
  const PassCut cut{.between = [&turn] { turn.give_way(); }, .layers = layers_of_job(passes, rows)};
  const View<float, 2> logits = passes.model.read(passes.tokens, wanted, cut);
  const auto took_ns = static_cast<double>(queue().clock().now_ns() - began_ns - (turn.waited_ns() - waited_ns));
  rows < kManyRows ? passes.step_ns = took_ns : passes.row_ns = took_ns / static_cast<double>(rows);
  for (size_t n = 0; n < passes.round.size(); ++n) {
    const Reading& reading = passes.round[n]->reading;
    if (reading.logits.empty() || passes.round[n]->rows < reading.ids.size()) continue;
    std::copy_n(logits.row(n), reading.logits.size(), reading.logits.begin());
  }
}

}  // namespace syrinx::llama
