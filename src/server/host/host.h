// Interface from the protocols to the server: its models, its slots, its limits, and its metrics and log.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "server/host/chat_job.h"
#include "server/host/models.h"
#include "server/host/slot_job.h"
#include "server/host/speech_job.h"
#include "server/http/http_server.h"

namespace syrinx::server {

class Host {
 public:
  virtual ~Host() = default;

  // The first that speaks and that recognises, for a protocol that cannot wait for a load; null: of a kind that is
  // switched off.  503 while the server starts.
  virtual tl::expected<Models, HttpError> loaded_models() = 0;

  // Gives a slot to a speech; order.voice is found here.  Any thread; does not wait.  404 for another model or voice,
  // 503 while there is no model, or no slot is free.
  using StartedSpeech = tl::expected<std::shared_ptr<SpeechJob>, HttpError>;
  virtual StartedSpeech start_speech(SpeechOrder order, std::unique_ptr<SpeechAnswer> answer) = 0;

  // Gives a slot to a job that hears a speaker; `make` gets the model and the reports.  The reply fills while the job
  // works.  404 where no model recognises.
  using MakeJob = std::function<std::shared_ptr<SlotJob>(std::shared_ptr<const RecognitionModel>, JobReports)>;
  virtual tl::expected<std::shared_ptr<ReplyStream>, HttpError> start_recognition(const MakeJob& make) = 0;

  // Gives a slot to a conversation.  Any thread; does not wait.  404 for another model, 503 while there is no model, or
  // no slot is free.  The job: until it ends, on its slot's thread.
  using StartedChat = tl::expected<std::shared_ptr<ChatJob>, HttpError>;
  virtual StartedChat start_chat(ChatOrder order, std::unique_ptr<ChatSink> sink) = 0;

  virtual size_t max_text_characters() const = 0;
  virtual size_t max_body_bytes() const = 0;
  virtual double text_timeout_s() const = 0;
  virtual double max_utterance_s() const = 0;

  // A request of any protocol, for metrics and log.
  struct Asked {
    const char* route = "";  // never what a client sent
    std::string id = {};
    int64_t arrived_ns = 0;
    double waited_s = 0;  // for its model
  };
  virtual void answered(const Asked& asked, const HttpService::Answered& answered) = 0;
};

}  // namespace syrinx::server
