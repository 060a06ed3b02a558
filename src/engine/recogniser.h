// A loaded recognition model: turns recordings and streams of sound into text.  Each family has an engine of its own
// behind this interface: whisper_recogniser.h, transducer_recogniser.h.  Thread-safe: transcriptions and streams of
// several threads take turns at the one team of threads and its scratch memory.  A transducer's streams go before
// its recordings: their turn is a step, chunks of some streams or one window.  A recording's is a piece of up to 60 s
// of speech, or of 120 s where voice activity is not heeded, and gives way behind each layer of its encoder, each 20 s
// of its greedy decoder and each frame of a beam search.  Whisper's is a piece
// of at most 30 s of speech, or a whole recording where voice activity is not heeded, and streams wait as long.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/endpointing.h"
#include "engine/recognition_files.h"
#include "engine/speech_gate.h"
#include "engine/transcript.h"
#include "tensor/precision.h"

namespace syrinx {

inline constexpr int kRecognitionRateHz = 16000;  // of every family

// How a model that was trained on whole recordings hears a stream: `chunk_s` at a time, with so much of the sound
// before and behind it, all three rounded to frames of the model.  A result waits for what is behind it.
struct StreamWindow {
  static constexpr double kMaxS = 120;  // of all three together

  double left_s = 10, chunk_s = 2, right_s = 2;
};

struct RecogniserOptions {
  RecognitionFiles files = {};              // of find_recognition_files()
  std::optional<Precision> precision = {};  // absent: the family's default
  int threads = 0;                          // 1 to 64; 0: default_threads()
  std::string cache_folder = {};            // for packed weights; empty: none is kept
  bool heartbeat = false;                   // a little work while idle (heartbeat.h); transducers only
  // Transducers only: streams at once, 1 to 1024, each with memory of its own until it is finished, has failed or is
  // destroyed.  For programs: `syrinx transcribe` runs one stream and has no option for it.
  size_t max_streams = 16;
  // Streams of transducers; kUnsupported for a model of another kind.
  std::optional<int> look_ahead = {};       // of a cache-aware one: frames, one of its own; absent: its first
  std::optional<StreamWindow> window = {};  // of the others; chunk_s > 0, the others >= 0
};

struct TranscribeOptions {
  std::string language = {};  // two letters; empty: the model finds out, or knows but one
  bool words = false;         // times of words
  bool translate = false;     // into English; Whisper's multilingual models only
  // Where voice activity is known: what is no speech is left out of a recording before the model hears it, and voice
  // keeps a stream's utterance open.  Whisper's streams do not hear silence in front of speech either.
  bool voice_activity = true;
  // What counts as speech: kNotFound where no voice activity model is installed, kInvalidArgument without
  // voice_activity.
  VoiceActivityChanges voice = {};
  // When an utterance of a stream is over.  Transducers: max_utterance_s at most 3600, as each partial result spells
  // the whole utterance; kInvalidArgument beyond.
  EndpointChanges endpoints = {};
  std::vector<std::string> boost = {};  // words and phrases to favour; transducers only
  float boost_score = 1.0f;
  // Hypotheses of a beam search, 2 to 16; 0 and 1: greedy, which is several times faster.  Recordings and models with a
  // transducer's head only, and without boost: kUnsupported else.
  int beam = 0;
  // Of a recording: called with each segment once it is found, in order, on the calling thread and while nobody waits
  // for the model; streams tell by their events.
  std::function<void(const TranscriptSegment&)> heard = {};
};

// For recognisers: tells of the segments behind the first `told`, and counts them.
void tell_heard(const TranscribeOptions& options, const Transcript& transcript, size_t& told);

// A stream's news.  Partial results of a segment replace each other; a final one closes it.
struct RecognitionEvent {
  uint64_t segment = 0;  // counts from 0
  bool is_final = false;
  TranscriptSegment result;
  size_t stable_bytes = 0;  // of result.text: this much of it will not change any more
  double latency_ms = 0;    // from the arrival of the last sample that it needed
};

// One speaker's sound as it comes.  One thread.
class RecognitionStream {
 public:
  virtual ~RecognitionStream() = default;
  // Mono, kRecognitionRateHz, any number of samples, about -1 to 1; what is not finite counts as silence,
  // what is greater than kLoudestSample (audio/loudest_sample.h) as that.  Appends what has become known to `events`.
  virtual Status push(std::span<const float> samples, std::vector<RecognitionEvent>& events) = 0;
  // The end of the sound: closes the last segment.  Nothing may be pushed or committed afterwards.
  virtual Status finish(std::vector<RecognitionEvent>& events) = 0;
  // Closes the segment at this moment, whatever the endpointing rules say, with what has been pushed, but perhaps for
  // the last tenth of a second; the stream goes on.
  virtual Status commit(std::vector<RecognitionEvent>& events) = 0;
  virtual const std::string& language() const = 0;  // as Transcript::language
};

class Recogniser {
 public:
  // Called with seconds done of the recording; false stops (kCancelled).
  using Progress = std::function<bool(double done_s)>;

  // Of the family that the files belong to.
  static Result<std::shared_ptr<Recogniser>> load(RecogniserOptions options);
  virtual ~Recogniser() = default;

  // Mono, kRecognitionRateHz, any length.  kUnsupported for options that this family does not heed, kInvalidArgument
  // for a language it does not know.
  virtual Result<Transcript> transcribe(std::span<const float> samples, const TranscribeOptions& options,
                                        const Progress& progress) = 0;
  virtual Result<std::unique_ptr<RecognitionStream>> start(const TranscribeOptions& options) = 0;

  virtual const std::string& name() const = 0;
  virtual Precision precision() const = 0;
  virtual int threads() const = 0;
  virtual double load_ms() const = 0;
};

}  // namespace syrinx
