// One response under way: its text as it comes from a ReplySource, its sound as the engine makes it, and the events
// that tell of both.  On the session's thread; it waits for nothing.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "audio/pcm.h"
#include "audio/stream_resampler.h"
#include "base/clock.h"
#include "engine/speech/speech_session.h"
#include "server/host/speech_report.h"
#include "server/realtime/conversation.h"
#include "server/realtime/event_sender.h"
#include "server/realtime/reply_source.h"
#include "server/realtime/session_config.h"

namespace syrinx::server::realtime {

struct ResponseOrder {
  OutputConfig output = {};
  bool is_in_conversation = true;  // else its item is told, but not kept
  std::string previous_item = {};
  Json metadata = {};  // the client's
  size_t max_characters = 4096;
  bool is_generated = false;  // by a language model: what nobody can say of it is no fault of the client's
  std::unique_ptr<Reply> reply = {};
  std::unique_ptr<SpeechSession> speech = {};     // null: text alone
  std::optional<StreamResampler> resampler = {};  // with speech: from the engine's rate to the format's rate
  int64_t asked_ns = 0;
  uint64_t number = 1;  // of the session's responses, from 1 on: the group of its sound
};

class Response {
 public:
  enum class Step : uint8_t { kWaiting, kSome, kOver };

  // Tells of its beginning: there must be room.
  Response(EventSender& events, ResponseOrder order, const SpeechModel& model, const JobReports& reports,
           const Clock& clock);

  // Tells what has become known, as far as there is room for it; kOver with the last of it.
  Step advance();
  // Tells of its end at this point, and takes back the sound that waits for the client; `reason` is OpenAI's:
  // "client_cancelled", "turn_detected".
  void cancel(const char* reason);
  // Tells that it has failed at this point, through no fault of its own.  There must be room.
  void break_off(const HttpError& why);
  // It cannot go on; the client is not told.  `fault` is the server's, for the log.
  void give_up(std::string fault);
  // Counts and logs what became of it, and ends its speech if it is still under way; `request_id` is the session's.
  void report(const std::string& request_id) const;

  const std::string& id() const { return id_; }
  const Item& item() const { return item_; }
  bool is_in_conversation() const { return order_.is_in_conversation; }
  double made_s() const { return order_.speech ? order_.speech->statistics().audio_seconds : 0; }  // told or not
  bool has_failed() const { return outcome_ == std::string_view("error"); }
  // How soon advance() is to be called again though nobody wakes; absent: not before somebody does.
  std::optional<std::chrono::nanoseconds> looks_again_in() const {
    return reply_ended_ || !events_.has_room_for_sound() ? std::nullopt : order_.reply->looks_again_in();
  }
  // Whether what it waits for is the engine.
  bool waits_for_engine() const {
    return order_.speech && reply_ended_ && pending_.empty() && !order_.speech->is_ready();
  }

 private:
  void begin();
  Step take_text();
  Step take_sound();
  void add_sound(const SpeechChunk& chunk);
  void encode(bool is_last);
  void send_sound();
  Step end_speech(const Error& error);
  Step fail(const Error& error);
  void finish_failed(const HttpError& why);
  Step complete();
  void finish(ItemStatus item_status, const char* status, Json details);
  Json place() const;
  Json part(bool is_done) const;
  Json item_event(const char* key) const;
  Json response_json(const char* status, Json details) const;
  Json usage() const;

  EventSender& events_;
  ResponseOrder order_;
  const SpeechModel& model_;
  const JobReports& reports_;
  const Clock& clock_;
  const std::string id_;
  Item item_;
  size_t characters_ = 0;  // of the reply, whether its item has them or they are too many
  bool reply_ended_ = false, sound_ended_ = false;
  SpeechChunk chunk_;
  std::vector<float> samples_;
  PcmQuantizer quantizer_;
  std::vector<std::byte> pending_;  // sound that has not been told yet
  size_t told_bytes_ = 0;           // of it
  double first_audio_s_ = 0;
  const char* outcome_ = "cancelled";
  std::string fault_;
};

}  // namespace syrinx::server::realtime
