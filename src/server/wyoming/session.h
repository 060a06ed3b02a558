// Requests and answers of a Wyoming client on one connection.  Knows no socket; all of it runs on the transport's
// thread, and nothing waits.
//
// An error ends the connection, so that clients that do not know the event are not left waiting.  Events of types that
// are not known here are passed over, as the protocol wants it.
#pragma once

#include <memory>
#include <string>

#include "server/host/host.h"
#include "server/wyoming/arriving_sound.h"
#include "server/wyoming/event.h"
#include "server/wyoming/info.h"

namespace syrinx::server::wyoming {

class Session {
 public:
  // The host and the description must outlive it.
  Session(Host& host, Description& description) : host_(host), description_(description) {}

  // Whether the next event may be given: nothing is under way, or more is to come for it.
  bool takes_events() const { return reply_ == nullptr || text_ != nullptr || (sound_ && sound_->has_room()); }
  struct Said {
    std::string bytes = {};  // to be sent between two blocks of the reply
    bool closes = false;     // the connection, behind them
    bool goes_on = true;     // the client has done what it was waited for; not while it owes something and sends none
  };
  Said take(const Event& event);
  Said refuse_bytes(const Error& error);  // of an EventReader: what came is no event
  Said refuse_late();                     // the rest of a text or a sound has not come in time
  // More is to come of the text or the sound of what is under way.
  bool owes() const { return text_ != nullptr || sound_ != nullptr; }
  const std::shared_ptr<ArrivingSound>& sound() const { return sound_; }  // null: none is owed

  // The reply in progress, to be sent as it fills; null: none.
  const std::shared_ptr<ReplyStream>& reply() const { return reply_; }
  void reply_sent(uint64_t bytes) { sent_ += bytes; }  // so many more of it
  // It has all been sent, or is given up with status 499.
  void reply_ended(int status);

 private:
  Said answer(const Event& event);
  Said describe();
  Said synthesize(const Event& event);
  Said synthesize_start(const Event& event);
  Said synthesize_chunk(const Event& event);
  Said synthesize_stop();
  Said transcribe(const Event& event);
  Said audio_start(const Event& event);
  Said audio_chunk(const Event& event);
  Said audio_stop();
  Said start_sound(const PcmFormat& format);
  Said start(const char* route, SpeechRequest request, std::shared_ptr<ArrivingText> text);
  Said refuse(const char* route, const HttpError& error);
  tl::expected<SpeechRequest, HttpError> request_of(const Event& event) const;
  tl::expected<std::string, HttpError> voice_speaking(const std::string& language) const;

  Host& host_;
  Description& description_;
  Host::Asked asked_;
  uint64_t sent_ = 0;  // bytes of the reply
  int refused_ = 0;    // with this status, what came of a text behind its limit; 0: nothing
  std::shared_ptr<ReplyStream> reply_;
  std::shared_ptr<ArrivingText> text_;    // of a speech whose text is still to come
  std::shared_ptr<ArrivingSound> sound_;  // that is still to come
  std::string language_;                  // of the next one
};

}  // namespace syrinx::server::wyoming
