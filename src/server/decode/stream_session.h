// A stream of the transducer profile, GET /v2/decode/stream/MODEL (docs/server.md): sound comes in binary messages,
// their words go out in JSON, and a message of one byte is a command.  On a slot of recognition, its own for as long as
// the connection is open.
//
// Sound that waits to be heard is at most max_backlog_s, and all that has come is at most so much ahead of the clock:
// beyond that the client is told, and the stream closed, since one with a hole in it is of no use.  A client that reads
// slowly hears of fewer words in between, and of all in the end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "engine/recognition/recogniser.h"
#include "server/decode/request.h"
#include "server/host/first_word.h"
#include "server/host/recognition_model.h"
#include "server/host/slot_job.h"
#include "server/host/waiting_sound.h"
#include "server/http/message_stream.h"
#include "server/http/pace.h"

namespace syrinx::server::decode {

struct StreamOrder {
  std::shared_ptr<const RecognitionModel> model = {};
  Opaque opaque = {};
  std::string id = {};  // of the HTTP request
  uint8_t end_byte = 0x00, keepalive_byte = 0x01;
  double messages_per_s = 100;  // on an average of max_backlog_s
  double max_backlog_s = 10;    // of sound
  double max_session_s = 3600;  // in all
  double idle_s = 30;           // without sound or a keepalive
};

class StreamSession {
 public:
  // The objects in `reports` and the clock must outlive it.
  StreamSession(StreamOrder order, const JobReports& reports, const Clock& clock = system_clock());

  // The messages for the transport; they may outlive this.
  const std::shared_ptr<MessageStream>& messages() const { return messages_; }
  // On the slot: until all has been said and heard, the client is gone, or the server goes down.
  void run(SlotWatch& watch);
  // Closes the connection: after the slot is free.  Once.
  void end() { messages_->end(std::move(end_)); }

 private:
  struct Arrival {
    uint64_t samples = 0;  // of the stream, that had come with it
    int64_t at_ns = 0;
  };
  void converse(SlotWatch& watch);
  bool take_messages();
  void take(const MessageStream::Message& message);
  void take_control(uint8_t byte, int64_t came_ns, int64_t now_ns);
  void end_sound(int64_t came_ns);
  void take_sound(const std::string& bytes, int64_t came_ns, int64_t now_ns);
  bool has_room_for(double seconds, int64_t came_ns);
  void refuse_sound(const std::string& message, MessageStream::End end);
  bool hear_some(SlotWatch& watch);
  void complete(SlotWatch& watch);
  template <class Call>
  bool ask_engine(SlotWatch& watch, const Call& call);
  void note_words();
  std::string words() const;
  void tell_words();
  void tell(const char* status, const std::string& message = {});
  void refuse(const std::string& message, MessageStream::End end);
  void fail_stream(const Error& error);
  void end_if_late(int64_t now_ns, SlotWatch& watch);
  void report() const;

  const StreamOrder order_;
  const JobReports reports_;
  const Clock& clock_;
  const std::shared_ptr<MessageStream> messages_ = std::make_shared<MessageStream>();
  std::unique_ptr<RecognitionStream> stream_;
  Pace message_pace_, sound_pace_;
  std::vector<float> unheard_;  // from at_ on
  size_t at_ = 0;
  std::deque<Arrival> arrivals_;  // of what is unheard
  WaitingSound sound_;            // as much of it
  FirstWord first_word_;
  uint64_t samples_ = 0;  // that have been heard
  std::vector<RecognitionEvent> events_;
  std::string text_, partial_;  // of the segments that are over, and of the one that is not
  std::string told_;
  bool changed_ = false;  // since that
  double took_ms_ = 0;    // the engine
  int64_t began_ns_ = 0, active_ns_ = 0, ended_ns_ = 0;
  bool sound_came_ = false;    // since the last keepalive
  bool is_all_taken_ = false;  // no message waits
  bool ended_ = false;         // all of the sound is there
  bool over_ = false;          // nothing more is told
  const char* outcome_ = "cancelled";
  std::string fault_;  // the server's, in the engine's words: for the log alone
  MessageStream::End end_{1011, "the stream was given up; the server's log says why"};
};

}  // namespace syrinx::server::decode
