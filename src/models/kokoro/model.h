// Kokoro-82M v1.0: phoneme ids and a style row in, 24 kHz sound out, one piece (a clause or a few sentences) at a time.
// Not autoregressive: the unit of exactness is the piece (specification: Kokoro, sections 3 to 5).
//
// A Model is immutable and shared; a Synthesizer owns the state and scratch of one session and the right to use a team
// of threads.  Errors are values; synthesize() fails only on input outside the limits or a non-finite result.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/mapped_file.h"
#include "base/result.h"
#include "base/thread_team.h"

namespace syrinx::kokoro {

inline constexpr int kSampleRateHz = 24000;
inline constexpr int kSamplesPerFrame = 600;  // one duration unit: 25 ms
inline constexpr size_t kStyleWidth = 256;    // of the published model: decoder style, then prosody style
inline constexpr size_t kMaxIds = 510;        // phoneme ids of a piece, without the zero at either end
inline constexpr size_t kMaxFrames = 6000;    // of a piece, 150 s: what 510 ids give at the slowest speed, with room

enum class Precision { kF32, kInt8 };
const char* precision_name(Precision precision);

struct LoadOptions {
  Precision precision = Precision::kInt8;
  std::string cache_dir;  // folder of packed caches; empty: pack in memory at each load
};

struct Weights;  // packed matrices of every layer

class Model {
 public:
  // `file` is kokoro-v1.0.int8.onnx (or another export with its wiring) or kokoro-v1_0.pth, unchanged; the kind is
  // read from its first bytes.  The mapping is released before load() returns.
  static Result<std::shared_ptr<const Model>> load(MappedFile file, const LoadOptions& options);
  ~Model();
  Precision precision() const;
  size_t weight_bytes() const;
  size_t style_width() const;  // values of a voice row: 256 in the published model
  const Weights& weights() const { return *weights_; }

 private:
  Model();
  std::unique_ptr<Weights> weights_;
};

struct PieceInput {
  std::span<const int32_t> ids;  // 1 to kMaxIds phoneme ids, each 0..177, without the zeros at the ends
  std::span<const float> style;  // [256], a row of a voice
  float speed = 1.0f;            // 0.25 to 4; divides durations
  bool noise = false;            // the reference's source noise, drawn from `seed`
  uint64_t seed = 0;
  std::span<const int32_t> durations = {};  // ids + 2 frame counts that replace the predicted ones (tests, alignment)
  size_t max_frames = kMaxFrames;           // kLimitExceeded where it would be longer, before most of it is computed
};

struct PieceOutput {
  std::vector<float> samples;      // mono, 24 kHz, about [-0.6, 0.6]; 600 for each frame
  std::vector<int32_t> durations;  // [ids + 2] frames for the leading zero, each id, the trailing zero
};

class Synthesizer {
 public:
  // `team` must outlive the synthesizer and serve one caller at a time.
  Synthesizer(std::shared_ptr<const Model> model, ThreadTeam& team);
  ~Synthesizer();
  // Called with a name and a copy of the values of a stage as [rows, columns]; what it changes is what the later stages
  // see.  For parity tests and tools only.
  using Probe = std::function<void(const char* stage, size_t rows, size_t columns, float* values)>;
  void set_probe(Probe probe);
  // `output` is reused: its vectors keep their capacity.  Memory grows to the longest piece seen.  `is_wanted` is asked
  // between the stages, on this thread: kCancelled where it says no.  Empty: always.  `between` is called between jobs
  // of a few milliseconds, in which the team may do other work; empty: the jobs are long.  `cuts` is asked in each
  // layer whether its jobs are short; empty: always.  The samples are the same.
  Status synthesize(const PieceInput& input, PieceOutput& output, const std::function<bool()>& is_wanted = {},
                    const std::function<void()>& between = {}, const std::function<bool()>& cuts = {});

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace syrinx::kokoro
