// How a client hears a speech, in the words of its protocol: openai/http_speech_answer.h, wyoming/speech_answer.h.
// Used by one job (speech_job.h), on its slot's thread and in the order of the functions.
#pragma once

#include <cstddef>
#include <memory>

#include "audio/encode/byte_sink.h"
#include "base/result.h"
#include "server/http/http_message.h"
#include "server/http/reply_stream.h"

namespace syrinx::server {

class SpeechAnswer {
 public:
  struct Spoken {
    size_t characters = 0;
    double audio_seconds = 0;
    const char* stopped = "";  // what ended it: stop_reason() of speech_report.h
  };

  virtual ~SpeechAnswer() = default;
  // The reply for the transport; it may outlive this.
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

}  // namespace syrinx::server
