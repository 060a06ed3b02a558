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
// Floats that the layers behind the last upsampling make at a time: with what they read, a piece fits the second-level
// cache, which a frame does not.
constexpr size_t kPieceFloats = 32768;
constexpr size_t kSlackBytes = 128;  // behind the rows: the last tap is read up to the matrix's depth

}  // namespace

Seanet::Seanet(const std::vector<SeanetLayer>& chain, size_t rows, nn::Runner& runner) : chain_(chain), rows_(rows) {
  size_t body = 0, sums = 0, hidden = 0, piece_bytes = 0;
  for (size_t i = 0; i < chain.size(); ++i) {
    const SeanetLayer& layer = chain[i];
    const Conv& conv = layer.conv;
    SYRINX_CHECK(rows % conv.stride == 0, "{} rows, stride {}", rows, conv.stride);
    guard_ = std::max(guard_, round_up(conv.kept_bytes(), 64));
    histories_at_.push_back(history_bytes_);
    history_bytes_ += conv.kept_bytes();
    body = std::max(body, conv.input_bytes(rows));
    // Members of a team would wait for each other in every piece.
    if (conv.up > 1 && runner.team().size() == 1 && !chain.back().conv.dot.empty()) {
      pieces_from_ = i;
      piece_bytes = conv.input_bytes(rows);
      piece_rows_ = std::max<size_t>(kPieceFloats / (conv.up * conv.width) / kBlockRows, 1) * kBlockRows;
    }
    if (layer.second) {
      hidden = std::max(hidden, layer.second->input_bytes(kBlockRows));
    } else {
      rows = rows / conv.stride * conv.up;
      sums = std::max(sums, rows * conv.width);
    }
  }
  for (size_t i = 0; i < (in_pieces() ? 3 : 2); ++i)
    planes_[i] = Buffer<std::byte>(guard_ + (i == 2 ? piece_bytes : body) + kSlackBytes);
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
  const size_t rows = in.extent(0);
  SYRINX_CHECK(state.histories.size() == history_bytes_ && rows <= rows_, "a state of {} bytes, needs {}; {} rows",
               state.histories.size(), history_bytes_, rows);
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
    put_history(state, 0);
    std::fill_n(plane(0) + first.input_bytes(round_up(rows, first.stride)), kSlackBytes, std::byte{0});
    fill_stride(0, rows);
  });
  const Task task{.state = state, .out = out, .stage = stage, .probe = probe};
  if (!in_pieces() || probe) {
    run_layers(seat, task, {0, chain_.size()}, {0, rows}, 0);
    return;
  }
  const size_t made = run_layers(seat, task, {0, pieces_from_}, {0, rows}, 0);
  for (size_t from = 0, to = 0; from < made; from += piece_rows_)
    to += run_layers(seat, task, {pieces_from_, chain_.size()}, {from, std::min(from + piece_rows_, made)}, to);
}

// The rows before those of the pass, in front of what a layer reads.
void Seanet::put_history(const SeanetState& state, size_t layer) {
  const size_t bytes = chain_[layer].conv.kept_bytes();
  std::copy_n(state.histories.data() + histories_at_[layer], bytes, plane(layer) - bytes);
}

// Zeros behind `rows` rows of what a layer reads, up to its stride.
void Seanet::fill_stride(size_t layer, size_t rows) {
  const Conv& conv = chain_[layer].conv;
  const size_t missing = round_up(rows, conv.stride) - rows;
  std::fill_n(plane(layer) + conv.input_bytes(rows), conv.input_bytes(missing), std::byte{0});
}

size_t Seanet::run_layers(nn::Crew::Seat& seat, const Task& task, Range layers, Range taken, size_t first) {
  size_t rows = taken.end - taken.begin;
  for (size_t i = layers.begin; i < layers.end; ++i) {
    const SeanetLayer& layer = chain_[i];
    const Conv& conv = layer.conv;
    const bool last = i + 1 == chain_.size();
    const size_t filled = round_up(rows, conv.stride);
    const size_t made = layer.second ? rows : filled / conv.stride * conv.up;
    const std::byte* const read = plane(i) + (i == layers.begin ? conv.input_bytes(taken.begin) : 0);
    Target to{.output = task.out.data() + first};
    if (!last) {
      const SeanetLayer& next = chain_[i + 1];
      to = {.output = next.second || task.probe ? sums_.data() : nullptr,
            .ready = plane(i + 1),
            .type = next.conv.input_type,
            .activation = next.conv.elu ? RowActivation::kElu : RowActivation::kNone};
    }
    seat.stage([&](const nn::Part& part) {
      if (part.rank == 0) {
        std::copy_n(read + conv.input_bytes(rows) - conv.kept_bytes(), conv.kept_bytes(),
                    task.state.histories.data() + histories_at_[i]);
        if (!last) {
          put_history(task.state, i + 1);
          fill_stride(i + 1, made);
        }
      }
      if (layer.second) {
        residual_block(part, layer, read, rows, to);
      } else {
        conv.run(part, read, filled, to);
      }
    });
    rows = made;
    if (!task.probe) continue;
    const size_t width = layer.second ? layer.second->width : conv.width;
    seat.stage([&](const nn::Part& part) {
      if (part.rank == 0) task.probe(task.stage, layer.module, {to.output, {rows, width}});
    });
  }
  return rows;
}

}  // namespace syrinx::mimi
