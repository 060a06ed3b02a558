// Runs layers on a team of threads with scratch that it owns.  One step at a time, from one thread.  Scratch grows to
// the largest layer seen and stays: after one pass over a model nothing is allocated any more.
//
// Layers over a whole recording are long.  With set_between() a layer is many jobs of a few milliseconds, between which
// the team may do other work; the results are the same bits.
#pragma once

#include <algorithm>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "base/thread_team.h"
#include "kernels/conv.h"
#include "nn/crew.h"
#include "tensor/buffer.h"
#include "tensor/packed_matrix.h"
#include "tensor/view.h"

namespace syrinx::nn {

// Rows in time order that a layer reads or writes: time-major, stride a multiple of 32, padding columns zero.
class Plane {
 public:
  // Memory only grows; growing loses the content.
  void prepare(size_t rows, size_t channels, kernels::Storage storage);
  void release() { *this = Plane(); }

  size_t rows() const { return rows_; }
  size_t channels() const { return channels_; }
  size_t stride() const { return stride_; }
  kernels::Storage storage() const { return storage_; }
  void* row(size_t i) { return bytes_.data() + i * stride_ * kernels::storage_bytes(storage_); }
  const void* row(size_t i) const { return bytes_.data() + i * stride_ * kernels::storage_bytes(storage_); }
  void* at(size_t i, size_t column) {
    return static_cast<std::byte*>(row(i)) + column * kernels::storage_bytes(storage_);
  }
  float* f32(size_t i = 0) { return static_cast<float*>(row(i)); }
  const float* f32(size_t i = 0) const { return static_cast<const float*>(row(i)); }
  View<float, 2> view() { return {f32(), {rows_, channels_}, {stride_, 1}}; }
  View<const float, 2> view() const { return {f32(), {rows_, channels_}, {stride_, 1}}; }

 private:
  Buffer<std::byte> bytes_;
  size_t rows_ = 0, channels_ = 0, stride_ = 0;
  kernels::Storage storage_ = kernels::Storage::kF32;
};

// Statistics of a plane, tile by tile, and what instance norm makes of them.
class PlaneStats {
 public:
  kernels::TileStats* prepare(size_t rows, size_t channels);
  const kernels::TileStats& tiles() const { return tiles_; }
  kernels::TileStats& tiles() { return tiles_; }

 private:
  std::vector<float> values_;
  kernels::TileStats tiles_;
};

// The rows and columns of an output that one member of a team has written.
struct Share {
  Range rows, columns;
};

// Called between two jobs of the team; must not use the runner.
using BetweenJobs = std::function<void()>;

class Runner {
 public:
  explicit Runner(ThreadTeam& team) : team_(team), scratch_(static_cast<size_t>(team.size())) {}
  ThreadTeam& team() { return team_; }
  // `between` is called from now on behind each job of conv(), linear(), stats() and split(), which cut what is long;
  // empty: nothing is called or cut.  `cuts` is asked in each layer whether it is cut; empty: always.
  void set_between(BetweenJobs between, std::function<bool()> cuts = {}) {
    between_ = std::move(between);
    cuts_ = std::move(cuts);
  }
  // Empty where a layer that begins now is not cut.
  const BetweenJobs& cut() const {
    static const BetweenJobs none;
    return !cuts_ || cuts_() ? between_ : none;
  }
  void between() const {
    if (between_) between_();
  }

  // One convolution, cut by tiles where there are many and by panels where there are few.
  void conv(const PackedMatrix& matrix, const kernels::ConvGeometry& geometry, const kernels::ConvInput& in,
            const kernels::ConvOutput& out);
  // One member's part of it, inside a job of the team: what the others write is there after the stage.  The scratch
  // must have been grown to kernels::conv_scratch_bytes() before.  A share of panels begins at a multiple of `grain`.
  Share conv_part(const Part& part, const PackedMatrix& matrix, const kernels::ConvGeometry& geometry,
                  const kernels::ConvInput& in, const kernels::ConvOutput& out, size_t grain = 1);
  // y = x W + b on rows of f32.
  void linear(const PackedMatrix& matrix, View<const float, 2> x, View<float, 2> y);
  void stats(const Plane& plane, PlaneStats& stats);
  // work(begin, end) on each member's share of `count` rows.
  template <class Work>
  void split(size_t count, const Work& work) {
    team_.run([&](int member) {
      const Range share = split_range(count, member, team_.size());
      if (share.begin < share.end) work(share.begin, share.end);
    });
    between();
  }
  std::span<std::byte> scratch(int member, size_t size_bytes);

 private:
  // Tiles and panels of an output.
  struct Block {
    Range tiles, panels;
  };
  static Block whole(const PackedMatrix& matrix, const kernels::ConvGeometry& geometry);
  Block block_of_job(const PackedMatrix& matrix, const kernels::ConvGeometry& geometry) const;
  Share conv_block(const Part& part, const PackedMatrix& matrix, const kernels::ConvGeometry& geometry,
                   const kernels::ConvInput& in, const kernels::ConvOutput& out, const Block& block, size_t grain);

  ThreadTeam& team_;
  BetweenJobs between_;
  std::function<bool()> cuts_;
  std::vector<Buffer<std::byte>> scratch_;
};

// For a stage that one member of a larger team runs by itself: a team of its caller alone, which makes no thread.
struct SoloRunner {
  ThreadTeam team{1};
  Runner runner{team};
};

// Instance norm with an affine from a style (AdaIN): scale and shift per channel such that x * scale + shift is
// (1 + gamma) (x - mean) / sqrt(var + 1e-5) + beta, over all rows described.  gamma_beta is [2C], gamma first; scale
// and shift are padded to 32 with zeros.
void adain_coefficients(const kernels::TileStats& stats, size_t channels, const float* gamma_beta, float* scale,
                        float* shift);

}  // namespace syrinx::nn
