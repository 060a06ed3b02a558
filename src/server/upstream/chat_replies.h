// Answers of a language model behind an OpenAI-compatible interface, for sessions of /v1/realtime.
#pragma once

#include <memory>

#include "server/realtime/reply_source.h"
#include "server/upstream/chat_client.h"
#include "server/upstream/upstream_settings.h"

namespace syrinx::server::upstream {

class ChatReplies final : public realtime::ReplySource {
 public:
  // kUnavailable: no thread for it.
  static Result<std::shared_ptr<ChatReplies>> start(Upstream upstream);

  // kInvalidArgument where there is nothing to be answered.
  Result<std::unique_ptr<realtime::Reply>> start(realtime::Prompt prompt, std::function<void()> wake) override;

 private:
  ChatReplies(Upstream upstream, std::unique_ptr<ChatClient> client);

  const Upstream upstream_;
  const std::unique_ptr<ChatClient> client_;
};

}  // namespace syrinx::server::upstream
