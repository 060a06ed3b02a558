// Answers of the server's own language model, for sessions of /v1/realtime: `upstream = "local:NAME"`.
#pragma once

#include <functional>
#include <memory>

#include "server/host/host.h"
#include "server/realtime/reply_source.h"
#include "server/upstream/upstream_settings.h"

namespace syrinx::server::upstream {

class LocalReplies final : public realtime::ReplySource {
 public:
  // The host must outlive it.
  LocalReplies(LocalUpstream upstream, Host& host);

  // A slot of the model's makes the answer; destroying the reply frees it within a step.  kInvalidArgument where there
  // is nothing to be answered; where no slot is free, the reply fails with kUnavailable.
  Result<std::unique_ptr<realtime::Reply>> start(realtime::Prompt prompt, std::function<void()> wake) override;

 private:
  const LocalUpstream upstream_;
  Host& host_;
};

}  // namespace syrinx::server::upstream
