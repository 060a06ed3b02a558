// syrinx transcribe FILE...: whole recordings, several at once, what is done left alone.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "audio/wav.h"
#include "base/result.h"
#include "engine/recognition/recogniser.h"
#include "engine/recognition/transcript_format.h"

namespace syrinx::cli {

// Limits of each transcribed file.
inline constexpr SoundLimits kTranscribeLimits{.max_seconds = 24 * 3600};

struct TranscribeTask {
  std::vector<std::string> files;     // "-": standard input, whole
  std::string out;                    // of the only file; empty or "-": standard output
  std::string out_dir;                // empty: next to each file, where there are several
  std::optional<PcmFormat> raw = {};  // the files are samples of that kind
  TranscriptFormat format = TranscriptFormat::kText;
  TranscriptTimes times = TranscriptTimes::kNone;
  TranscribeOptions options = {};
  bool separate = false;  // each channel by itself
  bool force = false;     // also what is done already, and over what is there
  int jobs = 1;           // files at once, each with a recogniser of its own
};

using LoadRecogniser = std::function<Result<std::shared_ptr<Recogniser>>()>;

// One file without --out-dir goes to `out`, and its error is the result.  Of several each goes to a file that appears
// whole, named after it with the format's ending; those that are there and not older than their sound are left alone.
// kInvalidArgument, before any work, without `force`: `out` is a file with content, or a transcript's file is there
// with content and older than its sound; and always: a recording would be written over.  A file that fails is noted on
// standard error, the others go on, and the first failure's code is the result's.
Status transcribe_files(const TranscribeTask& task, const LoadRecogniser& load);

// Samples of a pipe: raw ones, or a WAV file.  kCancelled after Ctrl-C.
Status read_pipe(int descriptor, const std::optional<PcmFormat>& raw, const SoundSink& sink);

// Raw samples of a file.
Status read_raw_file(const std::string& path, const PcmFormat& raw, const SoundSink& sink);

}  // namespace syrinx::cli
