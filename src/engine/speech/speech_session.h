// Text in, sound out, chunk by chunk: a thread of its own computes what comes next while the last chunk is played or
// written.  What a chunk is depends on the model's family, whose Speaker runs on that thread: a clause or a few
// sentences of Kokoro, a frame of 80 ms of Pocket TTS.
//
// The same options, text and build give the same samples when the text is given at once (speak()).  Text that arrives
// in parts is spoken as soon as its sentences end: sentence_speaker.h says when that is.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/due.h"
#include "base/result.h"
#include "engine/knobs.h"
#include "engine/speech/finish_reason.h"
#include "engine/speech/piece_meter.h"

namespace syrinx {

inline constexpr size_t kSilenceForNothingMs = 100;

struct SpeakOptions {
  std::string voice;                 // a name or a path; empty: the default
  uint64_t seed = 0;                 // of all noise
  bool plain = false;                // the text holds no marks (marked_text.h): all of it is read out
  bool silence_for_nothing = false;  // a text with nothing to say is kSilenceForNothingMs of silence, not an error
  Knobs knobs = {};                  // options of the family by name (speech_family.h); absent: the model's own
};

// When a word of the input is heard.  Words that are read out as several ("$3.50") have one entry.
struct WordTime {
  std::string text;                         // as written; of an escape, [word](/phonemes/), the word
  size_t source_begin = 0, source_end = 0;  // bytes of the input
  double start_s = 0, end_s = 0;            // from the first sample
};

struct SpeechChunk {
  std::vector<float> samples;   // mono, at the rate of the session
  double start_s = 0;           // set by the session
  std::vector<WordTime> words;  // Kokoro only
  std::string phonemes;         // Kokoro only
};

struct SpeechStatistics {
  double first_audio_ms = 0;  // from the first text to the first chunk
  double total_ms = 0;        // from the first text to the last chunk
  double compute_ms = 0;      // front end and model, without waiting for text, for the listener or for other sessions;
                              // what is computed together with other sessions' frames counts whole
  double waiting_ms = 0;      // for other sessions of the engine
  double audio_seconds = 0;
  size_t pieces = 0;              // of text: Kokoro's pieces, Pocket TTS's chunks
  size_t dropped_characters = 0;  // of the text: emoji, other scripts
  size_t unknown_phonemes = 0;    // outside Kokoro's alphabet, left out
  size_t retried_pieces = 0;      // spoken once more, since they were cut before much of them was heard
  FinishCounts finished = {};     // pieces by what ended them, where the model tells
  PieceSpread spread = {};        // of their rate and loudness, where the model tells

  double rtf() const { return audio_seconds > 0 ? compute_ms / 1000.0 / audio_seconds : 0.0; }
};

// A session as its speaker sees it: where text comes from and where sound goes.  On the session's thread only.
class SpeechStream {
 public:
  enum class Arrival { kText, kQuiet, kEnd };

  // Appends to `text` what has been written, 64 KB at most; waits for it, at most as long as `limit` (kQuiet).  kEnd
  // with the last of it.  kCancelled.
  virtual Result<Arrival> take_text(std::optional<std::chrono::milliseconds> limit, std::string& text) = 0;
  // An empty chunk, once all memory has gone round with that of one that has been heard.
  virtual SpeechChunk spare() = 0;
  // Waits while enough chunks wait to be heard.  kCancelled.
  virtual Status hand_over(SpeechChunk chunk) = 0;
  // kCancelled once the session is.  Any thread; takes no lock.
  virtual Status go_on() = 0;
  // The same without an error to be made, so that it may be asked under others' locks.
  virtual bool is_cancelled() const noexcept = 0;
  // Adds the counts, compute_ms and waiting_ms; the other figures are the session's own.
  virtual void account(const SpeechStatistics& more) = 0;
  virtual const Clock& clock() const = 0;
  // When what is computed next is due, by clock(): when the listener has heard all that has been handed over, as if it
  // was played at once, or when the text came where that was later; at most SpeechSession::kMostAheadNs ahead.  Of
  // batch work: kNeverDue.
  virtual int64_t due_ns() const = 0;

 protected:
  ~SpeechStream() = default;
};

// Turns text into audio.
class Speaker {
 public:
  virtual ~Speaker() = default;
  // From the first text to the last sound.
  virtual Status speak(SpeechStream& stream) = 0;
  // How many chunks may wait to be heard before hand_over() waits; the same at every call, at least 1.
  virtual size_t chunks_ahead() const = 0;
  virtual int rate_hz() const = 0;  // of the sound; the same at every call
};

class SpeechSession final : private SpeechStream {
 public:
  static constexpr size_t kMaxWaitingText = size_t{1} << 20;  // bytes accepted but not yet read by the front end
  // Limit of the audio made in advance, for due times: a listener that takes audio faster than it plays counts as at
  // most so far ahead, so that new texts make it wait no longer than this.
  static constexpr int64_t kMostAheadNs = 10'000'000'000;

  explicit SpeechSession(std::unique_ptr<Speaker> speaker, const Clock& clock = system_clock());
  // Cancels, and waits for the chunk that is being computed.
  ~SpeechSession();
  SpeechSession(const SpeechSession&) = delete;
  SpeechSession& operator=(const SpeechSession&) = delete;

  // Text of any length.  Any thread, one at a time.  Waits while kMaxWaitingText is waiting, and so for the speech of a
  // longer text: another thread must hear it.  Fails with the session's error once it has failed.
  Status write(std::string_view text);
  void finish();
  // All of the text, and the end.  kLimitExceeded above kMaxWaitingText.
  Status speak(std::string_view text);
  // The next stretch of sound; waits for it.  Nothing at the end.  One thread.
  Result<std::optional<SpeechChunk>> next();
  // The same into `chunk`, whose memory is used again; false at the end.
  Result<bool> next(SpeechChunk& chunk);
  // Whether next() would not wait.
  bool is_ready() const;
  // `wake` is called, by the session's thread, whenever that may have become true; it must not call the session.  Set
  // once, before any text.
  void on_ready(std::function<void()> wake);
  // No listener: all of it is batch work.  Before any text.
  void make_batch();
  // Any thread; next() and write() return kCancelled soon.
  void cancel();
  SpeechStatistics statistics() const;
  int rate_hz() const { return rate_hz_; }

 private:
  Result<Arrival> take_text(std::optional<std::chrono::milliseconds> limit, std::string& text) override;
  SpeechChunk spare() override;
  Status hand_over(SpeechChunk chunk) override;
  Status go_on() override;
  bool is_cancelled() const noexcept override { return cancelled_; }
  void account(const SpeechStatistics& more) override;
  const Clock& clock() const override { return clock_; }
  int64_t due_ns() const override { return is_batch_ ? kNeverDue : std::min(due_ns_, clock_.now_ns() + kMostAheadNs); }

  void run();
  int64_t ns_of(size_t samples) const;

  const std::unique_ptr<Speaker> speaker_;
  const int rate_hz_;
  const Clock& clock_;

  // Guarded by mutex_.
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::string waiting_text_;
  std::vector<SpeechChunk> chunks_;  // a ring: `waiting_` of them from `first_` on are to be heard, the others spare
  size_t first_ = 0, waiting_ = 0;
  size_t waiting_samples_ = 0;  // of the chunks that are to be heard
  std::optional<Error> error_;
  bool finished_ = false;                            // no more text
  bool done_ = false;                                // no more chunks
  std::atomic<bool> cancelled_{false};               // may be read without it
  int64_t first_text_ns_ = 0, waiting_text_ns_ = 0;  // when the first of all text, and of what waits, came
  uint64_t samples_made_ = 0;
  SpeechStatistics statistics_;
  std::function<void()> wake_;

  // For the session's thread.
  SpeechChunk spare_;  // what stood in the ring before the last chunk
  int64_t due_ns_ = 0;
  bool is_batch_ = false;  // set under mutex_ before the text, which this thread waits for

  std::thread thread_;  // last: it uses all of the above
};

}  // namespace syrinx
