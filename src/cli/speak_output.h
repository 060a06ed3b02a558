// Where speech goes: a file, standard output, the loudspeaker, or a file and the loudspeaker.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "audio/device/playback.h"
#include "audio/encode/encoder.h"
#include "base/result.h"
#include "base/scoped_file.h"

namespace syrinx::cli {

struct OutputOptions {
  std::string file;    // "-" is standard output; empty: none
  std::string format;  // empty: by the file's ending, else wav
  bool play = false;
};

// A file appears only by finish(); before, on any failure, it is as if it had never been opened.
class SpeechOutput {
 public:
  // With neither file nor play, plays if there is a loudspeaker.  Fails early: format, folder, device.
  static Result<std::unique_ptr<SpeechOutput>> open(const OutputOptions& options, int rate_hz);

  Status write(std::span<const float> samples, const std::atomic<bool>& cancel);
  Status finish(const std::atomic<bool>& cancel);
  // "speech.wav", "standard output", "the loudspeaker"
  const std::string& where() const { return where_; }

 private:
  explicit SpeechOutput(int rate_hz) : rate_hz_(rate_hz) {}
  Status open_file(const OutputOptions& options);

  const int rate_hz_;
  ScopedFile file_;
  bool to_file_ = false;
  std::unique_ptr<AudioEncoder> encoder_;  // uses file_
  std::unique_ptr<Playback> playback_;
  std::string where_;
};

}  // namespace syrinx::cli
