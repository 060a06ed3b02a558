// A speech as Wyoming's events: audio-start, audio-chunk of 85 ms at most, audio-stop, or error.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "server/host/arriving_text.h"
#include "server/host/speech_answer.h"
#include "server/wyoming/event.h"

namespace syrinx::server::wyoming {

// An `error` event, after which the connection is closed: clients that do not know it see that, too.
Event error_event(const HttpError& error);

// Each event is one block of the reply, so that others may stand between them.  Those that a client waits for to the
// end, and may leave behind, come with the reply's end: then the slot is free.
class EventAnswer final : public SpeechAnswer {
 public:
  // `text` comes in parts, else null: synthesize-stopped follows, or the error that the text was too long.
  explicit EventAnswer(std::shared_ptr<const ArrivingText> text) : text_(std::move(text)) {}

  ByteSink sink() override;
  Status begin() override;
  Status finish(const Spoken& spoken) override;
  bool fail(const HttpError& error) override;
  void end(bool complete) override;

 private:
  Status send(const Event& event);
  void give_up(const HttpError& error);
  int64_t heard_ms() const;
  Status send_sound(std::span<const std::byte> bytes);

  const std::shared_ptr<const ArrivingText> text_;
  std::string last_;  // events that come with the end
  bool failed_ = false;
  uint64_t bytes_ = 0;  // of sound
};

}  // namespace syrinx::server::wyoming
