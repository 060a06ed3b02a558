// Conversations of several threads with one LanguageModel: what they ask to be read at the same time is one pass, so
// that the weights are read once for all of them (schedule/rounds.h says who computes it).  A pass takes the next token
// of each answer and, in the rows that are left, parts of prompts.  Answers of batch work have rounds of their own.
//
// Any number of threads; each conversation belongs to one at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/due.h"
#include "engine/schedule/rounds.h"
#include "models/llama/language_model.h"
#include "nn/runner.h"

namespace syrinx::llama {

class ConversationPool final : public Rounds {
 public:
  // The runner, whose team serves the turns of the queue, and the queue are borrowed.
  ConversationPool(std::shared_ptr<const Weights> weights, nn::Runner& runner, StepQueue& queue, size_t conversations);

  struct Reading {
    std::span<const int32_t> ids;  // at least one; they fit into the cache
    nn::KvCache* cache = nullptr;
    std::span<float> logits = {};  // [V], of the token that follows the last one; empty: they are not wanted
    int64_t due_ns = kNeverDue;    // kNeverDue: batch work
    const std::function<bool()>* is_wanted = nullptr;  // as Rounds::Request's
  };
  // Waits until all has been read.  False: it is not wanted any more, and a part may have been read.
  bool read(const Reading& reading);

  // How many wait.  Any thread.
  size_t waiting() const { return queue().waiting() + waiting_behind() + batch_.waiting_behind(); }
  const Weights& weights() const { return model_.weights(); }
  const LanguageModel& model() const { return model_; }

 private:
  class BatchRounds final : public Rounds {
   public:
    BatchRounds(ConversationPool& pool, StepQueue& queue, size_t conversations)
        : Rounds(queue, conversations), pool_(pool) {}
    using Rounds::serve;

   private:
    void choose(std::vector<Request*>& waiting, std::vector<Request*>& round) override { pool_.choose(waiting, round); }
    void make(std::span<Request* const> round, StepQueue::Turn& turn) override { pool_.make(round, turn); }

    ConversationPool& pool_;
  };
  struct PassRequest : Request {
    Reading reading = {};  // what is left of it
    size_t rows = 0;       // of them in this pass
    bool is_read = false;
  };
  void choose(std::vector<Request*>& waiting, std::vector<Request*>& round) override;
  void make(std::span<Request* const> round, StepQueue::Turn& turn) override;
  void run_pass();
  size_t most_rows() const;

  BatchRounds batch_;
  LanguageModel model_;
  const size_t conversations_;
  // The round that is made, in its turn.
  std::vector<PassRequest*> round_;
  std::vector<LanguageModel::Tokens> tokens_;
  double row_ns_ = 0;  // of a pass of many rows, as measured; 0: not yet
};

}  // namespace syrinx::llama
