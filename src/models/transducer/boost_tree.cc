#include "models/transducer/boost_tree.h"

#include <algorithm>
#include <cmath>

namespace syrinx::transducer {
namespace {

constexpr float kDepthScale = 2.0f;
constexpr float kMaxScore = 100.0f;

}  // namespace

Result<std::shared_ptr<const BoostTree>> BoostTree::make(std::span<const std::vector<int32_t>> phrases, float score,
                                                         size_t vocabulary) {
  if (!(score > 0.0f && score <= kMaxScore))
    return fail(Code::kInvalidArgument, "a boost score of {}; it lies above 0 and goes up to {}", score, kMaxScore);
  if (phrases.size() > kMaxBoostPhrases)
    return fail(Code::kLimitExceeded, "{} phrases to favour; {} are the limit", phrases.size(), kMaxBoostPhrases);
  auto tree = std::make_shared<BoostTree>();
  tree->nodes_.emplace_back();
  for (size_t i = 0; i < phrases.size(); ++i) {
    const std::vector<int32_t>& phrase = phrases[i];
    if (phrase.empty()) return fail(Code::kInvalidArgument, "phrase {} to favour is empty", i + 1);
    if (phrase.size() > kMaxBoostLabels)
      return fail(Code::kLimitExceeded, "phrase {} to favour has {} pieces; {} are the limit", i + 1, phrase.size(),
                  kMaxBoostLabels);
    for (const int32_t label : phrase) {
      if (label < 0 || static_cast<size_t>(label) >= vocabulary)
        return fail(Code::kInvalidArgument, "phrase {} to favour holds label {}; this model has {}", i + 1, label,
                    vocabulary);
    }
    tree->add(phrase, score);
  }
  tree->link();
  return std::shared_ptr<const BoostTree>(std::move(tree));
}

void BoostTree::add(std::span<const int32_t> phrase, float score) {
  uint32_t at = 0;
  for (size_t i = 0; i < phrase.size(); ++i) {
    const auto& arcs = nodes_[at].arcs;
    const auto place = std::lower_bound(arcs.begin(), arcs.end(), phrase[i],
                                        [](const Arc& arc, int32_t label) { return arc.label < label; });
    if (place != arcs.end() && place->label == phrase[i]) {
      at = place->to;
      continue;
    }
    const float earned = i == 0 ? score : kDepthScale * score + std::log(static_cast<float>(i + 1));
    const auto to = static_cast<uint32_t>(nodes_.size());
    Node node;
    node.total = nodes_[at].total + earned;
    nodes_[at].arcs.insert(nodes_[at].arcs.begin() + (place - arcs.begin()), {phrase[i], to, earned});
    nodes_.push_back(std::move(node));
    at = to;
  }
  nodes_[at].end = true;
}

// Breadth first, so that a node's fail link is there before its children's.
void BoostTree::link() {
  std::vector<uint32_t> order = {0};
  for (size_t i = 0; i < order.size(); ++i) {
    const uint32_t parent = order[i];
    for (const Arc& arc : nodes_[parent].arcs) {
      Node& node = nodes_[arc.to];
      if (parent != 0) node.fail = next(nodes_[parent].fail, arc.label);
      node.back = node.end ? 0.0f : nodes_[node.fail].total - node.total;
      order.push_back(arc.to);
    }
  }
}

const BoostTree::Arc* BoostTree::find(const Node& node, int32_t label) const {
  const auto place = std::lower_bound(node.arcs.begin(), node.arcs.end(), label,
                                      [](const Arc& arc, int32_t wanted) { return arc.label < wanted; });
  return place != node.arcs.end() && place->label == label ? &*place : nullptr;
}

float BoostTree::bonus(uint32_t node, int32_t label) const {
  float back = 0.0f;
  for (uint32_t at = node;; at = nodes_[at].fail) {
    if (const Arc* const arc = find(nodes_[at], label)) return back + arc->score;
    if (at == 0) return back;
    back += nodes_[at].back;
  }
}

uint32_t BoostTree::next(uint32_t node, int32_t label) const {
  for (uint32_t at = node;; at = nodes_[at].fail) {
    if (const Arc* const arc = find(nodes_[at], label)) return arc->to;
    if (at == 0) return 0;
  }
}

// All labels that no open phrase goes on with earn the same, so of them the acoustically best counts alone.  A label
// earns most where the longest phrase goes on with it, so the greatest of its sums is its own.
kernels::Peak BoostTree::choose(uint32_t node, std::span<const float> logits, float scale) const {
  kernels::Peak best = kernels::argmax(logits);
  float back = 0.0f;
  kernels::Peak favoured{.value = -INFINITY, .index = 0};
  for (uint32_t at = node;; at = nodes_[at].fail) {
    for (const Arc& arc : nodes_[at].arcs) {
      const auto label = static_cast<size_t>(arc.label);
      const float sum = logits[label] + scale * (back + arc.score);
      if (sum > favoured.value || (sum == favoured.value && label < favoured.index)) favoured = {sum, label};
    }
    if (at == 0) break;
    back += nodes_[at].back;
  }
  best.value += scale * back;
  return favoured.value > best.value ? favoured : best;
}

}  // namespace syrinx::transducer
