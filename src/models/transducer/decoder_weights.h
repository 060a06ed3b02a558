// Weights of a transducer's prediction network and joint, and of the CTC head that hybrids have beside them (spec
// transducer-asr.md, sections 1.4, 4.1; the maker's nemo/collections/asr/modules/rnnt.py, RNNTDecoder and RNNTJoint).
//
//   prediction network   e = embed[y], then per LSTM layer  z = W_ih e + b_ih + W_hh h + b_hh   (gates i, f, g, o)
//   joint                z = W_out relu(W_enc enc_t + b_enc + W_pred g_u + b_pred) + b_out
//
// d encoder width, P LSTM width, J joint width, V labels without blank, N durations (0 for RNN-T).  Blank is label V.
//
// Immutable once read; any number of threads and streams may share them.
#pragma once

#include <memory>
#include <vector>

#include "kernels/matrix_store.h"
#include "models/transducer/config.h"
#include "models/transducer/weight_reader.h"
#include "tensor/buffer.h"

namespace syrinx::transducer {

struct LstmLayer {
  kernels::OwnedMatrix input;      // P -> 4P, the bias both of PyTorch's; empty for the first layer of a table
  kernels::OwnedMatrix recurrent;  // P -> 4P, no bias
};

// Rows of f32 that a step looks up; in the packed cache where there is one.
struct LabelTable {
  size_t width = 0;
  kernels::StoredBytes bytes;

  std::span<const float> row(size_t label) const {
    return {reinterpret_cast<const float*>(bytes.view.data()) + label * width, width};
  }
};

struct DecoderWeights {
  DecoderConfig config;
  std::shared_ptr<const PackedFile> packed;  // what the matrices are views of, if they are
  size_t encoder_width = 0;                  // d
  // Small vocabularies: [V + 1, 4P], what the first layer's gates get from each label, both biases included; so a step
  // reads one row instead of half the layer's weights.  Large ones: [V + 1, P], the embedding.
  LabelTable labels;
  bool gates_by_label = false;
  std::vector<LstmLayer> layers;
  kernels::OwnedMatrix joint_encoder;     // d -> J
  kernels::OwnedMatrix joint_prediction;  // P -> J
  kernels::OwnedMatrix joint_output;      // J -> V + 1 + N
  kernels::OwnedMatrix ctc;               // d -> V + 1, where config.ctc

  int32_t blank() const { return static_cast<int32_t>(config.vocabulary); }
  bool has_transducer() const { return config.kind != HeadKind::kCtc; }
};

// Above this the table of gates would cost more memory than the reading of half a layer is worth: 10 MB for a
// vocabulary of 1024 labels, 84 MB for one of 8192.
inline constexpr size_t kMaxGateTableBytes = size_t{16} << 20;

// Takes the tensors `decoder.*`, `joint.*` and `ctc_decoder.*`; what is wrong with them stands in reader.finish().
DecoderWeights read_decoder(WeightReader& reader, const Config& config, size_t max_table_bytes = kMaxGateTableBytes);

}  // namespace syrinx::transducer
