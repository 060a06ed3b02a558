// A client's session over /v1/realtime: what it asks for, one event after another, and what is spoken to it.  Runs on a
// slot's thread and waits for nothing but news: of the client, or of the sound that is being made.
//
// It takes no event and makes no sound while there is no room for what it would tell, so a client that reads slowly
// slows its own session alone; the transport cuts one that reads nothing.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "server/realtime/conversation.h"
#include "server/realtime/event_sender.h"
#include "server/realtime/reply_source.h"
#include "server/realtime/response.h"
#include "server/realtime/session_config.h"
#include "server/slots.h"
#include "server/speech_report.h"

namespace syrinx::server::realtime {

struct SessionOrder {
  std::shared_ptr<const SpeechModel> speech = {};
  std::shared_ptr<ReplySource> replies = {};
  std::string id = {};  // of the HTTP request
  Dialect dialect = Dialect::kReleased;
  size_t max_text_characters = 4096;
  double max_session_s = 3600;  // in all
  double idle_s = 600;          // without a response or an event of the client's that is no error
};

class Session {
 public:
  // What the reports name and the clock must outlive it.
  Session(SessionOrder order, const JobReports& reports, const Clock& clock = system_clock());

  // What the transport carries; it may outlive this.
  const std::shared_ptr<MessageStream>& messages() const { return messages_; }
  // Until the client is gone, the session's time is over or, with nothing under way, the server goes down.
  void run(SlotWatch& watch);
  // Closes the connection: after the slot is free.  Once.
  void end() { messages_->end(std::move(end_)); }

 private:
  using Handled = tl::expected<void, HttpError>;

  void converse(SlotWatch& watch);
  void take_message(const MessageStream::Message& message);
  Handled handle(const ClientMessage& message);
  Handled update(const Json& fields);
  Handled create_item(const Json& fields);
  Handled retrieve_item(const Json& fields);
  Handled truncate_item(const Json& fields);
  Handled delete_item(const Json& fields);
  Handled create_response(const Json& fields);
  Handled cancel_response(const Json& fields);

  Json session_event() const;
  Checked has_voice(const std::string& voice) const;
  Prompt prompt();
  Handled read_response(const Json& given, ResponseOrder& order, Prompt& prompt) const;
  Handled take_input(const Json& input, Prompt& prompt) const;
  Handled start_speech(ResponseOrder& order) const;
  void speak_on();
  void end_response();
  void tell_of_dropped();
  void watch_engine(SlotWatch& watch);
  bool is_over();
  bool is_late();

  const SessionOrder order_;
  const JobReports reports_;
  const Clock& clock_;
  const std::shared_ptr<MessageStream> messages_ = std::make_shared<MessageStream>();
  EventSender events_;
  const std::string id_;
  SessionConfig config_;
  Conversation conversation_;
  std::optional<Response> response_;
  std::vector<std::string> asked_;       // the conversation's items that it answers
  std::vector<std::string> dropped_;     // items that have made room, of which the client is to be told
  int64_t began_ns_ = 0, heard_ns_ = 0;  // the session, and the last that was to do
  bool is_watched_ = false;
  bool did_something_ = false;  // in this round
  MessageStream::End end_{1011, "the session was given up; the server's log says why"};
};

}  // namespace syrinx::server::realtime
