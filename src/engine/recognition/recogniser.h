// A loaded recognition model: turns recordings and streams of sound into text.  Each family has an engine of its own
// behind this interface, loaded by engine/families/families.h.  Thread-safe: transcriptions and streams of several
// threads take turns at the process's team of threads (schedule/compute.h).  Streams go before recordings, and among
// them the one whose sound is due first (sound_pace.h).  A cache-aware transducer's turn is a step, chunks of some
// streams.  Other work gives way as it goes: windows and pieces of transducers behind each layer of the encoder, each
// part of the greedy decoder and each frame of a beam search; Whisper's windows behind each job of the encoder and each
// token.  A stream waits for the end of a window or piece only where that is its own model's, which is then as urgent
// as the stream: of Whisper a piece is at most 30 s of speech, or all of it where voice activity is not heeded.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/step_counts.h"
#include "engine/knobs.h"
#include "engine/recognition/endpointing.h"
#include "engine/recognition/recognition_files.h"
#include "engine/recognition/speech_gate.h"
#include "engine/recognition/transcript.h"
#include "tensor/precision.h"

namespace syrinx {

class Compute;

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
  // Whether load() returns only when what sessions meet first has run once, so that nobody waits for pages, tables and
  // threads: chunks of streams in steps of every size, or the first and the longest of a stream's windows; a second of
  // a recording, greedily and by beams; Whisper's windows of 10 and 30 s.  For programs in which a session may begin at
  // any moment.  A single recording is heard sooner without.
  bool warm_up = false;
  // Transducers only: streams at once, 1 to 1024, each with memory of its own until it is finished, has failed or is
  // destroyed.  For programs: `syrinx transcribe` runs one stream and has no option for it.
  size_t max_streams = 16;
  Knobs knobs = {};                       // options of the family for loading, by name (recognition_family.h)
  std::shared_ptr<Compute> compute = {};  // whose team and scheduler it uses; null: the process's
};

struct TranscribeOptions {
  std::string language = {};  // two letters; empty: the model finds out, or knows but one
  bool words = false;         // times of words
  bool tokens = false;        // times of tokens too, in their words
  // Times of words for subtitles.  The text is as without them, where `words` may change where Whisper's windows begin.
  bool subtitles = false;
  // Whether segments are placed exactly where a pause was left out of a recording.  Whisper must find the times of
  // words for that; without, its segments are not cut there, and the text is the same.
  bool segment_times = true;
  // Where voice activity is known: what is no speech is left out of a recording before the model hears it, and voice
  // keeps a stream's utterance open.  Whisper's streams do not hear silence in front of speech either.
  bool voice_activity = true;
  // What counts as speech: kNotFound where no voice activity model is installed, kInvalidArgument without
  // voice_activity.
  VoiceActivityChanges voice = {};
  // When an utterance of a stream is over: max_utterance_s at most 3600, as each partial result spells
  // the whole utterance; kInvalidArgument beyond.
  EndpointChanges endpoints = {};
  // A recording that its speaker waits for the end of: it is searched as a stream is, the fastest way, where the knobs
  // do not say how.
  bool is_live = false;
  Knobs knobs = {};  // options of the family by name (recognition_family.h)
  // Of a recording: called with each segment once it is found, in order, on the calling thread and while nobody waits
  // for the model; streams tell by their events.
  std::function<void(const TranscriptSegment&)> heard = {};
  // Whether somebody still waits for what is heard.  Asked on the calling thread while a recording, or a stream of
  // Whisper's, waits for its turn, and when that has come, and while a recording is read and its speech is looked for;
  // must neither wait nor throw.  False ends it with kCancelled and without another step.  A transducer's stream waits
  // for a step at most, and is not asked.
  std::function<bool()> is_wanted = {};
};

// For recognisers: tells of the segments behind the first `told`, and counts them.
void tell_heard(const TranscribeOptions& options, const Transcript& transcript, size_t& told);

// A stream's news.  Partial results of a segment replace each other; a final one closes it.
struct RecognitionEvent {
  uint64_t segment = 0;  // counts from 0
  bool is_final = false;
  TranscriptSegment result;
  size_t stable_bytes = 0;                    // of result.text: this much of it will not change any more
  double latency_ms = 0;                      // from the arrival of the last sample that it needed
  std::optional<EndpointReason> reason = {};  // of a final one: why its utterance ended
};

// One speaker's sound as it comes.  One thread.
class RecognitionStream {
 public:
  virtual ~RecognitionStream() = default;
  // When what is pushed, committed or finished next has come, by system_clock(): by that the stream gets its turns.
  // Where nobody says: when it is pushed.
  void sound_came(int64_t at_ns) { came_ns_ = at_ns; }
  // Mono, kRecognitionRateHz, any number of samples, about -1 to 1; what is not finite counts as silence,
  // what is greater than kLoudestSample (audio/loudest_sample.h) as that.  Appends what has become known to `events`.
  virtual Status push(std::span<const float> samples, std::vector<RecognitionEvent>& events) = 0;
  // The end of the sound: closes the last segment.  Nothing may be pushed or committed afterwards.
  virtual Status finish(std::vector<RecognitionEvent>& events) = 0;
  // Closes the segment at this moment, whatever the endpointing rules say, with what has been pushed, but perhaps for
  // the last tenth of a second; the stream goes on.
  virtual Status commit(std::vector<RecognitionEvent>& events) = 0;
  virtual const std::string& language() const = 0;  // as Transcript::language

 protected:
  // Once a push, commit or finish.
  int64_t take_arrival() { return std::exchange(came_ns_, std::nullopt).value_or(system_clock().now_ns()); }

 private:
  std::optional<int64_t> came_ns_;
};

class Recogniser {
 public:
  // Called with seconds done of the recording; false stops (kCancelled).
  using Progress = std::function<bool(double done_s)>;

  virtual ~Recogniser() = default;

  // Mono, kRecognitionRateHz, any length.  kUnsupported for options that this family does not heed, kInvalidArgument
  // for a language it does not know.
  virtual Result<Transcript> transcribe(std::span<const float> samples, const TranscribeOptions& options,
                                        const Progress& progress) = 0;
  virtual Result<std::unique_ptr<RecognitionStream>> start(const TranscribeOptions& options) = 0;
  // What start() would say of the options alone: it takes no stream, so none need be free.
  virtual Status check_stream(const TranscribeOptions& options) const = 0;
  // The same of transcribe().  Families whose recordings take more than their streams have one of their own.
  virtual Status check_recording(const TranscribeOptions& options) const { return check_stream(options); }

  // Whether a stream loses nothing against a recording: with neither voice activity nor endpoints it finds, from its
  // beginning to its end, the labels of all its sound as a recording without voice activity (of up to two minutes,
  // which is heard at once).  Else words are better from the whole.
  virtual bool hears_streams_as_recordings() const = 0;

  virtual const std::string& name() const = 0;
  virtual Precision precision() const = 0;
  virtual int threads() const = 0;
  // Which TranscribeOptions::language may name, in the model's words: "en", "en-US"; empty where the model's files do
  // not tell and a language cannot be named.
  virtual std::vector<std::string> languages() const = 0;
  // What finds speech for it, for whoever must know when somebody speaks: weights that any number of threads may use,
  // held once.  Null where no voice activity model is installed.
  virtual std::shared_ptr<const silero::SileroVad> voice_activity() const = 0;
  // Frames of so many samples as one sound, of the features and of the encoder, by arithmetic alone: transcribe()
  // leaves out silence, and hears what is long in pieces.
  struct Frames {
    size_t features = 0, encoded = 0;
  };
  virtual Frames frames_of(size_t samples) const = 0;
  virtual double load_ms() const = 0;     // without the warm-up
  virtual double warm_up_ms() const = 0;  // 0: none was asked for
  // The steps of its streams since it was loaded, and how many streams and recordings wait for their turns at this
  // moment.  Any thread.
  virtual StepFigures steps() const = 0;
  virtual size_t waiting() const = 0;
};

}  // namespace syrinx
