// Reactions of a session to its input.
#include <utility>

#include "server/realtime/session.h"
#include "server/settings/model_id.h"
#include "text/language.h"

namespace syrinx::server::realtime {
namespace {

constexpr int64_t kSlotPatienceNs = 10'000'000'000;  // of somebody who has spoken and hears nothing
constexpr int kMostAskedAgain = 2;

}  // namespace

InputChecks Session::input_checks() const {
  return {.can_hear = order_.recognition != nullptr,
          .can_detect = order_.recognition != nullptr && order_.recognition->voice_activity() != nullptr,
          .transcription = [this](Transcription& given) { return check_transcription(given); }};
}

// The engine alone knows what its model takes.  No stream is taken: there are as many as slots, and this holds none.
Checked Session::check_options(const TranscribeOptions& options, const char* field) const {
  const Status checked = order_.recognition->recogniser().check_stream(options);
  if (checked) return {};
  return tl::unexpected(http_error(checked.error(), field));
}

Checked Session::check_language(Transcription& transcription) const {
  transcription.told_language.clear();
  if (text::is_any_language(transcription.language)) return {};
  auto known = order_.recognition->language_called(transcription.language);
  if (!known) {
    known.error().param = "transcription.language";
    return tl::unexpected(std::move(known).error());
  }
  transcription.told_language = std::move(*known);
  return check_options({.language = transcription.told_language}, "transcription.language");
}

Checked Session::check_prompt(Transcription& transcription) const {
  if (transcription.prompt.empty()) return {};
  if (has_knob(order_.recognition->family(), "prompt"))
    return check_options({.knobs = {{"prompt", transcription.prompt}}}, "transcription.prompt");
  transcription.prompt.clear();
  if (!order_.strict) {
    transcription.ignored.emplace_back("prompt");
    return {};
  }
  return refuse("transcription.prompt",
                "'transcription.prompt' is not supported: {} takes none; leave it out, or have the operator switch "
                "strict off",
                order_.recognition->id());
}

Checked Session::check_transcription(Transcription& transcription) const {
  if (!order_.recognition->is_called(transcription.model)) {
    HttpError error = no_model(true, "", transcription.model);
    error.param = "transcription.model";
    return tl::unexpected(std::move(error));
  }
  if (auto checked = check_language(transcription); !checked) return checked;
  if (auto checked = check_prompt(transcription); !checked) return checked;
  if (transcription.keywords.empty()) return {};
  if (order_.recognition->takes_keywords())
    return check_options({.knobs = {{"boost", transcription.keywords}}}, "transcription.keywords");
  transcription.keywords.clear();
  if (!order_.strict) {
    transcription.ignored.emplace_back("keywords");
    return {};
  }
  return refuse(
      "transcription.keywords",
      "'transcription.keywords' is not supported: {} cannot favour words; leave them out, or have the operator "
      "switch strict off",
      order_.recognition->id());
}

HearingOrder Session::hearing_order() {
  return {.model = order_.recognition,
          .start_ear = order_.start_ear,
          .max_backlog_s = order_.max_backlog_s,
          .max_clip_s = order_.max_clip_s,
          .begin_room = [this] { return messages_->begin_room(); },
          .ear_times = order_.ear_times,
          .id = order_.id,
          .speech_began = [this] { note_speech(); },
          .turn_over = [this](const std::string& transcript) { note_turn(transcript); }};
}

void Session::configure_hearing() { hearing_.configure(config_.input, order_.answers_turns, config_.is_transcription); }

void Session::hear_on() {
  if (!events_.has_room()) return;
  hearing_.watch_silence(response_.has_value());
  if (hearing_.step()) did_something_ = true;
  if (owes_answer_) answer_turns();
}

// Speech during a response interrupts it.  An update that ends detection may itself reveal the speech.  An answer that
// did not reach the listener stays due: the speech may have been a cough while a language model thought.  Repeated
// noise before the model's first word does not repeat the question for ever.
void Session::note_speech() {
  const auto& turns = config_.input.turns;
  if (!response_ || !response_->is_in_conversation() || !turns || !turns->interrupt_response) return;
  const Item& item = response_->item();
  const bool is_unheard = item.is_sound ? item.audio_ms == 0 : item.text.empty();
  const bool is_owed = answers_turn_ && is_unheard && asked_again_ < kMostAskedAgain;
  response_->cancel("turn_detected");
  end_response(/*is_cancelled=*/true);
  if (!is_owed) return;
  ++asked_again_;
  owes_answer_ = true;
  no_slot_ns_.reset();
}

bool Session::answers_turns() const {
  return order_.answers_turns && order_.speech && !config_.is_transcription && !is_cut_short_ && config_.input.turns &&
         config_.input.turns->create_response;
}

void Session::note_turn(const std::string& transcript) {
  heard_ns_ = clock_.now_ns();
  if (transcript.empty()) return;
  owes_answer_ = true;
  asked_again_ = 0;
  no_slot_ns_.reset();
}

bool Session::is_patient() const { return no_slot_ns_ && clock_.now_ns() - *no_slot_ns_ < kSlotPatienceNs; }

// A speaker who goes on after a short pause is not interrupted: the words before and after are answered together, also
// when the latter prove to be a cough, or are cleared.  A response in progress goes on; as in OpenAI's interface, the
// turn is not answered then, except behind a response to something else.  Where no slot is free, the session waits for
// one: nobody would ask again for an answer that is due.
void Session::answer_turns() {
  if (answers_turns() && !response_ && config_.input.turns->interrupt_response && hearing_.has_turns()) return;
  if (answers_turns() && !response_ && is_patient() && !order_.has_slot()) return;
  if (answers_turns() && response_ && is_aside_) return;
  owes_answer_ = false;
  if (!answers_turns() || response_) return;
  ResponseOrder order{.output = config_.output,
                      .max_characters = order_.max_text_characters,
                      .is_generated = true,
                      .asked_ns = clock_.now_ns(),
                      .number = ++responses_};
  auto begun = begin_response(std::move(order), prompt(), /*is_of_conversation=*/true);
  answers_turn_ = begun.has_value();
  if (begun) return;
  if (!no_slot_ns_) no_slot_ns_ = clock_.now_ns();
  const bool may_come_free = begun.error().code == "no_free_slot" || begun.error().code == "overloaded";
  owes_answer_ = order_.has_slot && may_come_free && is_patient();
  if (!owes_answer_) events_.send_error({.error = std::move(begun).error()});
}

}  // namespace syrinx::server::realtime
