#include "models/mimi/seanet.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/bf16.h"
#include "kernels/row_conv.h"

namespace syrinx::mimi {

using kernels::RowActivation;
using kernels::RowConv;

namespace {

// Rows of a residual block at a time: two of the kernel's blocks, whose inner rows stay in the first-level cache.
constexpr size_t kBlockRows = 24;
constexpr size_t kSlackBytes = 128;  // behind the rows: the last tap is read up to the matrix's depth

}  // namespace

Seanet::Seanet(const std::vector<SeanetLayer>& chain, size_t rows, nn::Runner& runner) : chain_(chain), rows_(rows) {
  size_t body = 0, sums = 0, hidden = 0;
  for (const SeanetLayer& layer : chain) {
    const Conv& conv = layer.conv;
    SYRINX_CHECK(rows % conv.stride == 0, "{} rows, stride {}", rows, conv.stride);
    guard_ = std::max(guard_, round_up(conv.kept_bytes(), 64));
    history_bytes_ += conv.kept_bytes();
    body = std::max(body, conv.input_bytes(rows));
    if (layer.second) {
      hidden = std::max(hidden, layer.second->input_bytes(kBlockRows));
    } else {
      rows = rows / conv.stride * conv.up;
      sums = std::max(sums, rows * conv.width);
    }
  }
  for (Buffer<std::byte>& plane : planes_) plane = Buffer<std::byte>(guard_ + body + kSlackBytes);
  sums_ = Buffer<float>(sums);
  for (int member = 0; member < runner.team().size(); ++member) hidden_.emplace_back(hidden);
}

void Seanet::reset(SeanetState& state) {
  std::fill(state.histories.begin(), state.histories.end(), std::byte{0});  // zeros in either type
}

// x + second(elu(conv(elu(x)))), some rows at a time; x lies in sums_, elu(x) in `in`.
void Seanet::residual_block(const nn::Part& part, const SeanetLayer& layer, const std::byte* in, size_t rows,
                            const Target& to) {
  const Conv &conv = layer.conv, &second = *layer.second;
  std::byte* const hidden = hidden_[static_cast<size_t>(part.member)].data();
  const Range own = part.split(rows, kBlockRows / 2);
  for (size_t row = own.begin; row < own.end; row += kBlockRows) {
    const size_t count = std::min(kBlockRows, own.end - row), at = row * second.width;
    const RowConv inner{.input = in + conv.input_bytes(row) - conv.kept_bytes(),
                        .input_type = conv.input_type,
                        .rows = count,
                        .row_step = conv.input_width,
                        .tap_step = conv.dilation * conv.input_width,
                        .activated = hidden,
                        .activated_type = second.input_type,
                        .stride = conv.width,
                        .activation = RowActivation::kElu};
    kernels::row_conv(conv.matrix.view, inner, {0, count}, {0, conv.matrix.view.panel_count()});
    const RowConv outer{.input = hidden,
                        .input_type = second.input_type,
                        .rows = count,
                        .row_step = second.input_width,
                        .output = to.output == nullptr ? nullptr : to.output + at,
                        .activated = to.ready_at(at),
                        .activated_type = to.type,
                        .stride = second.width,
                        .residual = sums_.data() + at,
                        .residual_stride = second.width,
                        .activation = to.activation};
    kernels::row_conv(second.matrix.view, outer, {0, count}, {0, second.matrix.view.panel_count()});
  }
}

void Seanet::run(nn::Crew::Seat& seat, SeanetState& state, View<const float, 2> in, View<float, 2> out,
                 std::string_view stage, const Probe& probe) {
  size_t rows = in.extent(0);
  SYRINX_CHECK(state.histories.size() == history_bytes_ && rows <= rows_, "a state of {} bytes, needs {}; {} rows",
               state.histories.size(), history_bytes_, rows);
  std::byte* history = state.histories.data();
  const auto put_history = [&](size_t layer) {
    std::copy_n(history, chain_[layer].conv.kept_bytes(), plane(layer) - chain_[layer].conv.kept_bytes());
  };
  seat.stage([&](const nn::Part& part) {
    const Conv& first = chain_[0].conv;
    const Range own = part.split(rows);
    for (size_t row = own.begin; row < own.end && !rounds_input(); ++row)
      std::copy_n(in.row(row), first.input_width, reinterpret_cast<float*>(plane(0) + first.input_bytes(row)));
    if (rounds_input() && own.begin < own.end) {
      const View<const float, 2> from(in.row(own.begin), {own.end - own.begin, first.input_width}, {in.stride(0), 1});
      kernels::round_rows(from, reinterpret_cast<uint16_t*>(plane(0) + first.input_bytes(own.begin)),
                          first.input_width);
    }
    if (part.rank != 0) return;
    put_history(0);
    std::fill_n(plane(0) + first.input_bytes(rows), kSlackBytes, std::byte{0});
  });
  for (size_t i = 0; i < chain_.size(); ++i) {
    const SeanetLayer& layer = chain_[i];
    const Conv& conv = layer.conv;
    const bool last = i + 1 == chain_.size();
    const std::byte* const read = plane(i);
    Target to{.output = out.data()};
    if (!last) {
      const SeanetLayer& next = chain_[i + 1];
      to = {.output = next.second || probe ? sums_.data() : nullptr,
            .ready = plane(i + 1),
            .type = next.conv.input_type,
            .activation = next.conv.elu ? RowActivation::kElu : RowActivation::kNone};
    }
    std::byte* const own_history = history;
    history += conv.kept_bytes();
    seat.stage([&](const nn::Part& part) {
      if (part.rank == 0) {
        std::copy_n(read + conv.input_bytes(rows) - conv.kept_bytes(), conv.kept_bytes(), own_history);
        if (!last) put_history(i + 1);
      }
      if (layer.second) {
        residual_block(part, layer, read, rows, to);
      } else {
        conv.run(part, read, rows, to);
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
