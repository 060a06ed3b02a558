// The convolutions of a SEANet, read out of a checkpoint.  Immutable once read: any number of threads and streams share
// them.  Reading is for load time and one thread.
#pragma once

#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernels/matrix_store.h"
#include "kernels/pack.h"
#include "kernels/row_conv.h"
#include "models/mimi/config.h"
#include "nn/causal_conv.h"

namespace syrinx::mimi {

// Matrices are bf16 where the checkpoint's weights are, else f32 (kernels/pack.h).
using Conv = nn::CausalConv;

// One entry of the chain that a SEANet is: a convolution, or x + second(conv(x)).
struct SeanetLayer {
  size_t module = 0;  // its number in the maker's list, which also counts the activations
  Conv conv{};
  std::optional<Conv> second{};  // 1 x 1, without history
};

// Reads chains whose entry N has the tensors NAME.N.conv, NAME.N.convtr, or NAME.N.block.1.conv and .block.3.conv.
class SeanetReader {
 public:
  // A tensor of exactly these dims in f32, row-major.  Empty where there is none, which whoever reads remembers:
  // then the chain is not to be used.
  using Read = std::function<std::vector<float>(const std::string& name, const std::vector<size_t>& dims)>;
  // Matrices come out of `store`, which is borrowed, where it has them.  `narrow`: rows that meet weights of bf16 are
  // bf16.
  SeanetReader(Read read, kernels::MatrixStore& store, bool narrow)
      : read_(std::move(read)), store_(store), narrow_(narrow) {}

  std::vector<SeanetLayer> encoder(const std::string& name, const SeanetConfig& config);
  std::vector<SeanetLayer> decoder(const std::string& name, const SeanetConfig& config);

  // Packs a tensor of which element index(n, k, t) is the weight of column n, channel k, tap t, or no element: zero.
  static constexpr size_t kNoElement = std::numeric_limits<size_t>::max();
  template <class Index>
  kernels::OwnedMatrix matrix(const std::string& tensor, const std::vector<size_t>& dims,
                              const kernels::MatrixShape& shape, const Index& index, std::span<const float> bias = {}) {
    return store_.get(tensor, shape, {PanelType::kF32, PanelType::kBf16}, [&]() -> kernels::OwnedMatrix {
      const std::vector<float> weight = read_(tensor, dims);
      if (weight.empty()) return {};
      const auto at = [&](size_t n, size_t k, size_t t) {
        const size_t element = index(n, k, t);
        return element == kNoElement ? 0.0f : weight[element];
      };
      return kernels::pack_exact(shape, at, bias);
    });
  }
  bool narrow() const { return narrow_; }
  // How what this matrix reads is stored.
  kernels::RowType row_type(const kernels::OwnedMatrix& matrix) const {
    return narrow_ && matrix.view.type == PanelType::kBf16 ? kernels::RowType::kBf16 : kernels::RowType::kF32;
  }

 private:
  struct ConvShape {
    size_t out = 0, in = 0, kernel = 0, stride = 1, dilation = 1;
  };
  Conv conv(const std::string& name, const ConvShape& shape, bool elu);
  Conv transposed(const std::string& name, size_t in, size_t out, size_t stride);
  Conv from_samples(const std::string& name, size_t out, size_t kernel);
  Conv to_samples(const std::string& name, size_t in, size_t kernel);
  void residual_blocks(const std::string& name, size_t& module, size_t width, const SeanetConfig& config,
                       std::vector<SeanetLayer>& chain);

  const Read read_;
  kernels::MatrixStore& store_;
  const bool narrow_;  // bf16 is multiplied by bf16
};

}  // namespace syrinx::mimi
