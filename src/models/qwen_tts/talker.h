// The talker (spec qwen3-tts.md, sections 3.1 and 3.3; the maker's Qwen3TTSTalkerModel): reads rows into the caches of
// some streams and gives what follows in each, the state from which a frame is made and the logits of its first code.
// The three axes of its rotary embedding have one position in speech, so that they are one.
//
// Weights are shared and constant, a KvCache is what a stream remembers, a Talker runs passes on a team of threads with
// scratch of its own: one pass at a time.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "models/qwen_tts/weights.h"
#include "nn/decoder_pass.h"
#include "nn/row_norm.h"

namespace syrinx::qwen_tts {

inline constexpr size_t kMaxStreams = 64;

class Talker {
 public:
  static constexpr size_t kPassRows = 126;  // whole blocks of the matrix product

  // The runner is borrowed and must outlive this; its scratch grows here to what a pass needs.  A pass takes up to
  // `streams` of them, 1 to kMaxStreams.
  Talker(std::shared_ptr<const Weights> weights, nn::Runner& runner, size_t streams);

  // The most of a stream: nn::kMaxPositions, or those that the model was made for.
  size_t most_positions() const;
  // A cache for streams of up to `positions`.  kLimitExceeded: more than most_positions().
  Result<nn::KvCache> make_cache(size_t positions) const;

  // [rows, D]: the rows of the next pass, kPassRows at most, those of a stream behind each other.
  View<float, 2> input(size_t rows) { return decoder_.input(rows); }
  // Rows of a stream, at least one; the cache has room for them.
  struct Stream {
    nn::KvCache* cache = nullptr;
    size_t rows = 1;
  };
  // Behind the last row of each stream, until the next call: the final norm's output [streams, D], and logits
  // [streams, V], which may be written over.
  struct Read {
    View<const float, 2> hidden;
    View<float, 2> logits;
  };
  // Streams differ.  With `wanted` false nothing but the caches is made.  Allocates nothing.
  Read read(std::span<const Stream> streams, bool wanted, const nn::PassCut& cut = {});

  // Called with each layer's output rows [n, D]; for tests.
  void set_probe(nn::Decoder::Probe probe) { decoder_.set_probe(std::move(probe)); }

 private:
  std::shared_ptr<const Weights> weights_;
  nn::Runner& runner_;
  nn::Crew crew_;
  nn::Decoder decoder_;
  nn::RowNorm norm_;
  nn::Plane hidden_, logits_;  // [streams, D], [streams, V]
  std::vector<nn::Decoder::Rows> rows_;
};

}  // namespace syrinx::qwen_tts
