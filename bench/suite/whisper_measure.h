// Measurements of `syrinx bench whisper`: one checkpoint in one process, stage by stage, and recordings decoded
// greedily window by window without times, the plain loop that the race's peers run too.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "base/result.h"
#include "base/thread_team.h"
#include "bench/suite/rounds.h"
#include "kernels/limits.h"
#include "models/whisper/model.h"
#include "models/whisper/tokens.h"

namespace syrinx::bench {

struct WhisperWork {
  size_t runs = 5;       // counted, after one that is not
  size_t tokens = 100;   // of each run of steps
  size_t positions = 0;  // of the window; 0: the model's
  std::vector<size_t> batches = {1, 5};
};

struct StepFigures {
  size_t batch = 0;
  Times token;  // a step of so many hypotheses
};

struct WhisperFigures {
  Times mel;      // of the window
  Times encode;   // convolutions, layers, and the cross keys and values
  Times prefill;  // a prompt of 4 tokens
  std::vector<StepFigures> steps;
  size_t peak_rss_bytes = 0;
};

// kCancelled after a signal.  Errors of DecoderState::make.
Result<WhisperFigures> measure_whisper(const std::shared_ptr<const whisper::Model>& model, ThreadTeam& team,
                                       const WhisperWork& work);

// Minimal work of a window and a step.  A multiply-add is two.
struct WhisperCost {
  double linear_flop = 0;     // the encoder's matrices and the cross keys and values
  double attention_flop = 0;  // of the encoder
  double conv_flop = 0;
  double token_weights = 0;  // numbers that a step reads: the decoder's matrices and the output
  double cross_values = 0;   // numbers of the cross keys and values
};
WhisperCost whisper_cost(const whisper::Config& config, size_t positions);

// The same at this machine's best rates on all threads of the limits: products at the peak of the precision (attention
// and convolutions of int8 at that of bf16), reads at the read rate.
struct WhisperFloor {
  double encode_ms = 0, token_ms = 0;
};
WhisperFloor whisper_floor(const WhisperCost& cost, Precision precision, const kernels::MachineLimits& limits);

// A recording through mel, encoder and greedy decoding, whole windows one after the other.
struct Heard {
  double total_ms = 0, mel_ms = 0, encode_ms = 0, decode_ms = 0;
  std::vector<int32_t> tokens;  // of all windows, without the prompts and the ends
};
Heard hear(const std::shared_ptr<const whisper::Model>& model, const whisper::Tokens& tokens,
           std::span<const float> samples, ThreadTeam& team);

}  // namespace syrinx::bench
