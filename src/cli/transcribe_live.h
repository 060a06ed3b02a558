// syrinx transcribe --stream and --microphone: text while the sound comes.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "audio/mono_mixer.h"
#include "base/result.h"
#include "engine/recognition/recogniser.h"
#include "engine/recognition/transcript_format.h"

namespace syrinx::cli {

struct LiveTask {
  TranscriptFormat format = TranscriptFormat::kText;
  TranscriptTimes times = TranscriptTimes::kNone;
  TranscribeOptions options = {};
  int chunk_ms = 80;      // what the recogniser is given at once
  bool realtime = false;  // chunks wait until their sound would have been spoken
  bool chunks = false;    // JSON: a line a chunk too
};

// Where the text goes.
struct LiveOutput {
  std::function<Status(std::string_view)> write;  // what stays
  // Makes the terminal's line show what may still change; empty where there is no terminal.
  std::function<void(std::string_view text, size_t stable_bytes)> show = {};
};

// Standard output; what may still change goes there if it is a terminal and the format text, else to standard error if
// that is one.
LiveOutput live_output(const LiveTask& task);

// All that `source` gives, until its end, of which an error (kCancelled after Ctrl-C) is the result, after what was
// heard before it.
Status transcribe_live(const LiveTask& task, Recogniser& recogniser, const SoundSource& source,
                       const LiveOutput& output);

// The microphone until Ctrl-C, which ends it well; `device` as in capture.h.  `seconds` > 0: no longer.
SoundSource microphone(const std::string& device, double seconds);

}  // namespace syrinx::cli
