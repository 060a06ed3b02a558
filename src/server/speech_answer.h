// How a client hears a speech, in the words of its protocol: over HTTP here, over Wyoming in wyoming/speech_answer.h.
// Used by one job (speech_job.h), on its slot's thread and in the order of the functions.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "audio/byte_sink.h"
#include "base/result.h"
#include "server/http_message.h"
#include "server/reply_stream.h"
#include "server/speech_request.h"

namespace syrinx::server {

class SpeechAnswer {
 public:
  struct Spoken {
    size_t characters = 0;
    double audio_seconds = 0;
    const char* stopped = "";  // what ended it: stop_reason() of speech_report.h
  };

  virtual ~SpeechAnswer() = default;
  // What the transport sends; it may outlive this.
  const std::shared_ptr<ReplyStream>& reply() const { return reply_; }

  // Takes the encoded sound; what it takes before begin() is a file's header.
  virtual ByteSink sink() = 0;
  // The first sound is there: what could be refused has not been.
  virtual Status begin() = 0;
  // The sound has all gone to the sink.
  virtual Status finish(const Spoken& spoken) = 0;
  // Instead of what has not happened yet.  Whether the client is told all of it.
  virtual bool fail(const HttpError& error) = 0;
  // Once, whatever has happened; `complete`: the client has been given all that it is to get, be it an error.
  virtual void end(bool complete) = 0;

 private:
  const std::shared_ptr<ReplyStream> reply_ = std::make_shared<ReplyStream>();
};

// The answer to POST /v1/audio/speech: a file's bytes, as they come or as a whole, or events.
class HttpSpeechAnswer final : public SpeechAnswer {
 public:
  explicit HttpSpeechAnswer(const SpeechRequest& request)
      : format_(request.format), rate_hz_(request.sample_rate_hz), events_(request.events), whole_(request.whole) {}

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
  std::vector<std::byte> memory_;  // of a whole answer
};

}  // namespace syrinx::server
