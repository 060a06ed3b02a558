// Answer to `describe`: the programs of this server, their models and voices.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "server/host/host.h"
#include "server/host/speech_model.h"
#include "server/wyoming/event.h"

namespace syrinx::server::wyoming {

// Null: nothing speaks, or recognises.
Event info(const SpeechModel* speech, const RecognitionModel* recognition);

// The same as bytes, made once for the models that are loaded and the voices that clients have uploaded, however often
// it is asked for.  On the transport's thread.
class Description {
 public:
  const std::string& of(const Models& models);

 private:
  std::weak_ptr<const SpeechModel> speech_;
  std::weak_ptr<const RecognitionModel> recognition_;
  uint64_t changes_ = 0;  // of the uploaded voices, before it was made
  std::string written_;   // of all that; empty: not made yet
};

}  // namespace syrinx::server::wyoming
