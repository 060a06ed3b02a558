// Measurements of `syrinx bench pocket-tts`: one checkpoint, one text, one voice, everything in one process.
//
// The text and the voice are random numbers of the right count, since their values cost no time, and the end of speech
// is switched off, so that every run makes the same number of frames.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "base/result.h"
#include "base/thread_team.h"
#include "bench/suite/rounds.h"
#include "kernels/limits.h"
#include "models/pocket_tts/flow_lm.h"
#include "models/pocket_tts/model.h"

namespace syrinx::bench {

struct PocketWork {
  size_t tokens = 41;
  size_t voice_frames = 125;  // of the prompt: ten seconds
  size_t frames = 100;        // spoken by each run: eight seconds
  size_t runs = 7;            // counted, after one that is not
  size_t first_sounds = 100;
  bool stages = true;
  double recording_seconds = 11;  // that is cloned; 0: none
  std::vector<size_t> streams;    // numbers of streams that speak together
};

struct StreamsFigures {
  size_t streams = 0;
  Times round;  // a frame of each stream
};

struct PocketFigures {
  Times prompt;                 // the voice's frames through the language model
  Times encode, encode_prompt;  // of the recording: codec, then language model
  double encoder_load_ms = 0;
  Rounds first_sound;  // from the ids of the text to 80 ms of samples, voice ready
  Times run;           // a text and all its frames
  Times frame;         // of a run, each but the first; stages may overlap
  // The same, one stage after another: the text, and of each frame its stages and their sum.
  Times text, flow_lm, head, codec, stages;
  std::vector<StreamsFigures> streams;
  size_t peak_rss_bytes = 0;  // of speaking, before anything is cloned and before there are several streams
  size_t rss_bytes = 0;       // resident then
  double peak_sample = 0;     // of all frames; NaN once a sample is no number
};

// kInvalidArgument: more tokens, frames or streams than the model takes.  kCancelled after a signal.
Result<PocketFigures> measure_pocket(const pocket::Model& model, ThreadTeam& team, const PocketWork& work);

// Minimal work of a frame: weights that are read and multiplications of the codec's matrices and convolutions (a
// multiply-add is two; attention would be 3 % more).
struct FrameCost {
  double flow_lm_weights = 0;  // numbers, the head's included
  double codec_flop = 0;
};
FrameCost frame_cost(const pocket::Config& config, size_t evaluations);

// Bound of a frame on this machine: its weights at the best read rate, then its codec at a peak, one after the other on
// all threads of the limits.  `codec_f32_ms` takes the f32 peak whatever the codec multiplies in, so that all
// precisions share one yardstick; a codec in bf16 can come below it.  `codec_bf16_ms` takes the bf16 peak, which a
// frame that multiplies in bf16 cannot come below; 0 where this machine's kernels have no such peak.
struct FrameFloor {
  double codec_f32_ms = 0;
  double codec_bf16_ms = 0;
};
FrameFloor frame_floor(const FrameCost& cost, double bytes_a_weight, const kernels::MachineLimits& limits);

}  // namespace syrinx::bench
