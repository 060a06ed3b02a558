// A causal pre-norm transformer with a cache of keys and values, of the kinds in decoder_config.h:
//
//   x += out(attention(in(norm(x))));  x += cross_out(cross(query(norm(x))));  x += down(mlp(up(norm(x))))
//
// A pass takes any number of rows of each of some streams: a prompt, a step, or a step of many streams, for which the
// weights are read once.  A stream whose rows come one a pass gets, to the last bit, what it gets alone.  With narrow
// matrices a row's products depend on nothing but the row; f32 takes one row by another way than several, with other
// roundings, and so does attention unless `rows_alone` is asked for.
//
// A Decoder has scratch of its own and runs one pass at a time, inside a job of a team that the caller begins, so that
// other work may go on beside it (crew.h):
//
//   decoder.input(n) = embeddings;  decoder.begin(weights, streams, Output::kRows);
//   team.run([&](int member) { Crew::Seat seat = crew.everyone(member); decoder.work(seat); });
//   decoder.end();  ... decoder.output(n)
//
// Embeddings, heads and sampling are the models'.  Nothing is allocated between begin() and end().
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "kernels/row_conv.h"
#include "nn/cross_cache.h"
#include "nn/decoder_weights.h"
#include "nn/kv_cache.h"
#include "nn/row_norm.h"
#include "nn/runner.h"
#include "tensor/buffer.h"

namespace syrinx::nn {

class Decoder {
 public:
  struct Limits {
    size_t rows = 126;                 // of a pass: whole blocks of the matrix product
    size_t streams = 1;                // of a pass
    size_t positions = kMaxPositions;  // of a stream
    size_t cross_positions = 0;        // of a CrossCache
  };
  // For weights of this shape and type.  The runner is borrowed; its scratch grows here to what a pass needs.
  Decoder(const DecoderWeights& weights, Runner& runner, const Limits& limits);

  // Rows [first, first + count) of a pass belong to one stream and become the next positions of its cache.
  struct Rows {
    KvCache* cache = nullptr;
    size_t first = 0, count = 1;
    const CrossCache* cross = nullptr;  // streams of one cache should stand beside each other
    const float* gain = nullptr;        // [layers, D], with stream_gain
  };
  // kNone: of the last layer only keys and values are made, for prompts that nothing but the cache is wanted of.
  // kLastRows: of the last layer the last row of each stream is finished; output row n is that of stream n.  It is as
  // exact as with kRows, but rounded as a row that comes alone.
  enum class Output : uint8_t { kNone, kLastRows, kRows };

  // [rows, D]: x of the next pass.
  View<float, 2> input(size_t rows);
  // Between jobs of the team.  Streams differ, are in the order of their rows and have room (KvCache::pass_room());
  // the pass has as many rows as the last one ends with, and what rows between them mean is undefined.  `weights`, of
  // the constructor's shape and type, must outlive the pass.
  void begin(const DecoderWeights& weights, std::span<const Rows> streams, Output wanted);
  // A member's walk through the layers; calls stage() and together() of the seat alone.
  void work(Crew::Seat& seat) { work(seat, {.begin = 0, .end = config_.layers}); }
  // The same of some layers, so that a pass may take several jobs of the team, one behind the other.
  void work(Crew::Seat& seat, const Range& layers);
  // Between jobs of the team: the caches move on.
  void end();
  // [rows, D] of the last pass, until input() is written again.
  View<const float, 2> output(size_t rows) { return input(rows); }

  // Called with each layer's output [n, D] by one member while others may go on; for tests.
  using Probe = std::function<void(size_t layer, View<const float, 2> rows)>;
  void set_probe(Probe probe) { probe_ = std::move(probe); }

  // One head's cross-attention of some rows: row n of `queries` [n, K] is row first + n of the pass.
  struct CrossSeen {
    int member = 0;
    size_t layer = 0, head = 0, first = 0;
    View<const float, 2> queries;
    const CrossCache* cross = nullptr;
  };
  // Called by each member for its heads; none by default.
  using CrossObserver = std::function<void(const CrossSeen&)>;
  void observe_cross(CrossObserver observer) { observer_ = std::move(observer); }

 private:
  // Positions [from, to) that a stream's row sees: all, or a part of a long cache.
  struct Piece {
    size_t stream = 0, from = 0, to = 0;
    bool whole = true;
  };
  // Rows that look at one CrossCache.
  struct Group {
    const CrossCache* cross = nullptr;
    size_t first = 0, rows = 0;
  };
  // Rows of bf16, padded with zeros to whole panels.
  struct Rounded {
    Buffer<uint16_t> numbers;
    size_t stride = 0;
    void prepare(size_t rows, size_t channels);
    uint16_t* at(size_t row, size_t column) { return numbers.data() + row * stride + column; }
  };
  // The rows that a layer works at.
  struct Pass {
    size_t rows = 0;
    bool single = true;  // each stream has one row
    std::vector<Rows> streams;
    // A stream's first query is in this row; so many rows before it are added to the cache alone.
    std::vector<size_t> query_row, rows_before;
    std::vector<Group> groups;
    bool in_parts = false;  // some stream is attended to in parts
    std::vector<Piece> pieces;
    std::vector<const float*> gains;  // of each row; with stream_gain
  };
  void prepare(const DecoderWeights& weights, const Limits& limits);
  void reserve(const DecoderWeights& weights, const Limits& limits);
  void check_stream(const Rows& stream) const;
  void add_stream(Pass& pass, const Rows& stream, size_t query_row, size_t rows_before) const;
  void add_pieces(Pass& pass, size_t stream) const;
  void set_angles(const Rows& stream);
  RowNorm::Work normed(const Pass& pass, const NormWeights& norm);
  void norm_stage(Crew::Seat& seat, const RowNorm::Work& work);
  void attention_block(Crew::Seat& seat, size_t layer, bool goes_on, const Pass& pass);
  void cross_block(Crew::Seat& seat, size_t layer, const Pass& pass);
  void mlp_block(Crew::Seat& seat, size_t layer, const Pass& pass);
  bool ready_rows() const { return config_.products != Products::kLinear; }
  bool bf16_rows() const { return config_.products == Products::kBf16Rows; }
  template <class Then>
  void product(const Part& part, const Pass& pass, const kernels::OwnedMatrix& matrix, View<const float, 2> x,
               View<const float, 2> addend, View<float, 2> y, size_t grain, const Then& then);
  kernels::RowConvShare row_product(const Part& part, const Pass& pass, const kernels::OwnedMatrix& matrix,
                                    View<const float, 2> x, Rounded& rounded, kernels::RowConv work,
                                    size_t grain = 1) const;
  void add_product(const Part& part, const Pass& pass, const kernels::OwnedMatrix& matrix, Plane& from,
                   Rounded& rounded, const std::vector<float>& scale);
  void activate(const Share& own);
  void gate_product(const Part& part, const Pass& pass, const kernels::OwnedMatrix& up);
  void up_product(const Part& part, const Pass& pass, const DecoderBlock& block, const RowNorm::Work& work);
  void attend(const Part& part, size_t layer, bool goes_on, const Pass& pass);
  void move_last_rows();
  void attend_pieces(const Part& part, size_t layer, const Pass& pass);
  void merge_pieces(const Part& part, const Pass& pass);
  void attend_piece(const Part& part, size_t layer, size_t key_head, const Pass& pass, size_t piece);
  template <class T>
  void attend_head(const Part& part, size_t layer, size_t key_head, const Pass& pass, size_t piece);
  void place_head(const Rows& stream, size_t layer, size_t key_head, bool goes_on);
  void attend_cross(const Part& part, size_t layer, const Pass& pass);
  template <class T>
  void attend_cross_head(const Part& part, const Group& group, size_t layer, size_t head);
  std::span<float> scratch(const Part& part, size_t floats);

  const DecoderConfig config_;
  Runner& runner_;
  const DecoderWeights* weights_;  // of the pass
  Output wanted_ = Output::kNone;
  Probe probe_;
  CrossObserver observer_;
  Pass all_, last_;  // all rows, and with kLastRows those of the last layer
  RowNorm norm_;
  Plane x_, qkv_, attended_, hidden_, gated_;  // [n, D], [n, (H + 2 G) K], [n, H K], [n, up's columns], [n, F]
  Plane scaled_;                               // [n, D], a branch before its scale
  Plane cosines_, sines_;                      // [n, K / 2]
  Plane parts_, log_sums_;                     // [pieces, H K], [pieces, H]
  Rounded normed16_, attended16_, hidden16_;   // what kBf16Rows reads
};

}  // namespace syrinx::nn
