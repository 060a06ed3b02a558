// The answer to POST /v1/chat/completions: a whole one, or events.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "server/host/chat_sink.h"
#include "server/openai/chat_request.h"

namespace syrinx::server {

class HttpChatSink final : public ChatSink {
 public:
  // `model`: the id of the one that answers; `created_s`: since 1970.
  HttpChatSink(const CompletionRequest& request, std::string model, int64_t created_s);

  Status begin() override;
  Status take(std::string_view text) override;
  Status finish(ChatEnd end, const ChatUsage& usage) override;
  bool fail(const HttpError& error) override;
  void end(bool complete) override;

 private:
  Json head(const char* object) const;
  std::string chunk(Json delta, const char* finish_reason) const;

  const std::string id_, model_;
  const int64_t created_s_;
  const bool is_stream_, includes_usage_;
  const std::vector<std::string> ignored_;  // fields
  std::string text_;                        // of a whole answer
  std::string last_;                        // events that come with the end
};

}  // namespace syrinx::server
