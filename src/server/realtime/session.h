// A client's session over /v1/realtime: what it asks for, one event after another, and what is spoken to it.  Runs on a
// thread that is one of a fixed number, and waits for nothing but news: of the client, or of the sound that is being
// made, or that is heard.  A slot of speech is its own for as long as a response is spoken, and one of recognition
// while there is something to hear, so that who does neither holds none.
//
// It takes no event and makes no sound while there is no room for what it would tell, so a client that reads slowly
// slows its own session alone; the transport cuts one that reads nothing.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "server/host/slots.h"
#include "server/host/speech_report.h"
#include "server/http/pace.h"
#include "server/realtime/conversation.h"
#include "server/realtime/event_sender.h"
#include "server/realtime/hearing.h"
#include "server/realtime/reply_source.h"
#include "server/realtime/response.h"
#include "server/realtime/session_config.h"

namespace syrinx::server::realtime {

// A slot of speech, for a response; or why there is none.
using TakeSlot = std::function<tl::expected<SlotPool::Lease, HttpError>()>;
// Whether one seems to be free.
using HasSlot = std::function<bool()>;

struct SessionOrder {
  std::shared_ptr<const SpeechModel> speech = {};            // null: nothing speaks
  std::shared_ptr<const RecognitionModel> recognition = {};  // null: nothing hears
  std::shared_ptr<ReplySource> replies = {};
  bool answers_turns = false;  // by them; else turns are heard for their transcripts alone
  TakeSlot take_slot = {};     // empty: none is needed
  HasSlot has_slot = {};       // empty: nobody waits for one
  StartEar start_ear = {};
  std::string asked_model = {};   // by the handshake
  bool is_transcription = false;  // the session's type
  bool strict = false;            // refuses fields that the model lacks; else they are ignored
  double max_backlog_s = 10;      // of sound
  double max_clip_s = 60;         // of it where the client commits
  // That it is heeded at, on an average of some seconds; what comes faster waits.
  double events_per_s = 400, kb_per_s = 512;
  Ear::Times ear_times = {};
  std::string id = {};  // of the HTTP request
  Dialect dialect = Dialect::kReleased;
  size_t max_text_characters = 4096;
  double max_session_s = 3600;  // in all
  double idle_s = 600;          // without a response or an event of the client's that is no error
};

class Session {
 public:
  // The objects in `reports` and the clock must outlive it.
  Session(SessionOrder order, const JobReports& reports, const Clock& clock = system_clock());

  // The messages for the transport; they may outlive this.
  const std::shared_ptr<MessageStream>& messages() const { return messages_; }
  // Until the client is gone, the session's time is over or the server goes down and all is told that was under way.
  void run();
  // Closes the connection: after the session's thread is free.  Once.
  void end() { messages_->end(std::move(end_)); }

 private:
  using Handled = tl::expected<void, HttpError>;

  void converse();
  void take_next();
  void take_message(MessageStream::Message message);
  enum class Heeded : uint8_t { kYes, kHasNoRoom, kIsWrong };
  Heeded heed(MessageStream::Message message);
  std::chrono::nanoseconds patience();
  Handled handle(const ClientMessage& message);
  Handled update(const ClientMessage& message);
  Handled create_item(const Json& fields);
  Handled retrieve_item(const Json& fields);
  Handled truncate_item(const Json& fields);
  Handled delete_item(const Json& fields);
  Handled create_response(const Json& fields);
  Handled cancel_response(const Json& fields);

  const std::string& model_id() const;
  Json session_event() const;
  void log_ignored() const;
  Checked has_voice(const std::string& voice) const;
  OutputChecks output_checks() const;
  Prompt prompt();
  std::vector<Turn> turns();
  Result<std::unique_ptr<Reply>> start_reply(Prompt prompt);
  Handled read_response(const Json& given, ResponseOrder& order, Prompt& prompt) const;
  Handled take_input(const Json& input, Prompt& prompt) const;
  Handled start_speech(ResponseOrder& order);
  Handled pace_question();
  void charge_texts(const Prompt& prompt);
  Handled begin_response(ResponseOrder order, Prompt prompt, bool is_of_conversation);
  InputChecks input_checks() const;
  Checked check_options(const TranscribeOptions& options, const char* field) const;
  Checked check_language(Transcription& transcription) const;
  Checked check_prompt(Transcription& transcription) const;
  Checked check_transcription(Transcription& transcription) const;
  HearingOrder hearing_order();
  void configure_hearing();
  void note_speech();
  void note_turn(const std::string& transcript);
  bool answers_turns() const;
  void answer_turns();
  bool is_patient() const;
  void hear_on();
  void speak_on();
  void note_made();
  void end_response(bool is_cancelled = false);
  void tell_of_dropped();
  void watch_engine();
  static bool begins_work(ClientEvent event);
  Handled refuse_work(ClientEvent event);
  bool is_over();
  bool has_gone_down();
  bool is_late();

  const SessionOrder order_;
  const JobReports reports_;
  const Clock& clock_;
  const std::shared_ptr<MessageStream> messages_ = std::make_shared<MessageStream>();
  EventSender events_;
  const std::string id_;
  SessionConfig config_;
  Conversation conversation_;
  std::optional<SlotPool::Lease> slot_;  // of the response
  double noted_s_ = 0;                   // of its audio, to the slot
  std::optional<Response> response_;
  std::optional<double> heard_ms_;  // of its item, which is cut to that when it ends
  uint64_t responses_ = 0;
  std::optional<int64_t> questions_paid_ns_;  // when those that were asked will have been made up for
  std::vector<std::string> asked_;            // the conversation's items that it answers
  std::vector<std::string> dropped_;          // items that have made room, of which the client is to be told
  Hearing hearing_;                           // which uses the above
  int64_t began_ns_ = 0, heard_ns_ = 0;       // the session, and the last that was to do
  bool is_watched_ = false;
  bool owes_answer_ = false;                        // a turn had words, and nothing has been heard in answer
  bool answers_turn_ = false;                       // the newest response, which nobody asked for
  bool is_aside_ = false;                           // it, which has an input of its own or is outside the conversation
  int asked_again_ = 0;                             // for an answer of which nothing was heard
  std::optional<int64_t> no_slot_ns_;               // since when that has found no slot
  Pace pace_;                                       // of the client's messages
  bool did_something_ = false;                      // in this round
  size_t left_to_heed_ = MessageStream::kMessages;  // of the client's messages, when the server goes down
  bool begins_nothing_ = false;                     // behind them
  bool is_cut_short_ = false;                       // a turn was open then
  bool has_refused_sound_ = false;                  // since then
  MessageStream::End end_{1011, "the session was given up; the server's log says why"};
};

}  // namespace syrinx::server::realtime
