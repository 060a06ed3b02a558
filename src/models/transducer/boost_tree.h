// Words and phrases to favour, as an Aho-Corasick tree over label ids: each label that goes on with one of them earns a
// bonus, which is taken back when the phrase breaks off, and kept once it has been heard to its end (spec
// transducer-asr.md, section 4.6; the maker's parts/context_biasing/context_graph_universal.py and
// boosting_graph_batched.py).
//
//   bonus of a phrase's first label  score;  of its i-th (from 1)  2 score + ln i
//   taken back where a phrase breaks off: what has been earned, less what the longest phrase still open has earned
//
// Whether a label comes at all stays the model's own decision; the tree only says which, so that no phrase is heard in
// silence.  Immutable once made; any number of streams may share it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "kernels/argmax.h"

namespace syrinx::transducer {

inline constexpr size_t kMaxBoostPhrases = 1000, kMaxBoostLabels = 64;  // of a phrase

class BoostTree {
 public:
  // Phrases as label ids in [0, vocabulary), each of one or more.  kInvalidArgument for a score that is not in
  // (0, 100], a label that there is not, or an empty phrase; kLimitExceeded beyond the limits above.
  static Result<std::shared_ptr<const BoostTree>> make(std::span<const std::vector<int32_t>> phrases, float score,
                                                       size_t vocabulary);

  // The label with the greatest logit once `scale` times the bonuses of node `node` are added.  No blank among the
  // logits.
  kernels::Peak choose(uint32_t node, std::span<const float> logits, float scale = 1.0f) const;
  // The bonus of one label at a node, and the node behind it.
  float bonus(uint32_t node, int32_t label) const;
  uint32_t next(uint32_t node, int32_t label) const;
  size_t size() const { return nodes_.size(); }

 private:
  struct Arc {
    int32_t label;
    uint32_t to;
    float score;
  };
  struct Node {
    uint32_t fail = 0;
    float back = 0;   // added when the phrase breaks off here, negative
    float total = 0;  // earned from the root to here
    bool end = false;
    std::vector<Arc> arcs;  // by rising label
  };
  const Arc* find(const Node& node, int32_t label) const;
  void add(std::span<const int32_t> phrase, float score);
  void link();

  std::vector<Node> nodes_;
};

}  // namespace syrinx::transducer
