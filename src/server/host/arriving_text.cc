#include "server/host/arriving_text.h"

#include <utility>

#include "text/unicode.h"

namespace syrinx::server {

Status ArrivingText::append(std::string_view text) {
  if (text.empty()) return {};
  const size_t characters = characters_ + text::count_code_points(text);
  if (characters > max_characters_)
    return refuse(fail(Code::kLimitExceeded, "the text has more than {} characters; give the rest in further requests",
                       max_characters_));
  if (bytes_ + text.size() > SpeechSession::kMaxWaitingText)
    return refuse(fail(Code::kLimitExceeded, "the text has more than {} bytes; give the rest in further requests",
                       SpeechSession::kMaxWaitingText));
  characters_ = characters;
  bytes_ += text.size();
  const std::lock_guard lock(mutex_);
  if (session_ == nullptr) {
    early_ += text;
    return {};
  }
  // A session that has failed says so to the slot, which hears it in any case.
  (void)session_->write(text);
  return {};
}

Status ArrivingText::refuse(Status too_much) {
  const std::lock_guard lock(mutex_);
  refused_ = too_much;
  return too_much;
}

Status ArrivingText::whole() const {
  const std::lock_guard lock(mutex_);
  return refused_;
}

void ArrivingText::finish() {
  const std::lock_guard lock(mutex_);
  ended_ = true;
  if (session_ == nullptr) return;
  session_->finish();
  if (waiting_) watch_->wait_begins();
}

void ArrivingText::attach(SpeechSession& session, SlotWatch& watch) {
  const std::lock_guard lock(mutex_);
  session_ = &session;
  watch_ = &watch;
  if (!early_.empty()) (void)session.write(std::exchange(early_, {}));
  if (ended_) session.finish();
}

void ArrivingText::detach() {
  const std::lock_guard lock(mutex_);
  session_ = nullptr;
  watch_ = nullptr;
}

void ArrivingText::wait_begins() {
  const std::lock_guard lock(mutex_);
  waiting_ = true;
  if (ended_) watch_->wait_begins();
}

void ArrivingText::wait_ends() {
  const std::lock_guard lock(mutex_);
  waiting_ = false;
  watch_->wait_ends();
}

}  // namespace syrinx::server
