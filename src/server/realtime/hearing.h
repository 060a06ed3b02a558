// Input of a session: the audio that its client appends, the turns that are found in it or committed, and the
// transcript of each.  On the session's thread, which waits for nothing here: voice activity takes a window at a time,
// and the recogniser works on a slot of recognition (ear.h), which is taken when a turn begins and given up behind it.
//
// Audio that waits for detection or recognition is at most max_backlog_s, or max_clip_s without turn detection, and all
// audio that has come is at most so much ahead of the clock since its first sample: beyond that an append is refused,
// and none of its samples is taken; a base64 text that was cut goes on behind it.  Audio that waits beyond
// max_backlog_s takes room beside uploads.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "audio/stream_resampler.h"
#include "base/clock.h"
#include "server/http/message_stream.h"
#include "server/realtime/appended_audio.h"
#include "server/realtime/conversation.h"
#include "server/realtime/ear.h"
#include "server/realtime/event_sender.h"
#include "server/realtime/input_config.h"
#include "server/realtime/turn_detector.h"

namespace syrinx::server::realtime {

// Has an ear run on a slot of recognition; or why none is free.
using StartEar = std::function<std::optional<HttpError>(const std::shared_ptr<Ear>& ear)>;

struct HearingOrder {
  std::shared_ptr<const RecognitionModel> model = {};  // null: the server hears nothing
  StartEar start_ear = {};
  double max_backlog_s = 10;
  double max_clip_s = 60;                                // in its place while no turn is looked for
  std::function<MessageStream::Room()> begin_room = {};  // for sound beyond max_backlog_s; empty: all has room
  Ear::Times ear_times = {};
  std::string id = {};                      // of the HTTP request
  std::function<void()> speech_began = {};  // when a turn's beginning has been told
  // A turn's transcript, once it has been sent; empty: no words.
  std::function<void(const std::string& transcript)> turn_over = {};
};

class Hearing {
 public:
  static constexpr double kMinCommitMs = 100;

  // All but the order must outlive it.
  Hearing(HearingOrder order, EventSender& events, Conversation& conversation, std::vector<std::string>& dropped,
          const JobReports& reports, const Clock& clock);
  ~Hearing();
  Hearing(const Hearing&) = delete;
  Hearing& operator=(const Hearing&) = delete;

  // `always`: words are wanted whether their transcription is to be told or not; `early`: they are told while the turn
  // goes on.
  void configure(const InputConfig& input, bool always, bool early);
  Checked append(const Json& fields, const std::string& event_id);
  Checked commit();
  Checked clear();
  // There will be no more sound: a turn that is open is committed or, if it is too short, forgotten.  Whether one was
  // committed.  All sound must have been looked at.
  bool finish();

  // Does a little of what there is to do; there must be room.  False: there is nothing.
  bool step();
  // All sound that has come has been looked at.
  bool is_quiet() const { return at_ == unheard_.size(); }
  // A turn is over, and its words are not all there.
  bool waits_for_words() const { return !turns_.empty() && turns_.front().committed; }
  // A turn is open, or one is over and not all of it has been sent.
  bool has_turns() const { return !turns_.empty(); }
  // A response has ended that is played until then; for turn_detection.idle_timeout_ms.
  void expect_speech(int64_t from_ns) {
    silent_since_ns_ = from_ns;
    silent_since_ = position_;
  }
  // Reports that idle_timeout_ms has passed without speech; `is_speaking`: a response is in progress, so none was due.
  void watch_silence(bool is_speaking);

 private:
  struct Turn {
    uint64_t number = 0;
    std::string item = {};
    uint64_t samples = 0;   // of it
    bool is_heard = false;  // its words are wanted
    bool is_told = false;   // and told: whatever is asked for amid it
    bool committed = false, over = false;
    std::string text = {};
    size_t told = 0;  // bytes of it
    std::optional<HttpError> error = {};
    bool is_error_told = false;  // when it arose
    double ms() const { return static_cast<double>(samples) * 1000 / kRecognitionRateHz; }
  };

  bool hears() const { return order_.model != nullptr && (input_.transcription || always_); }
  Turn* open_turn() { return turns_.empty() || turns_.back().committed ? nullptr : &turns_.back(); }
  Checked has_ears() const;
  void note_transcription();
  Checked check_backlog(double seconds);
  Checked check_room(double seconds);
  void free_room();
  void use_format(SoundFormat format);
  void use_rules(bool changed);
  void detect_anew();
  void look_at_rest();
  void look_at_some();
  void note_change(const TurnDetector::Change& change);
  Turn& begin_turn();
  void feed(Turn& turn, std::span<const float> samples);
  void attend(Turn& turn, std::span<const float> samples);
  void commit_turn(Turn& turn);
  void drop_turn();
  void add_item(const std::string& id);
  bool take_news();
  bool note_broken_ear();
  bool tell(Turn& turn);
  void tell_end(Turn& turn);
  size_t waiting_samples() const { return unheard_.size() - at_ + (ear_ ? ear_->waiting_samples() : 0); }
  int64_t ms_of(uint64_t sample) const { return static_cast<int64_t>(sample * 1000 / kRecognitionRateHz); }

  const HearingOrder order_;
  EventSender& events_;
  Conversation& conversation_;
  std::vector<std::string>& dropped_;
  const JobReports reports_;
  const Clock& clock_;
  InputConfig input_;
  bool always_ = false, early_ = false;
  std::shared_ptr<const TranscribeOptions> options_;
  AppendedAudio appended_;
  std::optional<StreamResampler> resampler_;
  double taken_s_ = 0;            // of sound, in all that came while turns were looked for as they are now, or not
  double taken_otherwise_s_ = 0;  // in all that came while they were not, or were
  std::optional<int64_t> first_sound_ns_;
  std::vector<float> unheard_;  // at 16 kHz, from at_ on
  size_t at_ = 0;
  MessageStream::Room room_;    // of what waits, where that is much
  uint64_t position_ = 0;       // samples that have been looked at, of all that came
  std::vector<float> history_;  // of them the last ones, where no turn is open
  std::optional<TurnDetector> detector_;
  bool has_new_rules_ = false;  // which it is to follow once the turn that is open is over
  std::deque<Turn> turns_;      // the last may be open
  uint64_t numbers_ = 0;
  std::shared_ptr<Ear> ear_;
  std::string last_event_;  // of the client's, that brought sound
  std::optional<int64_t> silent_since_ns_;
  uint64_t silent_since_ = 0;  // the sample
};

}  // namespace syrinx::server::realtime
