// Measurements of `syrinx bench qwen3-tts`, of one checkpoint in one process: texts as `syrinx speak` speaks them,
// alone and several at once, and then the stages of a frame, one after another.
//
// Speech is as long as the work asks for where the checkpoint does not end it before, as random ones never do.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "bench/suite/qwen_rests.h"
#include "bench/suite/qwen_twins.h"
#include "bench/suite/rounds.h"
#include "bench/suite/spoken_texts.h"
#include "kernels/limits.h"
#include "models/qwen_tts/codec_config.h"
#include "models/qwen_tts/config.h"
#include "tensor/precision.h"

namespace syrinx::bench {

// A frame without draws, without penalty, with the text beside the sound, behind a long prompt; the twins; and in
// another precision.
inline constexpr const char* kQwenAblations[] = {"draws", "penalty", "text", "prompt", "twins",
                                                 "f32",   "bf16",    "int8", "int4"};

struct QwenWork {
  std::string checkpoint, models_folder;  // as find_speech_files() takes them
  std::string cache_folder;               // where packed weights are kept; empty: nowhere
  std::string voice;                      // empty: the default
  Precision precision = Precision::kInt8;
  int threads = 1;
  size_t runs = 3;  // counted, after a short one that is not
  std::vector<SpokenText> texts;
  double word_seconds = 0.4;           // of sound for each word of a text
  std::vector<size_t> streams;         // 1 to QwenEngine::kMaxSessions each
  double stream_seconds = 4;           // doubled, three times at most, where steady_step_ms() finds them too short
  size_t frames = 50;                  // of the stages, after five that are not counted; 0: no stages
  std::vector<std::string> ablations;  // of kQwenAblations
  double idle_seconds = 0;             // of rest before more frames of the stages; 0: there is none
  size_t rests = 3;                    // so long
};

// A text, spoken in pieces and chunks as by `syrinx speak`; times from the text on, loading left out.
struct QwenTextFigures {
  SpokenText text;
  size_t pieces = 0;
  double audio_seconds = 0, frames = 0;  // of a run
  Times wall;
  Times prefill, generate, decode;  // of it
  Times first_byte;                 // the first samples are there
  Times playable;                   // who begins to play never waits for more
  // The first sample above -40 dB of full scale is heard by who begins to play then; only of runs that have one.
  Times audible;
  size_t rss_bytes = 0;  // resident behind the last run
};

// A chunk of a stream: when it came, and the frames from the first one to its last.
struct ChunkArrival {
  double ms = 0, frames = 0;
};
// The time of a frame of each of the streams, which share a clock, while all of them speak: of each stream from its
// first to its last chunk that came after every stream's first one and before any stream's end, all such times over all
// frames in them.  No prompt is read meanwhile, and every frame of them is decoded.  Nothing where a stream has fewer
// than two such chunks.
std::optional<double> steady_step_ms(std::span<const std::vector<ChunkArrival>> streams);

// Streams that begin together.
struct QwenStreamsFigures {
  size_t streams = 0;
  Times step;  // steady_step_ms() of each run that has one
};

// Frames one after another, each decoded by itself.
struct QwenStages {
  std::string name;
  size_t positions = 0;                    // of the prompt
  Times prompt, talker, predictor, codec;  // the prompt, and of each frame
  Times frame;                             // their sum
};

struct QwenChunkFigures {
  size_t frames = 0;
  Times codec;  // of one of them
};

struct QwenFigures {
  double load_ms = 0, frame_ms = 80;  // the latter of sound
  std::vector<QwenTextFigures> texts;
  size_t peak_rss_bytes = 0;  // of loading and speaking, one text at a time
  std::vector<QwenStreamsFigures> streams;
  size_t streams_rss_bytes = 0;    // the most when all of them spoke
  std::vector<QwenStages> stages;  // the first as `speak` computes, then ablations
  std::vector<QwenTwin> twins;
  std::vector<QwenChunkFigures> chunks;
  std::vector<QwenRest> rests;  // of idle_seconds; fewer where the checkpoint ends its text before
  double peak_sample = 0;       // of the stages' sound; NaN once a sample is no number
  qwen_tts::Config config;
  qwen_tts::CodecDecoderConfig codec;
  bool codec_reads_bf16 = false, codec_reads_int16 = false;
};

// Errors of the engine; kUnsupported: a checkpoint of something else, or one that ends its speech at once; kDataLoss:
// one whose values are not numbers.  kCancelled after a signal.
Result<QwenFigures> measure_qwen(const QwenWork& work);

// The least work of a frame: bytes of weights that are read, those of the predictor once for each of its passes, and
// operations of the codec's matrices and convolutions (a multiply-add is two).
struct QwenFrameCost {
  double weight_bytes = 0, codec_flop = 0;
};
QwenFrameCost qwen_frame_cost(const qwen_tts::Config& config, const qwen_tts::CodecDecoderConfig& codec,
                              Precision precision);

// The bound of a frame: its weights at the best read rate, then its codec at a peak, on all threads of the limits;
// 0 where this machine's kernels have no such peak.  int16 goes at half the rate of the dot products of int8.
struct QwenFrameFloor {
  double codec_f32_ms = 0, codec_bf16_ms = 0, codec_int16_ms = 0;
};
QwenFrameFloor qwen_frame_floor(const QwenFrameCost& cost, const kernels::MachineLimits& limits);

}  // namespace syrinx::bench
