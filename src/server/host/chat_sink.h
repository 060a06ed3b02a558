// How a client gets an answer, in the words of its protocol: openai/http_chat_sink.h, upstream/local_replies.h.  Used
// by one job (chat_job.h), on its slot's thread and in the order of the functions.
#pragma once

#include <memory>
#include <string_view>

#include "base/result.h"
#include "engine/chat/chat_engine.h"
#include "server/http/http_message.h"
#include "server/http/reply_stream.h"

namespace syrinx::server {

// Whether an answer ends where its model, or a stop text, ended it; else it has been cut short.
inline bool is_whole(ChatEnd end) { return end == ChatEnd::kStop || end == ChatEnd::kStopText; }

class ChatSink {
 public:
  virtual ~ChatSink() = default;
  // The reply for the transport; it may outlive this.  Cancelling it ends the answer within a step.
  const std::shared_ptr<ReplyStream>& reply() const { return reply_; }

  // The first token is there: what could be refused has not been.
  virtual Status begin() = 0;
  // More of the text, which is not empty.
  virtual Status take(std::string_view text) = 0;
  virtual Status finish(ChatEnd end, const ChatUsage& usage) = 0;
  // Instead of what has not happened yet.  Whether the client is told all of it.
  virtual bool fail(const HttpError& error) = 0;
  // Once, whatever has happened, and after the slot is free; `complete`: the client has been given all that it is to
  // get, be it an error.
  virtual void end(bool complete) = 0;

 private:
  const std::shared_ptr<ReplyStream> reply_ = std::make_shared<ReplyStream>();
};

}  // namespace syrinx::server
