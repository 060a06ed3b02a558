// Whisper's log-mel spectrum (spec whisper.md, section 1; OpenAI's whisper/audio.py): frames of 400 samples every 160
// under a periodic Hann window, their power, Slaney's mel filters, log10.  The audio is mirrored by 200 samples at both
// ends, so frame i is centred on sample 160 i.
//
// The network's input is clamped to 8 below the greatest value, of the window or of the whole file: a caller's choice,
// so the two steps are apart.
#pragma once

#include <span>
#include <vector>

#include "audio/mel_bank.h"
#include "base/result.h"
#include "base/thread_team.h"
#include "kernels/fft.h"
#include "tensor/view.h"

namespace syrinx::whisper {

// Immutable; thread-safe.
class LogMel {
 public:
  // 1 to 512 mel bands between 0 and 8000 Hz.
  static Result<LogMel> create(size_t mels);

  size_t mels() const { return bank_.mels(); }
  // Frames of so many samples: the one centred on the end is dropped.
  static size_t frame_count(size_t samples);
  size_t scratch_size() const;  // floats

  // Frames [first, first + n) of out [n, mels], of `samples` and the zeros behind them up to `total_samples`, which is
  // at least 201.  OpenAI adds 480000 zeros, faster-whisper 160; a single window has 480000 samples in all.  Samples
  // that are not finite count as silence.  Allocates nothing.
  void compute(std::span<const float> samples, size_t total_samples, size_t first, std::span<float> scratch,
               View<float, 2> out) const;

 private:
  LogMel(kernels::RealFft fft, MelBank bank);

  kernels::RealFft fft_;
  MelBank bank_;
  std::vector<float> window_;  // [400]
};

// All frames of a sound, shared out among a team: [frame_count(total_samples), mels].
std::vector<float> log_mel_of(const LogMel& log_mel, std::span<const float> samples, size_t total_samples,
                              ThreadTeam& team);

// The greatest value.
float peak(View<const float, 2> log_mel);
// (max(x, peak - 8) + 4) / 4; out may be log_mel.
void normalise(View<const float, 2> log_mel, float peak, View<float, 2> out);

}  // namespace syrinx::whisper
