// A text that is spoken while it arrives: from a client's connection to the session that a slot has for it.
#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>
#include <string>
#include <string_view>

#include "base/result.h"
#include "engine/speech/speech_session.h"
#include "server/host/slots.h"

namespace syrinx::server {

class ArrivingText {
 public:
  // At most SpeechSession::kMaxWaitingText bytes are taken, too, so that nobody who appends ever waits.
  explicit ArrivingText(size_t max_characters) : max_characters_(max_characters) {}

  // For the connection; one thread.  kLimitExceeded: the text is too long, and nothing of it is taken; whole() says so
  // from then on.
  Status append(std::string_view text);
  void finish();
  size_t characters() const { return characters_.load(std::memory_order_relaxed); }  // any thread
  Status whole() const;                                                              // any thread

  // For the slot.  Present and later text goes to the session until detach(); the slot counts as waiting for the engine
  // only once the text has ended.
  void attach(SpeechSession& session, SlotWatch& watch);
  void detach();
  // Around the slot's wait for the next sound.
  void wait_begins();
  void wait_ends();

 private:
  Status refuse(Status too_much);

  const size_t max_characters_;
  std::atomic<size_t> characters_{0};
  size_t bytes_ = 0;  // of the connection's thread
  mutable std::mutex mutex_;
  Status refused_;     // the following by mutex_
  std::string early_;  // what came before the session
  bool ended_ = false, waiting_ = false;
  SpeechSession* session_ = nullptr;
  SlotWatch* watch_ = nullptr;
};

}  // namespace syrinx::server
