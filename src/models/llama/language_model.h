// Runs a language model (config.h): reads tokens into the caches of some conversations and gives the logits of the
// token that follows in each.  Weights are shared and constant, a KvCache is what one conversation remembers, a
// LanguageModel runs passes on a team of threads with scratch of its own: one pass at a time.  A pass serves several
// conversations at once, so that the weights are read once for all of them.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "models/llama/weights.h"
#include "nn/decoder_pass.h"
#include "nn/row_norm.h"
#include "nn/runner.h"

namespace syrinx::llama {

inline constexpr size_t kMaxStreams = 64;

using nn::PassCut;

class LanguageModel {
 public:
  static constexpr size_t kPassRows = 126;  // tokens of a pass: whole blocks of the matrix product

  // The runner is borrowed and must outlive this; its scratch grows here to what a pass needs.  A pass takes up to
  // `streams` conversations, 1 to kMaxStreams.
  LanguageModel(std::shared_ptr<const Weights> weights, nn::Runner& runner, size_t streams = 1);

  // A cache for conversations of up to `positions` tokens.  kLimitExceeded: more than nn::kMaxPositions, or than the
  // model was trained for.
  Result<nn::KvCache> make_cache(size_t positions) const;

  // Tokens that follow in a conversation, at least one, each from 0 to V - 1: others are a bug of the caller's.
  struct Tokens {
    std::span<const int32_t> ids;
    nn::KvCache* cache = nullptr;
  };
  // Reads the tokens of all, kPassRows at most, whose caches differ and have room for them.  The logits [streams, V] of
  // the token that follows in each, until the next call; with `wanted` false nothing but the caches is made.  Allocates
  // nothing.
  View<float, 2> read(std::span<const Tokens> streams, bool wanted = true, const PassCut& cut = {});

  // Any number of tokens of one conversation; kLimitExceeded before anything is read if they do not fit,
  // kInvalidArgument for a token that the model does not have.
  Status prompt(std::span<const int32_t> ids, nn::KvCache& cache);

  const Weights& weights() const { return *weights_; }
  nn::Runner& runner() { return runner_; }

  // Called with each layer's output rows [n, D], and with "logits"; for tests.
  void set_probe(nn::Decoder::Probe probe) { decoder_.set_probe(std::move(probe)); }

 private:
  std::shared_ptr<const Weights> weights_;
  nn::Runner& runner_;
  nn::Crew crew_;
  nn::Decoder decoder_;
  nn::RowNorm norm_;
  nn::Plane logits_;  // [streams, V]
  std::vector<nn::Decoder::Rows> rows_;
};

}  // namespace syrinx::llama
