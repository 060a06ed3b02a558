// What `describe` is answered with: the programs of this server, their models and voices.
#pragma once

#include <memory>
#include <string>

#include "server/service.h"
#include "server/speech_model.h"
#include "server/wyoming/event.h"

namespace syrinx::server::wyoming {

// `speech` may be null: nothing speaks.
Event info(const SpeechModel* speech);

// The same as bytes, made once for the models that are loaded, however often it is asked for.  On the transport's
// thread.
class Description {
 public:
  const std::string& of(const Service::Models& models);

 private:
  std::shared_ptr<const SpeechModel> speech_;
  std::string written_;  // of speech_; empty: not made yet
};

// The first voice of that language, "de" or "de-DE" in any case: the default one if it is of it; empty: there is none.
std::string voice_of_language(const SpeechModel& speech, std::string_view language);

}  // namespace syrinx::server::wyoming
