// Conversations of several threads with one LanguageModel: what they ask to be read at the same time is one pass, so
// that the weights are read once for all of them (schedule/rounds.h says who computes it).  A pass takes the next token
// of each answer and, in the rows that are left, parts of prompts.  Answers of batch work have rounds and scratch of
// their own.
//
// Where others may want the team it is given to them between layers, so that a frame of live sound waits for a few
// milliseconds of a pass and not for all of it.
//
// Any number of threads; each conversation belongs to one at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "engine/schedule/rounds.h"
#include "models/llama/language_model.h"
#include "nn/runner.h"

namespace syrinx::llama {

class ConversationPool final : public Rounds {
 public:
  // The runner, whose team serves the turns of the queue, and the queue are borrowed.
  ConversationPool(const std::shared_ptr<const Weights>& weights, nn::Runner& runner, StepQueue& queue,
                   size_t conversations);

  struct Reading {
    std::span<const int32_t> ids;  // at least one; they fit into the cache
    nn::KvCache* cache = nullptr;
    std::span<float> logits = {};  // [V], of the token that follows the last one; empty: they are not wanted
    bool is_batch = false;
    const std::function<bool()>* is_wanted = nullptr;  // as Rounds::Request's
  };
  // Waits until all has been read.  False: it is not wanted any more, and a part may have been read.
  bool read(const Reading& reading);

  // How many wait.  Any thread.
  size_t waiting() const { return queue().waiting() + waiting_behind() + batch_.waiting_behind(); }
  const Weights& weights() const { return live_.model.weights(); }
  const LanguageModel& model() const { return live_.model; }

 private:
  class BatchRounds final : public Rounds {
   public:
    BatchRounds(ConversationPool& pool, StepQueue& queue, size_t conversations)
        : Rounds(queue, conversations), pool_(pool) {}
    using Rounds::serve;

   private:
    int64_t patience_ns() const override { return pool_.late_.patience_ns(); }
    void choose(std::vector<Request*>& waiting, std::vector<Request*>& round) override { choose_rows(waiting, round); }
    void make(std::span<Request* const> round, StepQueue::Turn& turn) override { pool_.make(round, turn, pool_.late_); }

    ConversationPool& pool_;
  };
  struct PassRequest : Request {
    Reading reading = {};  // what is left of it
    size_t rows = 0;       // of them in this pass
    bool is_read = false;
  };
  // How long passes take, and the scratch of one.
  struct Passes {
    LanguageModel model;
    std::vector<PassRequest*> round = {};  // that is made, in its turn
    std::vector<LanguageModel::Tokens> tokens = {};
    double step_ns = 0, row_ns = 0;  // of a pass of few rows, and a row of one of many; 0: not measured
    // So long a round waits for the members of the last one, whose answers draw their tokens.
    int64_t patience_ns() const { return static_cast<int64_t>(step_ns / 8); }
  };
  static void choose_rows(std::vector<Request*>& waiting, std::vector<Request*>& round);
  int64_t patience_ns() const override { return live_.patience_ns(); }
  void choose(std::vector<Request*>& waiting, std::vector<Request*>& round) override { choose_rows(waiting, round); }
  void make(std::span<Request* const> round, StepQueue::Turn& turn) override { make(round, turn, live_); }
  void make(std::span<Request* const> round, StepQueue::Turn& turn, Passes& passes);
  void run_pass(Passes& passes, StepQueue::Turn& turn);
  size_t layers_of_job(const Passes& passes, size_t rows) const;

  BatchRounds batch_;
  Passes live_, late_;  // late: of batch work
};

}  // namespace syrinx::llama
