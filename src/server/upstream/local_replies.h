// Answers of the server's own language model, for sessions of /v1/realtime: `upstream = "local:NAME"`.
#pragma once

#include <functional>
#include <memory>

#include "base/clock.h"
#include "server/host/host.h"
#include "server/realtime/reply_source.h"
#include "server/upstream/upstream_settings.h"

namespace syrinx::server::upstream {

class LocalReplies final : public realtime::ReplySource {
 public:
  // Host and clock must outlive it and its replies.
  LocalReplies(LocalUpstream upstream, Host& host, const Clock& clock = system_clock());

  // A slot of the model's makes the answer; destroying the reply frees it within a step.  kInvalidArgument where there
  // is nothing to be answered.  Where no slot is free, the reply tries again when it is asked, and fails with
  // kUnavailable after two seconds.
  Result<std::unique_ptr<realtime::Reply>> start(realtime::Prompt prompt, std::function<void()> wake) override;

 private:
  const LocalUpstream upstream_;
  Host& host_;
  const Clock& clock_;
};

}  // namespace syrinx::server::upstream
