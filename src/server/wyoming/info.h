// What `describe` is answered with: the programs of this server, their models and voices.
#pragma once

#include "base/json.h"
#include "server/speech_model.h"
#include "server/wyoming/event.h"

namespace syrinx::server::wyoming {

// `speech` may be null: nothing speaks.
Event info(const SpeechModel* speech);
// The first voice of that language, "de" or "de-DE" in any case: the default one if it is of it; empty: there is none.
std::string voice_of_language(const SpeechModel& speech, std::string_view language);

}  // namespace syrinx::server::wyoming
