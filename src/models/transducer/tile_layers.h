// Row-wise parts of a block, on tiles of rows that stay in the second-level cache, with norms and activations beside
// the products that they belong to.  Each member of the team takes rows of its own and reads every weight, so this is
// for recordings of some seconds; shorter ones share out the weights instead (encoder_layers.h).  Both give a row the
// same numbers, to the last bit.
//
// Scratch of one team of threads.  Views have a row for each of the recording, or for the rows at hand; members run
// side by side on different rows.
#pragma once

#include <memory>
#include <vector>

#include "models/transducer/encoder_weights.h"
#include "nn/runner.h"
#include "tensor/buffer.h"

namespace syrinx::transducer {

class TileLayers {
 public:
  TileLayers(std::shared_ptr<const EncoderWeights> weights, nn::Runner& runner);

  // Whether a recording of so many rows is long enough for this team.
  bool takes(size_t rows) const;
  // Once before the calls below: the runner's scratch.
  void prepare();

  // x += 1/2 FF(x), with the norm and the matrices of one of a block's two feed-forward modules.
  void feed_forward(int member, const NormWeights& norm, const kernels::OwnedMatrix& first,
                    const kernels::OwnedMatrix& second, View<float, 2> x);
  // to = W LN(x)
  void project(int member, const NormWeights& norm, const kernels::OwnedMatrix& matrix, View<const float, 2> x,
               View<float, 2> to);
  // to = glu(W LN(x))
  void gate(int member, const NormWeights& norm, const kernels::OwnedMatrix& matrix, View<const float, 2> x,
            View<float, 2> to);
  // x += W from
  void add(int member, const kernels::OwnedMatrix& matrix, View<const float, 2> from, View<float, 2> x);

 private:
  struct Member {
    Buffer<float> narrow, wide;  // [tile, d], [tile, F or 2 d], rows a line further apart than they need
  };
  View<float, 2> narrow(int member, size_t rows);
  View<float, 2> wide(int member, size_t rows, size_t columns);
  void linear(int member, const PackedMatrix& matrix, View<const float, 2> x, View<const float, 2> addend,
              View<float, 2> y, bool silu = false);

  std::shared_ptr<const EncoderWeights> weights_;
  nn::Runner& runner_;
  std::vector<Member> members_;
};

}  // namespace syrinx::transducer
