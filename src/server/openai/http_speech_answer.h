// How a client of POST /v1/audio/speech hears a speech.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "server/host/speech_answer.h"
#include "server/openai/speech_request.h"

namespace syrinx::server {

// The answer to POST /v1/audio/speech: a file's bytes, as they come or as a whole, or events.
class HttpSpeechAnswer final : public SpeechAnswer {
 public:
  explicit HttpSpeechAnswer(const SpeechRequest& request)
      : format_(request.format),
        rate_hz_(request.sample_rate_hz),
        events_(request.events),
        whole_(request.whole),
        ignored_(request.ignored) {}

  ByteSink sink() override;
  Status begin() override;
  Status finish(const Spoken& spoken) override;
  bool fail(const HttpError& error) override;
  void end(bool complete) override;

 private:
  std::string type() const;

  const AudioFormat format_;
  const int rate_hz_;
  const bool events_, whole_;
  const std::vector<std::string> ignored_;  // fields
  std::vector<std::byte> memory_;           // of a whole answer
};

}  // namespace syrinx::server
