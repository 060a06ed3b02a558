#include "models/mimi/seanet.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/row_conv.h"

namespace syrinx::mimi {

using kernels::RowActivation;
using kernels::RowConv;

namespace {

// Of a residual block at a time: two of the kernel's blocks, whose inner rows stay in the first-level cache.
constexpr size_t kBlockRows = 24;
constexpr size_t kSlack = 32;  // floats behind the rows: the last tap is read up to the matrix's depth

size_t kept(const Conv& conv) { return conv.history * conv.input_width; }

}  // namespace

Seanet::Seanet(const std::vector<SeanetLayer>& chain, size_t rows, nn::Runner& runner) : chain_(chain), rows_(rows) {
  size_t body = 0, sums = 0, hidden = 0;
  for (const SeanetLayer& layer : chain) {
    const Conv& conv = layer.conv;
    SYRINX_CHECK(rows % conv.stride == 0, "{} rows, stride {}", rows, conv.stride);
    guard_ = std::max(guard_, kept(conv));
    history_floats_ += kept(conv);
    body = std::max(body, rows * conv.input_width);
    if (layer.second) {
      hidden = std::max(hidden, kBlockRows * conv.width);
    } else {
      rows = rows / conv.stride * conv.up;
      sums = std::max(sums, rows * conv.width);
    }
  }
  for (Buffer<float>& plane : planes_) plane = Buffer<float>(guard_ + body + kSlack);
  sums_ = Buffer<float>(sums);
  for (int member = 0; member < runner.team().size(); ++member) hidden_.emplace_back(hidden);
}

void Seanet::reset(SeanetState& state) { std::fill(state.histories.begin(), state.histories.end(), 0.0f); }

View<float, 2> Seanet::input(size_t rows) {
  SYRINX_CHECK(rows <= rows_, "{} rows into a pass of {}", rows, rows_);
  return {plane(0), {rows, chain_.front().conv.input_width}};
}

void Seanet::convolve(const nn::Part& part, const Conv& conv, const float* in, size_t rows, const Target& to) {
  const size_t width = conv.input_width, count = rows / conv.stride;
  in -= kept(conv);
  if (!conv.dot.empty()) {
    const Range own = part.split(count);
    return kernels::row_dot(conv.dot.data(), conv.dot.size(), conv.dot_bias, in, width, to.output, own);
  }
  const RowConv work{.input = in,
                     .rows = count,
                     .row_step = conv.stride * width,
                     .tap_step = conv.dilation * width,
                     .output = to.output,
                     .activated = to.activated,
                     .stride = conv.up * conv.width,
                     .activation = RowActivation::kElu};
  const auto own = kernels::share_row_conv(conv.matrix.view, count, part.rank, part.size);
  kernels::row_conv(conv.matrix.view, work, own.rows, own.panels);
}

// x + second(elu(conv(elu(x)))), some rows at a time; x lies in sums_, elu(x) in `in`.
void Seanet::residual_block(const nn::Part& part, const SeanetLayer& layer, const float* in, size_t rows,
                            const Target& to) {
  const Conv &conv = layer.conv, &second = *layer.second;
  float* const hidden = hidden_[static_cast<size_t>(part.member)].data();
  const Range own = part.split(rows, kBlockRows / 2);
  for (size_t row = own.begin; row < own.end; row += kBlockRows) {
    const size_t count = std::min(kBlockRows, own.end - row), at = row * second.width;
    const RowConv inner{.input = in + row * conv.input_width - kept(conv),
                        .rows = count,
                        .row_step = conv.input_width,
                        .tap_step = conv.dilation * conv.input_width,
                        .activated = hidden,
                        .stride = conv.width,
                        .activation = RowActivation::kElu};
    kernels::row_conv(conv.matrix.view, inner, {0, count}, {0, conv.matrix.view.panel_count()});
    const RowConv outer{.input = hidden,
                        .rows = count,
                        .row_step = second.input_width,
                        .output = to.output == nullptr ? nullptr : to.output + at,
                        .activated = to.activated == nullptr ? nullptr : to.activated + at,
                        .stride = second.width,
                        .residual = sums_.data() + at,
                        .residual_stride = second.width,
                        .activation = RowActivation::kElu};
    kernels::row_conv(second.matrix.view, outer, {0, count}, {0, second.matrix.view.panel_count()});
  }
}

void Seanet::run(nn::Crew::Seat& seat, SeanetState& state, size_t rows, View<float, 2> out, std::string_view stage,
                 const Probe& probe) {
  SYRINX_CHECK(state.histories.size() == history_floats_ && rows <= rows_, "a state of {} floats, needs {}; {} rows",
               state.histories.size(), history_floats_, rows);
  float* history = state.histories.data();
  const auto put_history = [&](size_t layer) {
    std::copy_n(history, kept(chain_[layer].conv), plane(layer) - kept(chain_[layer].conv));
  };
  seat.stage([&](const nn::Part& part) {
    if (part.rank != 0) return;
    put_history(0);
    std::fill_n(plane(0) + rows * chain_[0].conv.input_width, kSlack, 0.0f);
  });
  for (size_t i = 0; i < chain_.size(); ++i) {
    const SeanetLayer& layer = chain_[i];
    const Conv& conv = layer.conv;
    const bool last = i + 1 == chain_.size();
    const float* const in = plane(i);
    Target to{.output = out.data()};
    if (!last) {
      const SeanetLayer& next = chain_[i + 1];
      const bool elu = next.conv.elu;
      to.activated = elu ? plane(i + 1) : nullptr;
      to.output = !elu ? plane(i + 1) : next.second || probe ? sums_.data() : nullptr;
    }
    float* const own_history = history;
    history += kept(conv);
    seat.stage([&](const nn::Part& part) {
      if (part.rank == 0) {
        std::copy_n(in + rows * conv.input_width - kept(conv), kept(conv), own_history);
        if (!last) put_history(i + 1);
      }
      if (layer.second) {
        residual_block(part, layer, in, rows, to);
      } else {
        convolve(part, conv, in, rows, to);
      }
    });
    if (!layer.second) rows = rows / conv.stride * conv.up;
    if (!probe) continue;
    const size_t width = layer.second ? layer.second->width : conv.width;
    seat.stage([&](const nn::Part& part) {
      if (part.rank == 0) probe(stage, layer.module, {to.output, {rows, width}});
    });
  }
}

}  // namespace syrinx::mimi
